"""The federation config of sums: what a federation guarantees once, and clients pin by its digest when they enrol.

It names the federation, the catalogue, the ring and the bounds of a message; the plan (methods/frugal/private_plan.py),
which is how many messages a client sends over its lifetime, and each server's noise on each of them; how small and how
large a cohort may be, both servers' keys and the helper's address. Another federation config has another digest, so
nothing in it can change unnoticed.

A plan has stages, one for each message per client. There are three recipes:

    private     the plan's own messages, of length 1: what is popular first, then directions; each has its own noise
    spectral    Frugal's message, the same at every stage, clipped to a length; one noise for all
    gradients   ratings: gradients and a count for every item (ratings/sums.py), clipped to a length; one noise for all

Its noises are deviations of one server's, in units of the ring. What a lifetime's messages disclose together is `mu`
(accountant.py), and a client keeps to it whatever is requested. No sum may wrap:

    largest cohort x bound + 2 x 9.1 x noise < 2^31       (no noise is farther than 9.1 deviations)

Where messages carry a proof of their norm (norm_check/), the federation config says with how many projections, what
their squares
may add up to, and how long the proof is. All three are 0 where the operator has turned the check off.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any

from federank.errors import BadMessage, SettingError
from federank.privacy.accountant import mu_of_noise
from federank.secagg.canonical import canonical, digest, has_fields, hexadecimal, read_canonical
from federank.secagg.keys import PUBLIC_BYTES, SUITE, public_key, sign, verify
from federank.secagg.proof.parameters import Parameters
from federank.secagg.ring import C_INT, FARTHEST, LEAST_DEVIATION, MOST_DEVIATION, RECIPES
from federank.secagg.ring import GRADIENTS as GRADIENTS
from federank.secagg.ring import PRIVATE as PRIVATE
from federank.secagg.ring import SPECTRAL as SPECTRAL

FORMAT = "federank sums 1"
RING_BITS = 32

_NAME = "The federation config of sums"
_DIGEST_BYTES = 32


@dataclass(frozen=True, kw_only=True)
class SecaggConfig:
    """What cannot change while a season lasts."""

    federation_id: str
    """Digest that names this start of the federation; clients count their uploads across starts all the same."""
    catalogue: str
    """SHA-256 of the public list of items, in hexadecimal digits."""
    settings: str
    """SHA-256 of the method's settings as the leader publishes them, in hexadecimal digits."""
    recipe: str
    """What messages say: `private`, `spectral` or `gradients`."""
    items: int
    """How many items there are."""
    columns: int
    """Numbers a row of a message: private: a direction each, one less than the factors, but one at the first stage;
    spectral: the factors and one; gradients: those of all of an item's vectors, and a count."""
    clip: str
    """The length that a message is scaled down to before it becomes integers, as decimal text."""
    noises: tuple[int, ...]
    """Deviation of one server's noise at each stage of the plan, in units of the ring; all 0 where there is none."""
    power: str
    """An item of popularity c weighs c^power in messages, as decimal text."""
    delta: str
    """The probability with which epsilon may fail, as decimal text."""
    messages: int
    """How many messages a client sends over its lifetime."""
    least_cohort: int
    """No sum of fewer messages is ever opened."""
    largest_cohort: int
    """No sum of more is."""
    helper_origin: str
    """Where the helper is; clients fetch its key there and nowhere else."""
    helper_key: str
    """The helper's public key, in hexadecimal digits."""
    leader_key: str
    """The leader's public key, in hexadecimal digits."""
    season: int = 1
    """Number of the season that this config is of; the first is 1."""
    before: str = ""
    """Digest of the season before's config, in hexadecimal digits; empty for the first season."""
    starts_from: int = 0
    """The version whose content the season's first version continues; 0 for the first season."""
    first: str = ""
    """SHA-256 of the season's first content, in hexadecimal digits; empty where it is not stated."""
    until: str = ""
    """The last day on which a round may begin, as YYYY-MM-DD in UTC; empty: no end."""
    bound: int = C_INT
    ring: int = RING_BITS
    suite: str = SUITE
    projections: int = 0
    """With how many projections a message's norm is checked; 0: it is not checked at all."""
    limit: int = 0
    """What the squares of the projections may add up to; 0 where there are none."""
    proof_bytes: int = 0
    """How long the proof of a message's norm is, at the end of every upload."""
    min_support: int = 1
    """Items of fewer users are in no upload but those of the first stage. 1: every item is in every upload, and the
    config does not name this field."""
    format: str = FORMAT

    def __post_init__(self) -> None:
        check = self.norm_check()
        fixed = {"bound": C_INT, "ring": RING_BITS, "suite": SUITE, "format": FORMAT}
        fixed |= {"limit": check.limit if check else 0, "proof_bytes": check.proof_bytes if check else 0}
        for name, needed in fixed.items():
            if getattr(self, name) != needed:
                raise SettingError(f"{_NAME} has {needed!r} as {name}; found {str(getattr(self, name))[:80]!r}.")
        if self.recipe not in RECIPES:
            raise SettingError(f"{_NAME} has {' or '.join(RECIPES)} as recipe; found {self.recipe[:40]!r}.")
        for name in ("items", "columns", "messages", "min_support"):
            if getattr(self, name) < 1:
                raise SettingError(f"{_NAME} needs {name} of at least 1; found {getattr(self, name)}.")
        if not 2 <= self.least_cohort <= self.largest_cohort:
            raise SettingError(
                f"A cohort needs at least 2 clients and at most the largest cohort; found a least cohort of "
                f"{self.least_cohort:,} and a largest of {self.largest_cohort:,}."
            )
        self._check_season()
        self._check_noises()
        for name, fits in (
            ("clip", 0 < self.length_of_clip() < 1e30),
            ("power", abs(_number(self.power)) <= 1),
            ("delta", 0 < _number(self.delta) < 1),
        ):
            if not fits:
                raise SettingError(f"{_NAME} cannot have {getattr(self, name)[:40]!r} as its {name}.")

    def _check_season(self) -> None:
        if self.season < 1 or self.starts_from < 0 or (self.season == 1) != (self.before == ""):
            raise SettingError(
                f"{_NAME} has a season of at least 1, and names the season before if there is one; found season "
                f"{self.season} after {self.before[:8] or 'none'}."
            )
        if self.until and not is_date(self.until):
            raise SettingError(f"{_NAME} ends on a day such as 2027-06-30; found {self.until[:40]!r}.")

    def _check_noises(self) -> None:
        if len(self.noises) != self.messages:
            raise SettingError(
                f"{_NAME} needs a noise for each of {self.messages:,} messages; found {len(self.noises):,}."
            )
        most = max(self.noises)
        for noise in self.noises:
            if (noise or most) and not LEAST_DEVIATION <= noise <= MOST_DEVIATION:
                raise SettingError(
                    f"The noise of a server is 0 at every stage, or {LEAST_DEVIATION:,.0f} to {MOST_DEVIATION:,.0f} "
                    f"units of the ring; found {noise:,}."
                )
        if self.largest_cohort * C_INT + 2 * FARTHEST * most >= 2 ** (RING_BITS - 1):
            raise SettingError(
                f"A sum of {self.largest_cohort:,} messages with noise of {most:,} on it could wrap; a smaller "
                "largest cohort or less noise is needed."
            )

    def norm_check(self) -> Parameters | None:
        """The check of every message's norm; None where there is none."""
        return Parameters(self.projections) if self.projections else None

    def length_of_clip(self) -> float:
        """The clip as a number; not a number where it is none."""
        return _number(self.clip)

    def is_counting(self, stage: int) -> bool:
        """Whether a stage's uploads carry counts or popularity only: one number per item."""
        return stage == 0 and (self.recipe == PRIVATE or (self.recipe == SPECTRAL and self.min_support > 1))

    def columns_of(self, stage: int) -> int:
        """Numbers per row of a stage's uploads."""
        return 1 if self.is_counting(stage) else self.columns

    def length_of(self, stage: int, rows: int | None = None) -> int:
        """d: numbers per upload of this stage that covers this many items (None: all).

        A spectral one has the square of a row besides; counts always cover all items.
        """
        if self.is_counting(stage):
            return self.items
        covered = self.items if rows is None or self.min_support == 1 else rows
        return (covered + self.columns) * self.columns if self.recipe == SPECTRAL else covered * self.columns

    def allows_length(self, stage: int, length: int) -> bool:
        """Whether uploads of this stage may have this many numbers, whichever items are supported."""
        if self.is_counting(stage) or self.min_support == 1:
            return length == self.length_of(stage)
        return self.length_of(stage, 1) <= length <= self.length_of(stage) and length % self.columns == 0

    @property
    def has_noise(self) -> bool:
        """Whether both servers add noise to every sum. Sums without noise are not published."""
        return all(self.noises)

    def mu(self) -> float:
        """The Gaussian mechanism's mu of all uploads per client; infinite where there is no noise."""
        return mu_of_noise(noise / self.bound for noise in self.noises) if self.has_noise else math.inf

    def to_bytes(self) -> bytes:
        """The one way to write this federation config."""
        values = asdict(self)
        if self.min_support == 1:
            del values["min_support"]
        return canonical(values)

    def digest(self) -> bytes:
        """What clients pin."""
        return digest("federation config", self.to_bytes())

    def helper_public(self) -> bytes:
        """The helper's public key."""
        return bytes.fromhex(self.helper_key)

    def leader_public(self) -> bytes:
        """The leader's public key."""
        return bytes.fromhex(self.leader_key)


