"""The federation config: what a federation is, the same for every worker and every restart.

It holds what no worker may decide for itself: the method and its settings, the catalogue, the key of the tickets; and
what is published beside it: a suggested policy, and what an item is called. bootstrap.py writes it, once.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from federank._numerics.arrays import IntVector
from federank.checks import check_range
from federank.errors import BadMessage, SettingError
from federank.federation.server import Content, Published
from federank.privacy.policy import Policy, default_basis
from federank.service.server.methods import ServerMethod, server_method
from federank.service.server.secure_config import Agreement, get_agreement
from federank.service.server.store.database import Connection
from federank.service.server.store.queries import get_content, get_value
from federank.service.server.store.seasons import Season, current_season

if TYPE_CHECKING:
    from federank.data.interactions import Interactions

# The catalogue: what there is to recommend. All that a server takes from a data set.


class Catalogue(NamedTuple):
    """A catalogue as it is sent: JSON, ready to go."""

    digest: str
    content: bytes
    compressed: bytes


def catalogue_of(data: Interactions, details: Mapping[Any, Mapping[str, Any]] | None = None) -> Catalogue:
    """The items of a data set, without anyone's history.

    `details` are further fields of items, by id, such as `titles` in other languages.
    """
    items: list[dict[str, Any]] = []
    for number, identity in enumerate(data.item_ids.tolist()):
        title = "" if data.titles is None else str(data.titles[number])
        categories = [] if data.categories is None else list(data.categories.of(number))
        item = {"id": identity, "title": title or str(identity), "categories": categories}
        items.append(item | dict((details or {}).get(identity, {})))
    return catalogue_from(items)


def catalogue_from(items: list[dict[str, Any]]) -> Catalogue:
    """The catalogue of these items."""
    digest = hashlib.sha256(_json(items)).hexdigest()[:32]
    content = _json({"digest": digest, "items": items})
    return Catalogue(digest, content, gzip.compress(content, mtime=0))


def read_catalogue(content: bytes) -> Catalogue:
    """A catalogue that the store has kept."""
    return Catalogue(str(json.loads(content)["digest"]), content, gzip.compress(content, mtime=0))


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


NOUNS = {"city": "place/places", "ml": "film/films"}
"""What the items of known data sets are called, by the beginning of the set's name."""
LONGEST_NOUN = 30
LONGEST_WORDS = 400


TEXTS = ("noun", "description", "seen", "run_by", "joining", "language", "translations")
"""What an item is called, one and many of them; what people should know of the federation; the button that hides an
item that someone knows already; who runs it, in their own words; how someone on the same network joins; the language of
name and description, as in HTML; name, description and noun in other languages."""


class FederationConfig(NamedTuple):
    """What a federation is."""

    name: str
    served: ServerMethod
    settings: Any  # the method itself
    catalogue: Catalogue
    n_items: int
    ticket_key: bytes
    admin_hash: bytes
    suggested_policy: dict[str, Any] | None
    texts: dict[str, Any]  # what people should know of it before they take part, by the names in TEXTS
    season: Season = Season(number=1)
    sums: Agreement | None = None  # where uploads are such that no single server can read one
    trained: bool = False  # whether the first model had learnt from people
    upload_period: float = 0.0  # seconds: a client uploads at most once in each such period

    @property
    def public_method(self) -> str:
        """The method as published: another word where uploads are sums, so that no one sends a plain one by mistake."""
        return self.served.name if self.sums is None else f"{self.served.name}-sums"

    @property
    def span(self) -> float | None:
        """How far the scale of ratings reaches; None where nothing is rated."""
        low, high = (getattr(self.settings, name, None) for name in ("lowest", "highest"))
        return None if low is None or high is None else float(high) - float(low)

    @property
    def federation_id(self) -> str:
        """Which federation this is: another word for each, worked out from its key, which it does not betray.

        A federation begun again at the same address has another one, whatever else is the same.
        """
        return federation_id_of(self.ticket_key)

    def extend(self, content: Content, n_items: int) -> Content:
        """The content of an earlier version with rows for items that were added since."""
        return self.served.extend(self.settings, content, n_items)

    def uploads_now(self, model: Published) -> int | None:
        """The most uploads of a client as long as this is the model; None: no other than its quota."""
        return self.served.uploads_now(self.settings, model)

    def encode(self, model: Published, rows: IntVector, round_number: int) -> bytes:
        """Some rows of the model as they are sent."""
        return self.served.encode(self.settings, model, rows, round_number)

    def why_not_publish(self, before: Published, model: Published, round_number: int) -> str | None:
        """Why the model that an aggregate has made must not be published; None where it may.

        It must be on the method's scale, and every client must be able to read the rows that have changed.
        """
        why = self.served.why_wrong(self.settings, before.content, model.content)
        return why or why_unreadable(self.served, self.settings, model, model.rows_since(before.version), round_number)


