"""The federation config of sums: made once, when a federation is established, together with the helper that it names.

The helper's key is fetched from the helper's own address, and the helper is asked to serve the federation before
anything is written: a federation whose helper is not there is not begun. The method's settings are in the federation
config by
their digest, and published in the very bytes that it is of; numbers that are not integers are text in them.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, NamedTuple

from federank.errors import BadMessage, LeaderNotAllowed, SettingError
from federank.federation.method import FederatedMethod
from federank.federation.server import Guarantee
from federank.privacy.accountant import epsilon_of_mu
from federank.secagg.canonical import canonical, digest
from federank.secagg.config import SecaggConfig, config_from, fields_of_check, sign_config
from federank.secagg.keys import SIGNATURE_BYTES, fingerprint, new_private_key, public_key_of
from federank.secagg.proof.parameters import USUAL_PROJECTIONS
from federank.service.server.helper_line import HelperAway, HelperLine, HelperRefused
from federank.service.server.store.database import Connection
from federank.service.server.store.queries import get_content, lock_metadata, put_content
from federank.service.server.store.seasons import CONFIG, SETTINGS, SIGNATURES, all_seasons, content_of

LARGEST_COHORT = 100_000
USUAL_COHORT = 50
USUAL_DELTA = 1e-6
USUAL_CLIP = 1.0
"""A longest message, where few people play Frugal's own recipe without noise: nearly all are of that length then, so
that none has more weight than others. It costs at most .6 % of P@10, and leaves malicious clients a quarter of what 4
would."""

MOST_MESSAGES = 10_000
"""Most messages per client in a federation config."""


@dataclass(frozen=True, kw_only=True)
class SecaggSpec:
    """What an operator asks for, for messages that no single server can read."""

    helper: str
    """The helper's address."""
    sigma: float | None = None
    """Noise of each server, as a multiple of the longest message; messages may get unequal noise, together as if each
    had this. 0: none, and no guarantee."""
    epsilon: float | None = None
    """The same as a guarantee for all uploads per client, against anyone who runs one of the two servers. Where
    neither is named, the size of a round decides (`for_size`)."""
    delta: float | None = None
    """The probability with which epsilon may fail; `USUAL_DELTA` where none is named."""
    least_cohort: int | None = None
    """No sum of fewer messages is opened; `USUAL_COHORT` where none is named."""
    projections: int | None = None
    """With how many projections the norm of every message is checked (docs/norm-proof.md); 0: not at all."""
    authority: str | None = None
    """Certificates (PEM) by which the helper is known, where the system's do not know it."""
    allow: Callable[[bytes], None] | None = None
    """Lets a helper on this machine serve the leader with this public key; another helper's operator does that."""

    def __post_init__(self) -> None:
        if self.sigma is not None and not (math.isfinite(self.sigma) and self.sigma >= 0):
            raise SettingError(
                f"sigma is {self.sigma}; a number of 0 or more is needed (0: no noise, and no guarantee)."
            )
        if self.epsilon is not None and not (math.isfinite(self.epsilon) and self.epsilon > 0):
            raise SettingError(f"epsilon is {self.epsilon}; a number above 0 is needed.")
        if self.sigma is not None and self.epsilon is not None:
            raise SettingError("epsilon and sigma say the same thing in two ways; give one of them.")
        if not 0 < self.chosen_delta < 1:
            raise SettingError(f"delta is {self.delta}; a probability above 0 and below 1 is needed.")
        fields_of_check(self.projections or 0)

    def for_size(self, people: int, items: int, affordable: Callable[[int, int, float], float | None]) -> SecaggSpec:
        """The same with noise by the size, where neither sigma nor epsilon was named: none until it costs little."""
        if (self.sigma, self.epsilon) != (None, None):
            return self
        epsilon = affordable(people, items, self.chosen_delta)
        if epsilon is None:
            return replace(self, sigma=0.0)
        return replace(self, epsilon=math.ceil(100 * epsilon) / 100)

    def given(self) -> dict[str, Any]:
        """The values that matter only at the first start, as the flags of `serve` name them; None: not given."""
        return {
            "helper": self.helper.rstrip("/"),
            "sigma": self.sigma,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "least_cohort": self.least_cohort,
            "norm_check": "off" if self.projections == 0 else self.projections,
        }

    @property
    def guarantee(self) -> Guarantee:
        """What is guaranteed for all messages per client."""
        return Guarantee(self.sigma, self.epsilon, self.chosen_delta)

    @property
    def chosen_delta(self) -> float:
        """The probability with which epsilon may fail: as the operator says, or as is usual."""
        return USUAL_DELTA if self.delta is None else self.delta

    @property
    def chosen_cohort(self) -> int:
        """The smallest sum that is opened: as the operator says, or as is usual."""
        return USUAL_COHORT if self.least_cohort is None else self.least_cohort

    @property
    def chosen_projections(self) -> int:
        """How a new federation's messages are checked: as the operator says, or as is usual."""
        return USUAL_PROJECTIONS if self.projections is None else self.projections


