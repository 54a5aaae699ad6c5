"""What an operator chooses about a helper."""

from __future__ import annotations

import math
from dataclasses import dataclass

from federank.checks import positive, whole, within


@dataclass(frozen=True, kw_only=True)
class HelperSettings:
    """How much leaders and strangers may ask of a helper."""

    most_federations: int = 16
    """Federations that it serves at most."""
    most_length: int = 4_000_000
    """Numbers that a message may have."""
    address_rate: float = 100.0
    """Requests a second from one address, over time (0: no limit)."""
    address_connections: int = 100
    """Connections that one address may hold at a time (0: no limit)."""
    body_seconds: float = 30.0
    """Seconds in which a request's body must have arrived."""
    header_seconds: float = 10.0
    """Seconds in which a request's headers must have arrived."""

    def __post_init__(self) -> None:
        whole("most_federations", self.most_federations, 1)
        whole("most_length", self.most_length, 1, 2**26)
        within("address_rate", self.address_rate, 0, math.inf)
        whole("address_connections", self.address_connections, 0)
        positive("body_seconds", self.body_seconds)
        positive("header_seconds", self.header_seconds)