def why_unreadable(
    served: ServerMethod, settings: Any, model: Published, rows: IntVector, round_number: int
) -> str | None:
    """Why clients would refuse these rows of a model; None where they can read them."""
    try:
        served.decode(settings, served.encode(settings, model, rows, round_number), len(model.changed))
    except BadMessage as reason:
        return f"clients would refuse it: {reason}"
    return None


def federation_id_of(ticket_key: bytes) -> str:
    """The word that a federation with this key is known by."""
    return hashlib.blake2b(b"federation id", digest_size=16, key=ticket_key).hexdigest()


def read_config(connection: Connection) -> FederationConfig | None:
    """The federation config in the store; None where there is none yet."""
    kept = get_value(connection, "config")
    if kept is None:
        return None
    catalogue = get_content(connection, "catalogue")
    assert catalogue is not None, "federation config and catalogue are written together"
    served = server_method(kept["method"])
    settings = served.kind.made(kept["settings"])
    # What the operator has named, over what goes with the method's settings.
    usual, suggested = served.suggests(settings), get_value(connection, "suggested_policy")
    return FederationConfig(
        name=kept["name"],
        served=served,
        settings=settings,
        catalogue=read_catalogue(catalogue),
        n_items=kept["items"],
        season=current_season(connection),
        ticket_key=bytes.fromhex(kept["ticket_key"]),
        admin_hash=bytes.fromhex(get_value(connection, "admin")),
        suggested_policy=suggested if usual is None else usual | (suggested or {}),
        texts={name: get_value(connection, name) for name in TEXTS},
        sums=get_agreement(connection),
        trained=get_value(connection, "trained"),
        upload_period=float(get_value(connection, "upload_period") or 0),
    )


def suggested_policy(pi: float | None, sharing: str | None, item_epsilon: float | None) -> dict[str, Any] | None:
    """The suggested policy as published; None where the operator says nothing."""
    if pi is None:
        if sharing is not None or item_epsilon is not None:
            raise SettingError("A suggestion needs --suggest-pi: how much of what people like may be sent, 0 to 1.")
        return None
    check_range("suggest_pi", pi, 0, 1)
    sharing = sharing or "fixed-subset"
    values: dict[str, Any] = {"sharing": sharing, "pi": pi, "basis": default_basis(sharing)}
    if item_epsilon is not None:
        values["item_epsilon"] = item_epsilon
    Policy(**values)  # what clients could not follow is refused here
    return values


def words_of(flag: str, text: str, most: int = LONGEST_WORDS) -> str:
    """A public text about a federation: one line."""
    line = text.strip()
    if not line.isprintable() or not 0 < len(line) <= most:
        raise SettingError(
            f"{flag} is {line[:40]!r}; one line of 1 to {most} characters that can be printed is needed."
        )
    return line


def language_of(text: str) -> str:
    """The language of a federation's name and description, as HTML names it."""
    if not re.fullmatch(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*", text):
        raise SettingError(f"--language is {text!r}; a language tag is needed, such as en, de or pt-BR.")
    return text


def noun_of(text: str) -> dict[str, str]:
    """What the items are called, from `place/places`."""
    one, _, many = (part.strip() for part in text.partition("/"))
    if not all(word.isprintable() and 0 < len(word) <= LONGEST_NOUN and "/" not in word for word in (one, many)):
        raise SettingError(
            f"--noun is {text!r}; two words of at most {LONGEST_NOUN} letters are needed, for one item and for many, "
            "such as film/films."
        )
    return {"one": one, "many": many}


def usual_noun(source: str) -> dict[str, str] | None:
    """What the items of a known data set are called; None where the set is not known."""
    text = NOUNS.get(source.partition("-")[0])
    return None if text is None else noun_of(text)
