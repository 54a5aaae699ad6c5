"""Rounds of devices that live in this process: what the reference engines of all families share.

Server and devices share no array: the shared model is taken out of the federation, handed from round to round, and
put back; everything between them is a Broadcast or an Update.
"""

from __future__ import annotations

from typing import Any, Protocol

from federank.protocol.draws import words_wrap_around
from federank.protocol.round import Fleet, play_round


class TakenApart(Protocol):
    """A federation whose server's half can be taken out and put back."""

    @property
    def recipe(self) -> Any:
        """What is played."""
        ...

    @property
    def shared(self) -> Any:
        """What the server holds, as the protocol speaks of it: a copy."""
        ...

    def take(self, shared: Any) -> None:
        """Keep what the server holds now."""
        ...


def play_in_memory(federation: TakenApart, fleet: Fleet[Any, Any, Any], rounds: int) -> None:
    """Play this many rounds with these devices, whose state stays with them."""
    shared = federation.shared
    with words_wrap_around():
        for _ in range(rounds):
            play_round(federation.recipe, shared, fleet)
    federation.take(shared)
