"""The charter of sums: made once, when a federation is established, together with the helper that it names.

The helper's key is fetched from the helper's own address, and the helper is asked to serve the federation before
anything is written: a federation whose helper is not there is not begun. The method's settings are in the charter by
their digest, and published in the very bytes that it is of; numbers that are not whole are text in them.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, NamedTuple

from federank.errors import BadMessage, SettingError
from federank.protocol.sums.canonical import canonical, digest
from federank.protocol.sums.charter import SumsCharter, charter_from
from federank.protocol.sums.identities import new_private_key, public_key_of
from federank.protocol.sums.rounding import C_INT
from federank.service.server.families.family import Family
from federank.service.server.store.database import Connection
from federank.service.server.store.statements import get_content, put_content

if TYPE_CHECKING:
    from federank.service.server.sums.helper_line import HelperLine

LARGEST_COHORT = 100_000
USUAL_CLIP = 4.0
"""The longest message where the operator names none."""


@dataclass(frozen=True, kw_only=True)
class SumsDemand:
    """What an operator asks for, for messages that no single server can read."""

    helper: str
    """The helper's address."""
    sigma: float = 8.0
    """Noise of each server, as a multiple of the longest message."""
    least_cohort: int = 50
    """No sum of fewer messages is opened."""
    authority: str | None = None
    """Certificates (PEM) by which the helper is known, where the system's do not know it."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.sigma) and self.sigma >= 0):
            raise SettingError(f"sigma is {self.sigma}; a number of 0 or more is needed (0: no noise, and no promise).")


def rounds_of_sums(demand: SumsDemand, rounds: dict[str, Any]) -> dict[str, Any]:
    """Settings of rounds that keep the promise of a least cohort: that many reports at least, and time for them."""
    least = demand.least_cohort
    if rounds.get("mode", "rounds") != "rounds":
        raise SettingError(
            f"mode is {rounds['mode']}, but a sum belongs to one round and one version of the model; leave --mode out."
        )
    usual = {"target": max(least, 50), "minimum": least, "deadline": 3600.0}
    if rounds.get("minimum", least) < least:
        raise SettingError(
            f"minimum is {rounds['minimum']}, but no sum of fewer than {least} messages is opened (--least-cohort); "
            "leave --minimum out."
        )
    return {**usual, **rounds}


def refuse_another_agreement(kept: Agreement | None, demand: SumsDemand) -> None:
    """A federation's helper, noise and least cohort were agreed on once."""
    if kept is None:
        raise SettingError(
            "The store holds a federation whose uploads its server reads; --helper is for a new --store."
        )
    charter = kept.charter
    for name, is_same, now in (
        ("helper", demand.helper.rstrip("/") == charter.helper_origin, charter.helper_origin),
        ("sigma", math.ceil(demand.sigma * C_INT) == charter.noise, f"{charter.noise / C_INT:g}"),
        ("least-cohort", demand.least_cohort == charter.least_cohort, charter.least_cohort),
    ):
        if not is_same:
            raise SettingError(
                f"The store holds a federation with --{name} {now}; leave it out, or name another --store for a new "
                "federation."
            )


class Agreement(NamedTuple):
    """What a leader keeps of sums."""

    charter: SumsCharter
    private: bytes  # the leader's identity key
    settings: bytes  # the method's settings, as they are published
    authority: str | None

    def __repr__(self) -> str:
        return "Agreement(...)"

    @property
    def name(self) -> str:
        """The charter's digest, as it stands in addresses."""
        return self.charter.digest().hex()

    def line(self) -> HelperLine:
        """A line to the helper."""
        from federank.service.server.sums.helper_line import HelperLine

        return HelperLine(self.charter.helper_origin, self.private, self.authority)


def agree(
    demand: SumsDemand, family: Family, settings: Any, founding: str, catalogue: bytes, n_items: int
) -> Agreement:
    """The charter of sums of a new federation, agreed on with its helper."""
    from federank.service.server.sums.helper_line import HelperAway, HelperLine, HelperRefused

    if family.sums is None:
        raise SettingError(
            f"The federation's method is {family.method}, whose messages cannot be sent as sums; --helper goes with "
            "--method frugal."
        )
    if settings.clip is None:
        raise SettingError("Sums need a longest message; give it with --clip.")
    private = new_private_key()
    line = HelperLine(demand.helper.rstrip("/"), private, demand.authority)
    try:
        identity = line.identity()
        charter = SumsCharter(
            founding=founding,
            catalogue=hashlib.sha256(catalogue).hexdigest(),
            settings=digest("settings", settings_text(settings)).hex(),
            items=n_items,
            columns=family.sums.columns(settings),
            blocks=1,
            seed=settings.seed,
            clip=repr(float(settings.clip)),
            noise=math.ceil(demand.sigma * C_INT),
            messages=settings.messages,
            least_cohort=demand.least_cohort,
            largest_cohort=LARGEST_COHORT,
            helper_origin=identity.origin,
            helper_key=identity.key.hex(),
            leader_key=public_key_of(private).hex(),
        )
        line.register(charter.to_bytes())
    except (HelperAway, HelperRefused, BadMessage) as reason:
        raise SettingError(f"The helper at {demand.helper} cannot be used: {reason} Is it running there?") from reason
    finally:
        line.close()
    return Agreement(charter, private, settings_text(settings), demand.authority)


def settings_text(settings: Any) -> bytes:
    """A method's settings as they are published: canonical JSON, numbers that are not whole as text."""
    return canonical(
        {name: repr(value) if isinstance(value, float) else value for name, value in asdict(settings).items()}
    )


def settings_from(family: Family, told: dict[str, Any]) -> Any:
    """The same settings from what was published."""
    kinds = {field.name: str(field.type) for field in fields(family.settings)}
    return family.settings(
        **{
            name: float(value)
            if isinstance(value, str) and _is_number(value) and "float" in kinds.get(name, "")
            else value
            for name, value in told.items()
        }
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


_CHARTER, _PRIVATE, _SETTINGS, _AUTHORITY = "sums charter", "sums key", "sums settings", "sums authority"


def put_agreement(connection: Connection, agreement: Agreement) -> None:
    """Keep what was agreed, within the transaction that establishes the federation."""
    put_content(connection, _CHARTER, agreement.charter.to_bytes())
    put_content(connection, _PRIVATE, agreement.private)
    put_content(connection, _SETTINGS, agreement.settings)
    put_content(connection, _AUTHORITY, (agreement.authority or "").encode())


def get_agreement(connection: Connection) -> Agreement | None:
    """What was agreed; None where uploads are plain."""
    content = get_content(connection, _CHARTER)
    if content is None:
        return None
    private, settings, authority = (get_content(connection, name) or b"" for name in (_PRIVATE, _SETTINGS, _AUTHORITY))
    return Agreement(charter_from(content), private, settings, authority.decode() or None)
