"""The charter of sums: what a federation promises once, and devices pin by its digest when they enrol.

It names the founding, the catalogue and how blocks of it are dealt, the ring and the bounds of a message, the noise of
each server, how many messages a device sends in its life, how small and how large a cohort may be, both servers' keys
and the helper's address. Nothing in it can change behind a device's back: another charter has another digest.

The noise is the deviation of one server's, in units of the ring: sigma times `bound`, rounded up. No sum may wrap:

    largest cohort x bound + 2 x 9.1 x noise < 2^31       (no noise is farther than 9.1 deviations)
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from federank.errors import BadMessage, SettingError
from federank.protocol.sums.canonical import canonical, digest, has_fields, hexadecimal, read_canonical
from federank.protocol.sums.identities import PUBLIC_BYTES, public_key
from federank.protocol.sums.noise import LEAST_DEVIATION, MOST_DEVIATION
from federank.protocol.sums.rounding import C_INT, FARTHEST
from federank.protocol.sums.sealing import SUITE

FORMAT = "federank sums 1"
RING_BITS = 32

_NAME = "The charter of sums"
_DIGEST_BYTES = 32


@dataclass(frozen=True, kw_only=True)
class SumsCharter:
    """What cannot change while a federation lasts."""

    founding: str
    """Names the founding; devices count their messages across foundings all the same."""
    catalogue: str
    """SHA-256 of the public list of items, in hexadecimal digits."""
    settings: str
    """SHA-256 of the method's settings as the leader tells them, in hexadecimal digits."""
    items: int
    """How many items there are."""
    columns: int
    """Numbers a row of a message: the factors and one."""
    blocks: int
    """Into how many public blocks the catalogue is dealt; a round's messages cover one."""
    seed: int
    """What the blocks are dealt with."""
    clip: str
    """The length that a message is scaled down to before it becomes whole numbers, as decimal text."""
    noise: int
    """Deviation of one server's noise, in units of the ring."""
    messages: int
    """How many messages a device sends in its life."""
    least_cohort: int
    """No sum of fewer messages is ever opened."""
    largest_cohort: int
    """No sum of more is."""
    helper_origin: str
    """Where the helper is; devices fetch its key there and nowhere else."""
    helper_key: str
    """The helper's public key, in hexadecimal digits."""
    leader_key: str
    """The leader's public key, in hexadecimal digits."""
    bound: int = C_INT
    ring: int = RING_BITS
    suite: str = SUITE
    proof_bytes: int = 0
    """Room for a proof of a message's norm at the end of every upload; none is asked for yet."""
    format: str = FORMAT

    def __post_init__(self) -> None:
        fixed = {"bound": C_INT, "ring": RING_BITS, "suite": SUITE, "proof_bytes": 0, "format": FORMAT}
        for name, needed in fixed.items():
            if getattr(self, name) != needed:
                raise SettingError(f"{_NAME} has {needed!r} as {name}; found {str(getattr(self, name))[:80]!r}.")
        for name in ("items", "columns", "blocks", "messages"):
            if getattr(self, name) < 1:
                raise SettingError(f"{_NAME} needs {name} of at least 1; found {getattr(self, name)}.")
        if not 2 <= self.least_cohort <= self.largest_cohort:
            raise SettingError(
                f"A cohort needs at least 2 people and at most the largest cohort; found a least cohort of "
                f"{self.least_cohort:,} and a largest of {self.largest_cohort:,}."
            )
        if self.noise and not LEAST_DEVIATION <= self.noise <= MOST_DEVIATION:
            raise SettingError(
                f"The noise of a server is 0, or {LEAST_DEVIATION:,.0f} to {MOST_DEVIATION:,.0f} units of the ring; "
                f"found {self.noise:,}."
            )
        if self.largest_cohort * C_INT + 2 * FARTHEST * self.noise >= 2 ** (RING_BITS - 1):
            raise SettingError(
                f"A sum of {self.largest_cohort:,} messages with noise of {self.noise:,} on it could wrap; a smaller "
                "largest cohort or less noise is needed."
            )
        if not self.length_of_clip() > 0:
            raise SettingError(f"{_NAME} needs a clip above 0; found {self.clip[:40]!r}.")

    def length_of_clip(self) -> float:
        """The clip as a number."""
        try:
            value = float(self.clip)
        except ValueError:
            return 0.0
        return value if repr(value) == self.clip and value < 1e30 else 0.0

    def to_bytes(self) -> bytes:
        """The one way to write this charter."""
        return canonical(asdict(self))

    def digest(self) -> bytes:
        """What devices pin."""
        return digest("charter", self.to_bytes())

    def helper_public(self) -> bytes:
        """The helper's public key."""
        return bytes.fromhex(self.helper_key)

    def leader_public(self) -> bytes:
        """The leader's public key."""
        return bytes.fromhex(self.leader_key)


_FIELDS: dict[str, type] = {name: int if kind == "int" else str for name, kind in SumsCharter.__annotations__.items()}


def charter_from(content: bytes) -> SumsCharter:
    """A charter from the wire, once it is sure to be one."""
    statement: dict[str, Any] = read_canonical(content, _NAME)
    has_fields(statement, _NAME, _FIELDS)
    for name in ("catalogue", "settings"):
        hexadecimal(statement[name], _DIGEST_BYTES, f"The {name} of a charter")
    for name in ("helper_key", "leader_key"):
        public_key(hexadecimal(statement[name], PUBLIC_BYTES, f"The {name} of a charter"))
    try:
        return SumsCharter(**statement)
    except SettingError as reason:
        raise BadMessage(str(reason)) from reason