def rounds_of_sums(spec: SecaggSpec, rounds: dict[str, Any]) -> dict[str, Any]:
    """Settings of rounds that keep the guarantee of a least cohort: that many reports at least, and time for them."""
    least = spec.chosen_cohort
    # Anyone who is invited spends a message per client, so no one is invited to spare.
    usual = {"target": max(least, 50), "minimum": least, "deadline": 3600.0, "over_selection": 1.0}
    if rounds.get("minimum", least) < least:
        raise SettingError(
            f"minimum is {rounds['minimum']}, but no sum of fewer than {least} messages is opened (--least-cohort); "
            "leave --minimum out."
        )
    return {**usual, **rounds}


def agreed_values(config: SecaggConfig) -> dict[str, Any]:
    """What was agreed on once, as the flags of `serve` name it."""
    mu = config.mu()  # infinite without noise
    return {
        "helper": config.helper_origin,
        "sigma": math.sqrt(config.messages) / mu,
        "epsilon": epsilon_of_mu(mu, float(config.delta)) if math.isfinite(mu) else None,
        "delta": float(config.delta),
        "least_cohort": config.least_cohort,
        "norm_check": config.projections or "off",
    }


class Agreement(NamedTuple):
    """What a leader keeps of sums."""

    config: SecaggConfig
    private: bytes  # the leader's identity key
    settings: bytes  # the method's settings, as they are published
    authority: str | None
    signatures: tuple[bytes, bytes]  # the leader's and the helper's, of the config

    def __repr__(self) -> str:
        return "Agreement(...)"

    @property
    def name(self) -> str:
        """The federation config's digest, as it stands in addresses."""
        return self.config.digest().hex()

    def line(self) -> HelperLine:
        """A line to the helper."""
        return HelperLine(self.config.helper_origin, self.private, self.authority)


def refuse_absent_helper(spec: SecaggSpec) -> None:
    """Refuse a helper that does not answer, or does not say who it is, before anything is made for it."""
    try:
        with closing(HelperLine(spec.helper.rstrip("/"), b"", spec.authority)) as line:
            line.identity()
    except (HelperAway, HelperRefused, BadMessage) as reason:
        raise _unusable(spec, reason) from reason


def _unusable(spec: SecaggSpec, reason: Exception) -> SettingError:
    asked = " Is it running there?" if isinstance(reason, HelperAway) else ""
    return SettingError(f"The helper at {spec.helper} cannot be used: {reason}{asked}")


def leader_key(connection: Connection) -> bytes:
    """The leader's private identity key, made before there is a federation: the helper's operator allows it first."""
    with connection.transaction():
        lock_metadata(connection)  # of two servers that start at once both get the same key
        private = get_content(connection, _PRIVATE)
        if private is None:
            private = new_private_key()
            put_content(connection, _PRIVATE, private)
    return private


