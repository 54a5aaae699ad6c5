"""Frugal: a handful of messages in a lifetime, simulated for a whole population.

model = Frugal(messages=5).fit(split.train)
model.recommend("A3EBHHCZO6V2A4", n=10)

Each device solves for its own vector at home and sends one message at most `messages` times; the server solves for the
items from two sums (protocol/squares/). Everybody is recommended to from a vector that is solved at home from the whole
history, whatever their policy lets out.
"""

from __future__ import annotations

from federank.protocol.squares.recipes import SquaresSettings
from federank.recommenders.constructor import made_from
from federank.recommenders.few_messages import FewMessages


class Frugal(FewMessages):
    """Few messages, solved from sums; see `SquaresSettings`."""

    name = "frugal"
    settings_type = SquaresSettings
    settings: SquaresSettings

    @made_from(SquaresSettings)
    def __init__(self) -> None: ...

    def squares(self) -> SquaresSettings:
        """The settings, as they are."""
        return self.settings
