"""The offer: what the helper signs once a round, the same for everyone.

    federation config   digest of the federation's federation config           model    digest of the model, as
    clients read it
    round     numbers only rise                             version  of the model
    stage     which of a client's messages it asks for        length   d, numbers a message
    columns   numbers a row of it
    clip      the longest message, as decimal text          scale    what that length becomes in integers
    noise     deviation of one server's noise on the sum, in integers
    key       a fresh HPKE key, of this round alone         expires  seconds since 1970, by the helper's clock

A client takes an offer if the key it pinned has signed it, if the federation config is the one it pinned, if stage,
clip, scale
and noise are of the federation config's plan, and if the model is the one in its hands. So the leader cannot single a
person out
by another model, another key or less noise.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from federank.errors import BadMessage
from federank.secagg.canonical import canonical, digest, has_fields, hexadecimal, read_canonical
from federank.secagg.config import SecaggConfig
from federank.secagg.keys import PUBLIC_BYTES, SIGNATURE_BYTES, public_key, sign, verify

CLOCKS_APART = 600
"""Seconds by which a client's clock may be ahead of the helper's."""

_NAME = "An offer"


@dataclass(frozen=True, kw_only=True)
class Offer:
    """One round's terms."""

    config: str
    round: int
    version: int
    model: str
    length: int
    stage: int
    columns: int
    clip: str
    scale: int
    noise: int
    key: str
    expires: int

    def to_bytes(self) -> bytes:
        """The one way to write this offer."""
        return canonical(asdict(self))

    def digest(self) -> bytes:
        """What every report of the round is tied to."""
        return digest("offer", self.to_bytes())

    def public(self) -> bytes:
        """The round's HPKE key."""
        return bytes.fromhex(self.key)


_FIELDS: dict[str, type] = {name: int if kind == "int" else str for name, kind in Offer.__annotations__.items()}


def sign_offer(private: bytes, offer: Offer) -> bytes:
    """The offer as it travels: with the helper's signature."""
    signature = sign(private, "offer", offer.to_bytes())
    return canonical({"offer": asdict(offer), "signature": signature.hex()})


def read_offer(content: bytes, helper: bytes) -> Offer:
    """An offer from the wire, if the helper has signed it."""
    statement = read_canonical(content, _NAME)
    has_fields(statement, _NAME, {"offer": dict, "signature": str})
    offer = statement["offer"]
    has_fields(offer, _NAME, _FIELDS)
    signature = hexadecimal(statement["signature"], SIGNATURE_BYTES, "The signature of an offer")
    verify(helper, "offer", canonical(offer), signature)
    for name in ("config", "model"):
        hexadecimal(offer[name], 32, f"The {name} of an offer")
    public_key(hexadecimal(offer["key"], PUBLIC_BYTES, "The key of an offer"))
    if min(offer[name] for name in ("round", "version", "stage", "noise", "expires")) < 0 or offer["length"] < 1:
        raise BadMessage("Numbers of an offer are not negative, and its length is above 0; these are not so.")
    return Offer(**offer)


def config_of_offer(content: bytes) -> str:
    """The digest of the config that an offer of ours was made for."""
    return str(read_canonical(content, _NAME)["offer"]["config"])


def check_offer(offer: Offer, config: SecaggConfig, model: bytes, now: float, rows: int | None = None) -> None:
    """Refuse an offer that is not about this federation config and this model, or that has expired.

    `rows` is how many items the model has that uploads may cover; None where that is not known.
    """
    if offer.config != config.digest().hex():
        raise BadMessage(
            "The offer belongs to another federation config than the one that was pinned; nothing is sent."
        )
    if offer.model != model.hex():
        raise BadMessage("The offer is about another model than the one that the leader gave; nothing is sent.")
    if offer.stage >= config.messages or (offer.columns, offer.clip, offer.scale, offer.noise) != (
        *(config.columns_of(offer.stage), config.clip, config.bound, config.noises[offer.stage]),
    ):
        raise BadMessage(
            "The offer has another message, clip or noise than the federation config's plan; nothing is sent."
        )
    fits = config.allows_length(offer.stage, offer.length)
    if not fits or (rows is not None and offer.length != config.length_of(offer.stage, rows)):
        raise BadMessage("The offer is about messages of another length than the federation config's; nothing is sent.")
    if now > offer.expires + CLOCKS_APART:
        raise BadMessage("The offer has expired; nothing is sent. The next round has another one.")
