"""The interface between federations and training.

A federation knows its tables, its engines, and the setting to blame for divergence. Training, checkpoints and commands
need nothing else of a method.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Literal, NamedTuple, Protocol

EngineName = Literal["compiled", "reference", "cluster"]
Play = Callable[[Any, int, int], None]
"""Plays rounds: the federation, how many, on how many threads."""


class Engine(NamedTuple):
    """A running engine of one federation."""

    play: Play
    bring_home: Callable[[], None]
    """Collects client states before they are read."""


class Machines(NamedTuple):
    """The machines of an engine that needs several."""

    address: str | None
    shards: int | None


Open = Callable[[Any, Machines], AbstractContextManager[Engine]]
"""Starts an engine for one federation, and stops it at the end of the run."""


class Tables(NamedTuple):
    """The arrays that change during training, by attribute: the content of a checkpoint."""

    server: dict[str, Any]  # the shared model, and other state of the server
    clients: dict[str, Any]  # one row per client

    @property
    def all(self) -> dict[str, Any]:
        """Both halves."""
        return self.server | self.clients


class Federated(Protocol):
    """A federation whose rounds can be played, stopped and resumed."""

    round_number: int

    @property
    def rounds_per_epoch(self) -> int:
        """Number of rounds per epoch."""
        ...

    @property
    def steps_per_round(self) -> float:
        """Mean number of triples or ratings per round."""
        ...

    @property
    def engines(self) -> Mapping[EngineName, Open]:
        """The engines of this federation."""
        ...

    def tables(self) -> Tables:
        """The arrays that change during training."""
        ...

    def why_diverged(self) -> str:
        """What to blame if the server's tables are no longer finite, and what to do: a clause."""
        ...


def in_this_process(play: Play) -> Open:
    """An engine without other processes."""

    @contextmanager
    def opened(_federation: Any, _machines: Machines) -> Iterator[Engine]:
        yield Engine(play, lambda: None)

    return opened


# Communication of a run: rows and bytes, total and per round.


def traffic(rows: int, size: int, rounds: int) -> dict[str, float]:
    """Communication in one direction."""
    return {"rows": rows, "bytes": size, "rows_per_round": rows / rounds, "bytes_per_round": size / rounds}