def fields_of_check(projections: int) -> dict[str, Any]:
    """What a federation config says of a check with this many projections; 0: of none."""
    if not projections:
        return {}
    check = Parameters(projections)
    return {"projections": projections, "limit": check.limit, "proof_bytes": check.proof_bytes}


_FIELDS: dict[str, type] = {
    name: {"int": int, "str": str}.get(str(kind), list) for name, kind in SecaggConfig.__annotations__.items()
}
_FIELDS_WITHOUT_SUPPORT = {name: kind for name, kind in _FIELDS.items() if name != "min_support"}


def config_from(content: bytes) -> SecaggConfig:
    """A federation config from the wire, once it is sure to be one."""
    statement: dict[str, Any] = read_canonical(content, _NAME)
    has_fields(statement, _NAME, _FIELDS if "min_support" in statement else _FIELDS_WITHOUT_SUPPORT)
    for name in ("catalogue", "settings", *(name for name in ("before", "first") if statement[name])):
        hexadecimal(statement[name], _DIGEST_BYTES, f"The {name} of a federation config")
    for name in ("helper_key", "leader_key"):
        public_key(hexadecimal(statement[name], PUBLIC_BYTES, f"The {name} of a federation config"))
    if statement.get("min_support") == 1:
        raise BadMessage(f"{_NAME} names a min_support only where it is 2 or more; this one names 1.")
    if not all(type(noise) is int for noise in statement["noises"]):
        raise BadMessage(f"The noises of {_NAME} must be integers; these are not.")
    try:
        return SecaggConfig(**{**statement, "noises": tuple(statement["noises"])})
    except SettingError as reason:
        raise BadMessage(str(reason)) from reason