def agree(
    spec: SecaggSpec,
    method: FederatedMethod,
    federation_id: str,
    catalogue: bytes,
    n_items: int,
    private: bytes,
    first: bytes,
) -> Agreement:
    """The federation config of sums of a new federation, agreed on with its helper."""
    if len(method.noises) > MOST_MESSAGES:
        raise SettingError(
            f"{method.quota} is {len(method.noises):,}; a federation of sums has {MOST_MESSAGES:,} at most, because "
            "the federation config that every client reads names the noise of each. Choose fewer."
        )
    try:
        with closing(HelperLine(spec.helper.rstrip("/"), private, spec.authority)) as line:
            identity = line.identity()
            config = SecaggConfig(
                federation_id=federation_id,
                catalogue=hashlib.sha256(catalogue).hexdigest(),
                settings=settings_digest(method),
                recipe=method.recipe,
                items=n_items,
                columns=method.columns,
                clip=repr(float(method.norm_bound)),
                noises=method.noises,
                power=repr(float(method.popularity_power)),
                delta=repr(float(spec.chosen_delta)),
                messages=len(method.noises),
                least_cohort=spec.chosen_cohort,
                largest_cohort=LARGEST_COHORT,
                helper_origin=identity.origin,
                helper_key=identity.key.hex(),
                leader_key=public_key_of(private).hex(),
                first=hashlib.sha256(first).hexdigest(),
                min_support=method.support,
                **fields_of_check(spec.chosen_projections),
            )
            if spec.allow is not None:
                spec.allow(public_key_of(private))
            signatures = sign_config(private, config), line.register(config.to_bytes())
    except HelperRefused as refusal:
        if refusal.slug != "not-allowed":
            raise _unusable(spec, refusal) from refusal
        own = fingerprint(public_key_of(private))
        raise LeaderNotAllowed(
            f"The helper at {spec.helper} has not allowed this leader's key yet: {own}. Its operator allows it with "
            f"`federank helper allow '{own}'`; then start this server again with the same --store, which keeps the key."
        ) from refusal
    except (HelperAway, BadMessage) as reason:
        raise _unusable(spec, reason) from reason
    return Agreement(config, private, settings_text(method), spec.authority, signatures)


def register_all(connection: Connection, line: HelperLine) -> None:
    """Have a helper that does not know the federation, as one that was restored, register its seasons in order."""
    for season in all_seasons(connection):
        line.register(content_of(connection, season.number, CONFIG) or b"")


def settings_text(settings: Any) -> bytes:
    """A method's settings as they are published: canonical JSON, numbers that are not integers as text."""
    return canonical(
        {name: repr(value) if isinstance(value, float) else value for name, value in asdict(settings).items()}
    )


def settings_digest(settings: Any) -> str:
    """What a config names a method's settings by."""
    return digest("settings", settings_text(settings)).hex()


def settings_from(kind: type[FederatedMethod], published: dict[str, Any]) -> Any:
    """The same settings from what was published."""
    hints = {field.name: str(field.type) for field in fields(kind)}
    return kind.made(
        {
            name: float(value)
            if isinstance(value, str) and _is_number(value) and "float" in hints.get(name, "float")
            else value
            for name, value in published.items()
        }
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


_PRIVATE, _AUTHORITY = "sums key", "sums authority"


def put_agreement(connection: Connection, agreement: Agreement) -> None:
    """Keep what was agreed, within the transaction that establishes the federation or begins another season."""
    put_content(connection, CONFIG, agreement.config.to_bytes())
    put_content(connection, SETTINGS, agreement.settings)
    put_content(connection, SIGNATURES, b"".join(agreement.signatures))
    if get_content(connection, _AUTHORITY) is None:
        put_content(connection, _AUTHORITY, (agreement.authority or "").encode())


def put_authority(connection: Connection, authority: str | None) -> None:
    """Keep other certificates by which the helper is known, within the caller's transaction."""
    put_content(connection, _AUTHORITY, (authority or "").encode())


def get_agreement(connection: Connection) -> Agreement | None:
    """What was agreed; None where uploads are plain."""
    content = get_content(connection, CONFIG)
    if content is None:
        return None
    names = _PRIVATE, SETTINGS, _AUTHORITY, SIGNATURES
    private, settings, authority, signed = (get_content(connection, name) or b"" for name in names)
    signatures = signed[:SIGNATURE_BYTES], signed[SIGNATURE_BYTES:]
    return Agreement(config_from(content), private, settings, authority.decode() or None, signatures)
