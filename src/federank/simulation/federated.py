"""What training needs of a federation, whatever its method.

A federation knows its own tables, its own engines, and what to say when its numbers grow out of bounds; training,
checkpoints and the commands know none of that. So a new family is a folder: a federation, its engines, and nothing
to add here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Literal, NamedTuple, Protocol

EngineName = Literal["compiled", "reference", "cluster"]
Play = Callable[[Any, int, int], None]
"""Plays rounds of a federation: which one, how many, on how many threads."""


class Engine(NamedTuple):
    """An engine at work on one federation."""

    play: Play
    bring_home: Callable[[], None]
    """Brings client states back before they are read."""


class Machines(NamedTuple):
    """Where an engine that spreads clients over machines finds them."""

    address: str | None
    shards: int | None


Open = Callable[[Any, Machines], AbstractContextManager[Engine]]
"""Starts an engine for one federation, and ends it when the run has ended."""


class Tables(NamedTuple):
    """The arrays that change while rounds are played, by the names of their attributes: what a checkpoint holds."""

    server: dict[str, Any]  # the shared model, and whatever else the server needs for its next step
    devices: dict[str, Any]  # one row per device

    @property
    def all(self) -> dict[str, Any]:
        """Both halves."""
        return self.server | self.devices


class Federated(Protocol):
    """Any federation whose rounds can be played, cut and gone on with."""

    round_number: int

    @property
    def rounds_per_epoch(self) -> int:
        """How many rounds make an epoch."""
        ...

    @property
    def steps_per_round(self) -> float:
        """How many triples or ratings a round learns from on average."""
        ...

    @property
    def engines(self) -> Mapping[EngineName, Open]:
        """The engines that can play its rounds."""
        ...

    def tables(self) -> Tables:
        """The arrays that change while rounds are played."""
        ...

    def why_diverged(self) -> str:
        """What is to blame if the server's tables are no longer finite numbers, and what to do: a clause."""
        ...


def in_this_process(play: Play) -> Open:
    """An engine that needs no other process."""

    @contextmanager
    def opened(_federation: Any, _machines: Machines) -> Iterator[Engine]:
        yield Engine(play, lambda: None)

    return opened


# Communication of a run: rows and bytes, in all and per round.


def traffic(rows: int, size: int, rounds: int) -> dict[str, float]:
    """What went one way in these rounds."""
    return {"rows": rows, "bytes": size, "rows_per_round": rows / rounds, "bytes_per_round": size / rounds}
