"""A rehearsal: one federation three times. Honest, attacked without defences, attacked with them."""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

from federank.audit.poisoning import Measured, PoisonSettings, World, make_world
from federank.data.splits import Split
from federank.federation.defences import Defences
from federank.methods.registry import recommender_class


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
