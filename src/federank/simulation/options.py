"""How a run is carried out: the engine, its threads, its checkpoint, and its progress.

    model.fit(split.train, training_options=TrainingOptions(threads=2, checkpoint="run.checkpoint"))

Nothing here changes what is learnt. A method that cannot use what it is given here says so (`accepted`).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection
from dataclasses import dataclass, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple, ParamSpec, TypeVar, get_args

from federank.errors import SettingError
from federank.simulation.federated import EngineName

P = ParamSpec("P")
R = TypeVar("R")


class Progress(NamedTuple):
    """How far a run has come."""

    epoch: int  # the one that is being played, from 1
    epochs: int
    round_number: int
    rounds: int
    triples_per_second: float  # or ratings, where it is these that are learnt


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """How a run is carried out; nothing here changes its result."""

    engine: EngineName = "compiled"
    """`compiled` for use, `reference` for reading and for tiny worlds, `cluster` where one machine is too small."""
    threads: int = 1
    """Cores to use where a round has many clients; the result is the same for any number."""
    cluster: str | None = None
    """Where the cluster engine finds its machines: `local`, or the address of a Ray cluster."""
    shards: int | None = None
    """Over how many of the cluster's processes the devices are spread; all its cores by default."""
    checkpoint: str | Path | None = None
    """Where to keep the state of an unfinished run."""
    resume: bool = False
    """Go on from the checkpoint instead of starting again."""
    progress: Callable[[Progress], None] | None = None
    """Called a few times a second with how far the run has come."""
    after_epoch: Callable[[int], None] | None = None
    """Called with the number of each epoch that has been played, while the model is consistent."""

    def __post_init__(self) -> None:
        if self.engine not in get_args(EngineName):
            *others, last = get_args(EngineName)
            raise SettingError(f"No engine is called {self.engine!r}; there are {', '.join(others)} and {last}.")
        for name, count in (("threads", self.threads), ("shards", self.shards)):
            if count is not None and (not isinstance(count, int) or count < 1):
                raise SettingError(f"{name} is {count!r}; at least 1 is needed.")
        if self.engine != "cluster" and (self.cluster is not None or self.shards is not None):
            raise SettingError("A cluster and its shards are for the cluster engine; add --engine cluster.")
        if self.engine == "cluster" and self.threads > 1:
            raise SettingError("The cluster engine is spread over shards, not threads; say --shards instead.")
        if self.resume and self.checkpoint is None:
            raise SettingError("There is nothing to resume from: no checkpoint was named.")

    @property
    def kept_in(self) -> Path | None:
        """The file of the checkpoint."""
        return None if self.checkpoint is None else Path(self.checkpoint)


ALL_OF_IT = tuple(field.name for field in fields(TrainingOptions))
"""What a method that is trained in rounds can use."""


def accepted(training_options: Any, method: str, can_use: Collection[str]) -> TrainingOptions:
    """The options of a run, if this method can use all of them."""
    if training_options is None:
        return TrainingOptions()
    if not isinstance(training_options, TrainingOptions):
        raise SettingError(
            f"training_options is {training_options!r}; a TrainingOptions is needed, such as "
            f"TrainingOptions(threads=2)."
        )
    for field in fields(TrainingOptions):
        if field.name not in can_use and getattr(training_options, field.name) != field.default:
            knows = f"it can use {', '.join(can_use)} alone" if can_use else "it learns in one go, without rounds"
            raise SettingError(f"{method} cannot use {field.name}: {knows}. Leave {field.name} out.")
    return training_options


def takes_training_options(fit: Callable[P, R]) -> Callable[P, R]:
    """A `fit` that refuses a name it does not have with a sentence; type checkers see it as it is."""
    own = inspect.signature(fit).parameters

    @functools.wraps(fit)
    def asked(*args: P.args, **kwargs: P.kwargs) -> R:
        for name in kwargs.keys() - own.keys():
            meant = (get_close_matches(name, ALL_OF_IT, n=1) or ["threads"])[0]
            raise SettingError(
                f"fit has no argument {name!r}; how a run is carried out is one record: "
                f"fit(data, training_options=TrainingOptions({meant}=...))."
            )
        return fit(*args, **kwargs)

    return asked
