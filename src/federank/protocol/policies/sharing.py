"""What everybody lets out who has made no choice of their own: settings that several families of methods have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from federank.checks import within
from federank.protocol.policies.own_sharing import known_sharing
from federank.protocol.policies.policy import Policy


@dataclass(frozen=True, kw_only=True)
class OutwardSettings:
    """What everybody lets out who has made no choice of their own."""

    sharing: Literal["sticky", "deniable"] = "sticky"
    """What stands for a history in messages: a share of it, drawn once and kept for life (sticky), or that with decoys
    (deniable). What is held back is still used to recommend at home."""
    pi: float | str = 1.0
    """Share of each history that is ever used outwards; or a CSV file `user,pi` with everyone's own."""
    epsilon: float | None = None
    """Deniable sharing: how far what is used outwards of one item may tell whether it is liked."""
    budget: int | None = None
    """At most so many items of a history are ever used outwards."""
    policies: str | None = None
    """TOML file of who chooses what: [default], [groups.NAME] with a `share` of people, [people."ID"]."""

    def __post_init__(self) -> None:
        known_sharing(self.sharing, ("sticky", "deniable"))
        if isinstance(self.pi, float | int):
            within("pi", self.pi, 0, 1)
        self.policy(float(self.pi) if isinstance(self.pi, float | int) else 0.5)

    def policy(self, pi: float) -> Policy:
        """What everybody allows who has made no choice of their own."""
        return Policy(sharing=self.sharing, pi=pi, epsilon=self.epsilon, basis="shared", budget=self.budget)
