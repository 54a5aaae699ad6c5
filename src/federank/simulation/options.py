"""Training options: engine, threads, checkpoint, progress.

    model.fit(split.train, training_options=TrainingOptions(threads=2, checkpoint="run.checkpoint"))

None of them changes the result. A method refuses options that it cannot use (`accepted`).
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
    """Progress of a run."""

    epoch: int  # the current one, from 1
    epochs: int
    round_number: int
    rounds: int
    triples_per_second: float  # or ratings


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """How a run is carried out; none of these changes its result."""

    engine: EngineName = "compiled"
    """`compiled` for use, `reference` for reading and tiny data, `cluster` for several machines."""
    threads: int = 1
    """Number of cores for rounds with many clients."""
    cluster: str | None = None
    """Machines of the cluster engine: `local`, or the address of a Ray cluster."""
    shards: int | None = None
    """Number of processes of the cluster that simulate clients. [default: all its cores]"""
    checkpoint: str | Path | None = None
    """File for the state of an unfinished run."""
    resume: bool = False
    """Resume from the checkpoint instead of starting again."""
    progress: Callable[[Progress], None] | None = None
    """Called with the progress a few times a second."""
    after_epoch: Callable[[int], None] | None = None
    """Called with the number of each epoch that has been played, while the model is consistent."""

    def __post_init__(self) -> None:
        if self.engine not in get_args(EngineName):
            *others, last = get_args(EngineName)
            raise SettingError(f"engine is {self.engine!r}; it can be {', '.join(others)} or {last}.")
        for name, count in (("threads", self.threads), ("shards", self.shards)):
            if count is not None and (not isinstance(count, int) or count < 1):
                raise SettingError(f"{name} is {count!r}; at least 1 is needed.")
        if self.engine != "cluster" and (self.cluster is not None or self.shards is not None):
            raise SettingError("cluster and shards belong to the cluster engine; set engine to cluster.")
        if self.engine == "cluster" and self.threads > 1:
            raise SettingError("The cluster engine has shards instead of threads; set shards.")
        if self.resume and self.checkpoint is None:
            raise SettingError("resume needs a checkpoint.")

    @property
    def kept_in(self) -> Path | None:
        """The file of the checkpoint."""
        return None if self.checkpoint is None else Path(self.checkpoint)


ALL_OF_IT = tuple(field.name for field in fields(TrainingOptions))
"""The options of methods that are trained in rounds."""


def accepted(training_options: Any, method: str, can_use: Collection[str]) -> TrainingOptions:
    """The options, if this method can use all of them."""
    if training_options is None:
        return TrainingOptions()
    if not isinstance(training_options, TrainingOptions):
        raise SettingError(
            f"training_options is {training_options!r}; a TrainingOptions is needed, such as "
            f"TrainingOptions(threads=2)."
        )
    for field in fields(TrainingOptions):
        if field.name not in can_use and getattr(training_options, field.name) != field.default:
            knows = f"it can use {', '.join(can_use)} alone" if can_use else "it is not trained in rounds"
            raise SettingError(f"{method} cannot use {field.name}: {knows}. Leave {field.name} out.")
    return training_options


def takes_training_options(fit: Callable[P, R]) -> Callable[P, R]:
    """A `fit` that refuses unknown arguments with advice; type checkers see it unchanged."""
    own = inspect.signature(fit).parameters

    @functools.wraps(fit)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        for name in kwargs.keys() - own.keys():
            meant = (get_close_matches(name, ALL_OF_IT, n=1) or ["threads"])[0]
            raise SettingError(
                f"fit has no argument {name!r}; how a run is carried out is one record: "
                f"fit(data, training_options=TrainingOptions({meant}=...))."
            )
        return fit(*args, **kwargs)

    return checked
