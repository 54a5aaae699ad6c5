"""What an operator chooses about a federation, beside the method's own settings.

`RoundSettings` say when a round begins and ends; they are kept in the store, so that every worker follows the same.
`TrustSettings` say how much a client, an address or an upload may ask of this server; each process has its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from federank.checks import check_int, check_positive, check_range
from federank.errors import SettingError


@dataclass(frozen=True, kw_only=True)
class RoundSettings:
    """When a round begins, who may take part, and when it ends."""

    target: int = 20
    """Uploads that end a round."""
    minimum: int = 1
    """Minimum number of uploads. A round that reaches its deadline with fewer is discarded. A federation that `serve`
    establishes begins with 20. Recommended: 50 or more."""
    over_selection: float = 1.3
    """Clients invited to a round, as a multiple of the target, because some never answer. 1 where each upload counts
    against a quota."""
    deadline: float = 60.0
    """Seconds after which a round ends."""

    def __post_init__(self) -> None:
        check_int("target", self.target, 1)
        check_int("minimum", self.minimum, 1)
        check_range("over_selection", self.over_selection, 1, math.inf)
        check_positive("deadline", self.deadline)
        if self.minimum > self.target:
            raise SettingError(
                f"minimum is {self.minimum}, but {self.target} uploads end a round (target); it cannot be more."
            )

    @property
    def most_tickets(self) -> int:
        """Clients invited to a round at most."""
        return math.ceil(self.target * self.over_selection)


LEAST_MINIMUM = 20
"""With fewer uploads, a server step discloses them to an outsider who fetches the model before and after it."""


def refuse_few(rounds: RoundSettings) -> None:
    """Raise where so few uploads are aggregated that anyone who fetches the model could read uploads from it."""
    if rounds.minimum < LEAST_MINIMUM:
        raise SettingError(
            f"minimum is {rounds.minimum}, and {rounds.target} uploads end a round: with fewer than {LEAST_MINIMUM}, "
            "someone who fetches the public model before and after a round can read what clients have sent. Let "
            f"rounds have at least {LEAST_MINIMUM} (50 are better), or add --i-accept-that-outsiders-can-read-updates."
        )


@dataclass(frozen=True, kw_only=True)
class TrustSettings:
    """How much a client, an address or an upload may ask of the server."""

    most_norm: float = 100.0
    """Longest row of an Update, vector and bias together (fpl), or longest message (frugal); longer ones are
    shortened to it, and counted."""
    row_quantile: float | None = None
    """After a server step no row that it moved is longer, and no bias higher, than this share of the catalogue (1: no
    bound). By default 0.8 for fpl and 0.98 for frugal; catalogues below 100 items are left alone."""
    move_quantile: float | None = None
    """A server step moves no row farther than this share of the rows that it moves (1: no bound). By default 0.88 for
    fpl."""
    refuse_implausible: bool = True
    """Refuse an Update that no client can have sent, whatever its history: its numbers are not those of the
    equations."""
    client_rate: float = 10.0
    """Requests a second of one client, over time (0: no limit)."""
    address_rate: float = 100.0
    """Requests a second from one address, over time (0: no limit)."""
    enrolment_rate: float = 0.2
    """Clients enrolled a second from one address, over time (0: no limit)."""
    range_rate: float = 1.0
    """Clients enrolled a second from one range of addresses (/24 of IPv4, /48 of IPv6), over time, after the first 200
    (0: no limit)."""
    invited_only: bool | None = None
    """Enrol only clients that bring an invitation (`federank admin invite`). Default: with a helper and without noise,
    because there anyone who controls all other clients of a round learns the upload of the last one."""
    roll_back_when_worse: bool = False
    """Go back to an earlier version by itself when clients that evaluate say that the newest are worse."""
    address_connections: int = 500
    """Connections that one address may hold at a time (0: no limit); those of --proxies are not counted."""
    body_seconds: float = 30.0
    """Seconds in which a request's body must have arrived, and a receiver must have taken some more of its answer."""
    header_seconds: float = 10.0
    """Seconds in which a request's headers must have arrived."""
    keep_updates: bool = False
    """Keep uploads after they are aggregated, to recompute the model; otherwise they are overwritten then."""

    def __post_init__(self) -> None:
        check_positive("most_norm", self.most_norm)
        for name in ("row_quantile", "move_quantile"):
            if getattr(self, name) is not None:
                check_range(name, getattr(self, name), 0.5, 1)
        for name in ("client_rate", "address_rate", "enrolment_rate", "range_rate"):
            check_range(name, getattr(self, name), 0, math.inf)
        check_int("address_connections", self.address_connections, 0)
        check_positive("body_seconds", self.body_seconds)
        check_positive("header_seconds", self.header_seconds)
