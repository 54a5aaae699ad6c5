"""Poisoned federations in a study: a model whose test runs are attacked by liars, with the defences and without.

    [[model]]
    group = "Adaptive, push"
    method = "fpl"
    poison = { attack = "adaptive", aim = "push", shares = [0.01, 0.05] }

Such a run trains nothing else: it plays the federation of audit/poisoning/ honest, and for each share of liars attacked
without the defences and with them. What honest people get becomes the run's metrics (run/poisoning.py).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from federank.errors import SettingError
from federank.studies.plan.vocabulary import as_table, refuse_unknown

KEYS = ("attack", "aim", "shares", "sees", "bounds", "recipe", "epsilon", "clip", "rounds", "reports")
METHODS = ("fpl", "frugal")


@dataclass(frozen=True, kw_only=True)
class Poison:
    """Who lies in a model's test runs."""

    attack: str
    aim: str
    shares: tuple[float, ...]
    sees: str = "updates"
    bounds: str = "all"
    recipe: str = "spectral"
    epsilon: float | None = None
    clip: float = 1.0
    rounds: int = 200
    reports: int = 100

    def content(self) -> dict[str, Any]:
        """What names a run; what was not there when earlier runs were made is left out where it says nothing."""
        silent: dict[str, Any] = {"bounds": "all", "recipe": "spectral", "epsilon": None}
        if self.sees != "checked":
            silent["clip"] = self.clip  # of others it says nothing
        return {name: value for name, value in asdict(self).items() if name not in silent or value != silent[name]}

    def settings(self, method: str, share: float, seed: int) -> Any:
        """The rehearsal of one share of liars."""
        from federank.audit.poisoning.world import PoisonSettings

        words: dict[str, Any] = {"method": method, "attack": self.attack, "aim": self.aim, "sees": self.sees}
        words |= {"bounds": self.bounds, "recipe": self.recipe, "epsilon": self.epsilon, "clip": self.clip}
        return PoisonSettings(share=share, rounds=self.rounds, reports=self.reports, seed=seed, **words)


def read_poison(content: Any, group: str, method: str) -> Poison | None:
    """What a [[model]] says of its liars, checked; None where it says nothing."""
    if content is None:
        return None
    where = f"poison of {group}"
    table = as_table(content, where)
    if method not in METHODS:
        raise SettingError(f"{group} ({method}) cannot be poisoned, only {', '.join(METHODS)}; leave its poison out.")
    refuse_unknown(table, KEYS, where)
    shares = table.get("shares", [0.05])
    if not isinstance(shares, list) or not shares:
        raise SettingError(f"shares in the {where} is {shares!r}; one or more are needed, such as [0.01, 0.05].")
    values = {name: table[name] for name in KEYS if name in table and name != "shares"}
    poison = Poison(**{"attack": "adaptive", "aim": "push"} | values, shares=tuple(map(float, shares)))
    for share in poison.shares:
        poison.settings(method, share, 1)  # what cannot be is refused before anything is run
    return poison