def is_date(text: str) -> bool:
    """Whether this is a day, written as YYYY-MM-DD."""
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def is_over(until: str, today: str) -> bool:
    """Whether a season that lasts until this day is over; days compare as text."""
    return bool(until) and today > until


# Both servers sign the config of every season.


def sign_config(private: bytes, config: SecaggConfig) -> bytes:
    """A server's signature of a season's config."""
    return sign(private, "season", config.to_bytes())


def check_signed(config: SecaggConfig, leader: bytes, helper: bytes, helper_keys: Iterable[bytes]) -> None:
    """Refuse a config that not both servers have signed; `helper_keys` are all that the helper has had."""
    verify(config.leader_public(), "season", config.to_bytes(), leader)
    for key in helper_keys:
        try:
            verify(key, "season", config.to_bytes(), helper)
        except BadMessage:
            continue
        return
    raise BadMessage("The helper has not signed the config of this season; it is not to be used.")


def check_follows(before: SecaggConfig, now: SecaggConfig) -> None:
    """Refuse a config that is not of the season after this one, of the same federation and the same servers."""
    same = ("federation_id", "leader_key", "helper_origin", "recipe")
    if now.season != before.season + 1 or now.before != before.digest().hex():
        raise BadMessage(f"The config of season {now.season} does not name season {before.season} as the one before.")
    for name in same:
        if getattr(now, name) != getattr(before, name):
            raise BadMessage(f"The config of season {now.season} has another {name} than the season before.")
    if now.items < before.items:
        raise BadMessage(f"The config of season {now.season} has fewer items; items keep their numbers.")


def _number(text: str) -> float:
    """A decimal text as a number, if it is written in the one way there is; else not a number."""
    try:
        value = float(text)
    except ValueError:
        return math.nan
    return value if repr(value) == text else math.nan
