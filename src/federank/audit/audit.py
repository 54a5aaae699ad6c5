"""The audit of any method that sends something: what an honest-but-curious server learns from its run.

    findings, about = audit_model(model)
    findings[-1].best                     the strongest attack, and how far it is above popularity

A model names the module that audits it (`audit`), with a function `audit_model` and one that refuses what it cannot do.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from inspect import signature
from typing import Any, NamedTuple

from federank.audit.poisoning import Measured, PoisonSettings, World, make_world
from federank.audit.scoring import Audited
from federank.data.interactions import Interactions
from federank.data.splits import Split
from federank.errors import ModelError, SettingError
from federank.federation.defences import Defences
from federank.methods.recommender import Recommender
from federank.methods.registry import recommender_class
from federank.simulation.options import TrainingOptions


def audit_model(
    model: Recommender, *, sees: str = "updates", people: int | None = None, known: int | None = None
) -> Audited:
    """Audit a trained model: the messages of its run are made again, and attacked.

    `sees` is what the server sees: `updates`, `anonymous` ones, or only `sums`. `people`: how many users are followed.
    `known`: how many items of a user an attacker on Frugal's sums or models knows beforehand (10); 0: none is tried.
    """
    module = _module_of(model)
    model._fitted()
    audited: Audited = module.audit_model(model, sees=sees, people=people, **_with_known(module, known))
    return audited


def audit_training(
    model: Recommender,
    train: Interactions,
    *,
    sees: str = "updates",
    people: int | None = None,
    per_epoch: bool = False,
    training_options: TrainingOptions | None = None,
    known: int | None = None,
) -> Audited:
    """Train a model and watch its run: findings of each epoch if asked, else of the last."""
    module, watched = _module_of(model), {"sees": sees, "people": people, "per_epoch": per_epoch}
    known_items = _with_known(module, known)
    module.refuse(model, **watched)
    if training_options is not None and "threads" not in model.can_use:
        training_options = replace(training_options, threads=1)
    model.fit(train, training_options=training_options)
    audited: Audited = module.audit_model(model, **watched, **known_items)
    return audited


def _with_known(module: Any, known: int | None) -> dict[str, int]:
    if known is None:
        return {}
    if "known" not in signature(module.audit_model).parameters:
        raise SettingError(
            f"known is {known}, but only an audit of frugal has an attacker who knows items; leave it out."
        )
    return {"known": known}


def _module_of(model: Any) -> Any:
    path = getattr(model, "audit", "")
    if not path:
        name = getattr(model, "name", type(model).__name__)
        raise ModelError(f"A model of {name} cannot be audited, for it sends nothing; a federated method's can.")
    return import_module(path)


# A rehearsal: one federation three times. Honest, attacked without defences, attacked with them.


class Rehearsed(NamedTuple):
    """What honest users got."""

    honest: Measured  # no attack, no defences
    honest_defended: Measured  # no attack, with defences: their cost
    undefended: Measured
    defended: Measured
    malicious_users: int
    target: str

    def figures(self) -> dict[str, float | int | str]:
        """As they are printed and kept."""
        return {
            "exposure": self.defended.exposure,
            "exposure_undefended": self.undefended.exposure,
            "precision@10": self.defended.precision,
            "precision@10_undefended": self.undefended.precision,
            "precision@10_honest": self.honest.precision,
            "precision@10_honest_defended": self.honest_defended.precision,
            "median_rank": self.defended.median_rank,
            "median_rank_undefended": self.undefended.median_rank,
            "malicious_clients": self.malicious_users,
            "target": self.target,
        }


def usual_defences(method: str) -> Defences:
    """As a server has them by default."""
    defences: Defences = _poisoning_of(method).USUAL_DEFENCES[method]
    return defences


def rehearse_poisoning(split: Split, settings: PoisonSettings) -> Rehearsed:
    """Play the federation honest, and attacked with the defences and without."""
    bounds = usual_defences(settings.method)
    data = split.train
    calm, attacked = make_world(split, settings, malicious_users=False), make_world(split, settings)
    title = data.item_ids[attacked.target] if data.titles is None else data.titles[attacked.target]
    return Rehearsed(
        honest=play(calm, settings, None),
        honest_defended=play(calm, settings, bounds),
        undefended=play(attacked, settings, None),
        defended=play(attacked, settings, bounds),
        malicious_users=attacked.malicious_users,
        target=str(title),
    )


def play(world: World, settings: PoisonSettings, defences: Defences | None) -> Measured:
    """One federation of the method."""
    measured: Measured = _poisoning_of(settings.method).POISONED[settings.method](world, settings, defences)
    return measured


def _poisoning_of(method: str) -> Any:
    """The module of a method's folder that plays its poisoned federations."""
    folder = recommender_class(method).__module__.rpartition(".")[0]
    return import_module(f"{folder}.poisoning")
