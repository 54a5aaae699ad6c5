"""Rate limits: how often someone may ask, and how much they may send.

Requests are counted by token buckets: a bucket holds a burst, fills at a steady rate, and a request takes one from it.
There is one per client and one per address, in this process's memory only; addresses are kept nowhere else. Of an IPv6
address the first half counts: the other half is its owner's to choose again for every request. A body is counted while
it is read, whatever its length was announced as, and has a timeout.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network

from starlette.requests import ClientDisconnect, Request

from federank.service.server.http.responses import Refusal

BURST_SECONDS = 10.0
"""A bucket holds what this many seconds of its rate would bring, and no less than `LEAST_BURST`."""
LEAST_BURST = 5.0
MOST_BUCKETS = 100_000


class TokenBuckets:
    """One bucket for each name; a rate of 0 is no limit."""

    def __init__(self, rate: float, least_burst: float = LEAST_BURST, most: int = MOST_BUCKETS) -> None:
        self.rate = rate
        self._most = most
        self.burst = max(least_burst, rate * BURST_SECONDS)
        self._levels: dict[str, tuple[float, float]] = {}

    def take(self, name: str, now: float | None = None) -> float:
        """Take one; 0 if there was one, else the seconds until there will be."""
        if not self.rate:
            return 0.0
        now = time.monotonic() if now is None else now
        level, then = self._levels.get(name, (self.burst, now))
        level = min(self.burst, level + (now - then) * self.rate)
        if level < 1.0:
            self._levels[name] = (level, now)
            return (1.0 - level) / self.rate
        self._levels[name] = (level - 1.0, now)
        if len(self._levels) > self._most:
            self._forget_full(now)
        return 0.0

    def _forget_full(self, now: float) -> None:
        """Forget whose bucket is full again; if nearly all are busy, the less busy half."""
        kept = {
            name: (level + (now - then) * self.rate, now)
            for name, (level, then) in self._levels.items()
            if level + (now - then) * self.rate < self.burst
        }
        if len(kept) > self._most // 2:
            kept = dict(sorted(kept.items(), key=lambda entry: entry[1])[: self._most // 2])
        self._levels = kept


@lru_cache(maxsize=4096)
def bucket_of(address: str) -> str:
    """The name of an address's bucket: an IPv4 address itself, the /64 of an IPv6 address."""
    try:
        parsed = IPv6Address(address)
    except ValueError:
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(IPv6Network((int(parsed) >> 64 << 64, 64)))


@lru_cache(maxsize=4096)
def range_of(address: str) -> str:
    """The range that an address is of: what one network gives out, a /24 of IPv4 and a /48 of IPv6."""
    name = bucket_of(address)
    try:
        return str(IPv4Address(int(IPv4Address(name)) >> 8 << 8))
    except ValueError:
        pass
    try:
        first = int(IPv6Network(name).network_address)
    except ValueError:
        return name
    return str(IPv6Network((first >> 80 << 80, 48)))


class Ranges:
    """From which ranges of addresses the latest reports came: in memory only, and only how many."""

    def __init__(self, remembered: int = 1000) -> None:
        self._latest: deque[str] = deque(maxlen=remembered)

    def note(self, address: str) -> None:
        """A report has come."""
        self._latest.append(range_of(address))

    def busiest(self) -> int:
        """How many of the latest came from one range."""
        return max(Counter(self._latest).values(), default=0)


def enforce_rate_limit(buckets: TokenBuckets, name: str) -> None:
    """Refuse a request that comes too soon after others of this name, and say when to retry."""
    seconds = buckets.take(name)
    if seconds:
        wait = str(max(1, round(seconds + 0.5)))
        raise Refusal(429, "too-many", f"Too many requests; try again in {wait} s.", {"Retry-After": wait})


async def read_body(request: Request, most_bytes: int, timeout: float) -> bytes:
    """A request's body, if it is not too long, comes in time, and is sent as it is."""
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("", "identity"):
        raise Refusal(415, "encoding", "Bodies are taken as they are; send this one without a content encoding.")
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced[:18]) > most_bytes:
        raise _too_large(most_bytes)
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(timeout):
            async for part in request.stream():
                size += len(part)
                if size > most_bytes:
                    raise _too_large(most_bytes)
                parts.append(part)
    except TimeoutError:
        raise Refusal(408, "slow", f"The body did not arrive within {timeout:g} s.", {"Connection": "close"}) from None
    except ClientDisconnect:
        raise Refusal(400, "cut", "The connection ended before the body was complete.") from None
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _too_large(most_bytes: int) -> Refusal:
    # Closing the connection spares both sides the rest of the body.
    return Refusal(
        413, "too-large", f"The body is longer than the {most_bytes:,} bytes allowed.", {"Connection": "close"}
    )
