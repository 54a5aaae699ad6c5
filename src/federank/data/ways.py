"""The ways of dividing a data set, by their names: what commands and studies may ask for, and what they get.

temporal          each user's newest, as the papers do
global-temporal   everything after one moment, the same for all
leave-last-out    each user's newest interaction; validation, where asked for, is the one before
random            some of each user's, drawn at random
folds             a random partition; each fold is once the test, and there is no validation

With `mirrored`, time runs backwards before anything is divided: each user's oldest take the place of the newest. It
is a stand-in, and no recipe of any paper's: where a source kept the first visit to a place and the latest was wanted,
what people return to sits at the wrong end of their histories, and mirrored time puts it at the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from federank.checks import one_of, whole
from federank.errors import SettingError

if TYPE_CHECKING:
    from federank.data.interactions import Interactions
    from federank.data.splits import Split

WAYS = ("temporal", "global-temporal", "leave-last-out", "random")
"""The ways that give one split."""
FOLDS = "folds"
"""The way that gives several."""


@dataclass(frozen=True, kw_only=True)
class Division:
    """How a data set is to be divided."""

    way: str = "temporal"
    test: float = 0.2
    """The share held out for the test; of no account where one interaction or a fold is."""
    validation: float = 0.0
    """The share of the rest held out for choosing; with leave-last-out anything above 0 is one interaction."""
    seed: int = 1
    """Of random splits and folds."""
    folds: int | None = None
    mirrored: bool = False
    """Let time run backwards: a stand-in for a source that kept the latest of repeated visits, not the first."""

    def __post_init__(self) -> None:
        one_of("The way of a split", self.way, (*WAYS, FOLDS))
        if self.way == FOLDS:
            whole("folds", self.folds, 2)
        elif self.folds is not None:
            raise SettingError(f'folds go with way = "folds"; the way of this split is {self.way!r}.')
        if not isinstance(self.mirrored, bool):
            raise SettingError(f"mirrored is {self.mirrored!r}; true or false is needed.")
        if self.mirrored and self.way in ("random", FOLDS):
            raise SettingError(f"mirrored is about time, and a {self.way} split has none; leave it out.")

    def as_dict(self) -> dict[str, Any]:
        """What of it counts."""
        if self.way == FOLDS:
            return {"way": FOLDS, "seed": self.seed, "folds": self.folds}
        mirrored = {"mirrored": True} if self.mirrored else {}
        return {"way": self.way, "test": self.test, "validation": self.validation, "seed": self.seed} | mirrored


def divide(data: Interactions, division: Division) -> list[Split]:
    """The splits that are asked for: one, or one for each fold."""
    from federank.data import splits

    test, validation, seed = division.test, division.validation, division.seed
    if division.mirrored:
        return [
            replace(split, how=f"{split.how}, time mirrored")
            for split in divide(splits.mirrored(data), replace(division, mirrored=False))
        ]
    match division.way:
        case "temporal":
            return [splits.split_temporal(data, test, validation)]
        case "global-temporal":
            return [splits.split_temporal_global(data, test, validation)]
        case "leave-last-out":
            return [splits.split_leave_last_out(data, validation=validation > 0)]
        case "random":
            return [splits.split_random(data, test, validation, seed)]
        case _:
            return splits.split_folds(data, division.folds or 0, seed)


def refuse_empty_parts(splits: Sequence[Split], division: Division) -> None:
    """A part that nobody has anything in cannot be tested on: say so before anything is done with it."""
    for split in splits:
        empty = [] if len(split.test) else ["test"]
        if division.validation and not split.validation:
            empty.append("validation")
        if empty:
            raise SettingError(
                f"The {empty[0]} part would be empty: a share of everybody's history is rounded down, and nobody has "
                "enough of it. Ask for a larger share, or keep users with more interactions (--min-interactions)."
            )
