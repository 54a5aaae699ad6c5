"""The audit of any method that sends something: what an honest-but-curious server learns from its run.

    findings, about = audit_model(model)
    findings[-1].best                     the strongest attack, and how far it is above popularity

A model names the module that audits it (`audit`), with the two functions of this one.
"""

from __future__ import annotations

from importlib import import_module
from inspect import signature
from typing import Any

from federank.audit.scoring import Audited
from federank.data.interactions import Interactions
from federank.errors import ModelError, SettingError
from federank.methods.recommender import Recommender
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
    watched |= _with_known(module, known)
    audited: Audited = module.audit_training(model, train, training_options=training_options, **watched)
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
