"""The federation as a client sees it: every request there is, and the record that its answer becomes, or a refusal.

    GET /federation          FederationInfo: what the federation is, its recipe, what it suggests
    GET /catalogue           Catalogue: the items, in the order of their numbers
    GET /model               the full shared model
    POST /clients            an id and a token; nothing about the user is in it
    GET /work                Ticket: leave to take part in one round (a long poll)
    GET /tasks/TICKET        Broadcast: what changed in the model since the version that the client has
    POST .../update          the Update; its receipt
    GET .../outcome          what became of it
    DELETE /clients/me       the token dies

A client trusts no answer. Numbers must be numbers in their range, arrays must have the shapes that the catalogue and
the number of factors ask for, every value must be finite, item numbers must ascend, and the model must be of the
version and the round that were promised. What would be refused is never half used: a reader gives a complete record, or
raises.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import quote

from federank.errors import BadAnswer, BadMessage, FedeRankError, NoAnswer, Refused
from federank.federation.client import Model, Rows
from federank.federation.method import Scale
from federank.methods.registry import federated_method, served_names
from federank.service.client.http import Client, integer, json_object, number, shown, text
from federank.service.client.methods import ClientMethod
from federank.service.client.rules import (
    API,
    BETWEEN_POLLS,
    LONG_POLL,
    LONGEST_PERIOD,
    MOST_CATALOGUE_BYTES,
    MOST_ITEMS,
    MOST_ROUND,
    MOST_VERSION,
)

SUMS = "-sums"
"""What a federation adds to the name of its method where no single server can read an upload."""


@dataclass(frozen=True, kw_only=True)
class FederationInfo:
    """What a federation says it is."""

    name: str
    method: str  # what it learns by
    is_summed: bool = False  # whether uploads are such that no single server can read one (sums.py)
    settings: Any  # as its recipe says, of the method's record
    n_items: int
    catalogue: str  # digest of the catalogue
    federation_id: str  # which federation it is: none from a server that does not say
    version: int
    suggested_policy: dict[str, Any] | None
    season: int = 1
    until: str = ""  # the last day on which a round of the season may begin; empty: no end
    invited_only: bool = False  # whether its operator lets in invited clients alone
    upload_period: float = 0.0  # seconds: the client uploads at most once in each such period
    document: str = field(repr=False, compare=False)  # the very answer, which a client keeps

    @property
    def rules(self) -> ClientMethod:
        """What this client does with the method."""
        return ClientMethod(self.settings, self.is_summed)

    @property
    def uploads(self) -> int | None:
        """How many uploads a client makes in this season; None where they are not counted."""
        return self.rules.messages()

    @property
    def scale(self) -> Scale | None:
        """What ratings there are; None where people like items, and rate none."""
        scale: Scale | None = self.settings.scale
        return scale

    @property
    def state_size(self) -> int:
        """How many numbers a client keeps between rounds."""
        return self.rules.state_size


class Catalogue(NamedTuple):
    """The items that a federation knows, in the order of their numbers."""

    ids: list[str]
    titles: list[str]
    categories: list[list[str]]
    sha256: str = ""  # of the bytes as published
    ended: Sequence[int] = ()  # numbers of items that are there no more: neither uploaded nor recommended

    def live_ids(self) -> list[str]:
        """The ids, without those of items that have ended: their places are empty."""
        ended = set(self.ended)
        return ["" if number in ended else name for number, name in enumerate(self.ids)]


class Ticket(NamedTuple):
    """Leave to take part in one round."""

    ticket: str
    round_number: int
    version: int
    deadline_seconds: float
    most_rows: int
    season: int = 1


# The requests.


def fetch_info(client: Client, attempts: int | None = None) -> FederationInfo:
    """What the federation is."""
    return read_info(client.request("GET", "/federation", attempts=attempts).content)


def fetch_catalogue(client: Client, info: FederationInfo, attempts: int | None = None) -> Catalogue:
    """The federation's items."""
    packed = {"Accept-Encoding": "gzip"}
    response = client.request("GET", "/catalogue", most_bytes=MOST_CATALOGUE_BYTES, attempts=attempts, headers=packed)
    return read_catalogue(response.content, info)


def fetch_model(client: Client, info: FederationInfo, attempts: int | None = None) -> Model:
    """The full shared model as it is now."""
    response = client.request("GET", "/model", most_bytes=info.rules.model_bytes, attempts=attempts)
    return merged(read_rows(response.content, info), None, info.n_items)


def register(client: Client, attempts: int | None = None) -> tuple[str, str]:
    """A new client's id there and its token. The server learns that one more client is there, and nothing else."""
    headers = {"Content-Type": "application/json"}
    invited = {} if client.invitation is None else {"invitation": client.invitation}
    body = json.dumps(invited).encode()
    return read_enrolment(client.request("POST", "/clients", body, attempts=attempts, headers=headers).content)


def unregister(client: Client, attempts: int | None = None) -> None:
    """Let the server forget the token."""
    client.request("DELETE", "/clients/me", attempts=attempts)


def wait_for_work(client: Client) -> Ticket | None:
    """A ticket, or none if there was nothing to do for a while."""
    began = time.monotonic()
    response = client.request("GET", f"/work?wait={LONG_POLL}", hold=LONG_POLL)
    if response.status == 200:
        return read_ticket(response.content)
    if time.monotonic() - began < BETWEEN_POLLS:
        client.sleep(BETWEEN_POLLS)  # a server that answers at once instead of holding the line is not rushed
    return None


def fetch_rows(client: Client, info: FederationInfo, ticket: Ticket, have: int | None, deadline: float) -> Rows:
    """The rows that a ticket's round is played on: those that changed since the version that the client has."""
    path = _task_path(ticket.ticket) + ("" if have is None else f"?have={have}")
    response = client.request("GET", path, most_bytes=info.rules.model_bytes, deadline=deadline)
    rows = read_rows(response.content, info)
    refuse_another_round(rows, ticket)
    return rows


def refuse_another_round(rows: Rows, ticket: Ticket) -> None:
    """The rows of a ticket must be of the round and the version that it promised."""
    if (rows.round_number, rows.model.version) != (ticket.round_number, ticket.version):
        raise BadAnswer(
            f"The server promised round {ticket.round_number} on version {ticket.version} and sent round "
            f"{rows.round_number} on version {rows.model.version}; nothing was sent."
        )


def send_update(
    client: Client, ticket: str, body: bytes, deadline: float | None, is_wanted: Callable[[], bool]
) -> bool:
    """Send the bytes of an Update; whether the receipt is for them. Idempotent: the server keeps a ticket's once."""
    response = client.request("POST", f"{_task_path(ticket)}/update", body, deadline=deadline, is_wanted=is_wanted)
    return read_receipt(response.content) == hashlib.sha256(body).hexdigest()


def _task_path(ticket: str) -> str:
    return f"/tasks/{quote(ticket, safe='')}"


# The answers.


def read_info(content: bytes) -> FederationInfo:
    """The answer to GET /federation."""
    answer = json_object(content, "about the federation")
    named = str(answer.get("method"))
    method, is_summed = named.removesuffix(SUMS), named.endswith(SUMS)
    kind = federated_method(method)
    if answer.get("api") != API or kind is None:
        words = [name + suffix for suffix in ("", SUMS) for name in served_names()]
        raise BadAnswer(
            f"The server speaks version {answer.get('api')!r} of the interface and method {named[:40]!r}; this client "
            f"speaks version {API} and {' or '.join(map(repr, words))}. Another version may be needed, or the package "
            "that has the method."
        )
    recipe = answer.get("recipe")
    if not isinstance(recipe, dict):
        raise BadAnswer("The server says nothing about its recipe; a federation's address is needed.")
    n_items = integer(answer.get("items"), 2, MOST_ITEMS)
    try:
        settings = kind.announced(recipe, n_items, secure=is_summed)
    except FedeRankError as reason:
        raise BadAnswer(f"The server's recipe cannot be followed: {reason}") from reason
    suggested, season = answer.get("suggested_policy"), answer.get("season")
    season = season if isinstance(season, dict) else {}
    if not is_summed and answer.get("uploads", "plain") != "plain":
        # A message that the server could read must never go where people were promised that it cannot.
        raise BadAnswer(
            "This federation takes only messages that no single server can read, and this client cannot make them. "
            "Nothing was sent; another version of federank may be needed."
        )
    return FederationInfo(
        name=shown(answer.get("name", "")),
        method=method,
        is_summed=is_summed,
        settings=settings,
        n_items=n_items,
        catalogue=text(answer.get("catalogue")),
        federation_id=text(answer["federation_id"]) if "federation_id" in answer else "",
        version=integer(answer.get("version"), 0, MOST_VERSION),
        suggested_policy=suggested if isinstance(suggested, dict) else None,
        season=integer(season.get("number", 1), 1, MOST_ROUND),
        until=shown(season.get("until", "")),
        invited_only=answer.get("invited_only") is True,
        upload_period=min(number(answer.get("upload_period_seconds", 0)), LONGEST_PERIOD),
        document=content.decode(),
    )


def read_catalogue(content: bytes, info: FederationInfo) -> Catalogue:
    """The answer to GET /catalogue: as many items as the federation said, of the digest it said."""
    answer = json_object(content, "about its catalogue")
    items = answer.get("items")
    if answer.get("digest") != info.catalogue or not isinstance(items, list) or len(items) != info.n_items:
        raise BadAnswer("The server's catalogue is not the one that it announced; try again, or write to its operator.")
    try:
        ids = [shown(item["id"]) for item in items]
        titles = [shown(item.get("title") or "") for item in items]
        categories = [[shown(name) for name in item.get("categories") or ()] for item in items]
    except (KeyError, TypeError, AttributeError) as reason:
        raise BadAnswer("The server's catalogue has items without an id.") from reason
    if len(set(ids)) != len(ids):
        raise BadAnswer("The server's catalogue has two items of the same id.")
    ended = [number for number, item in enumerate(items) if item.get("ended")]
    return Catalogue(ids, titles, categories, hashlib.sha256(content).hexdigest(), ended)


def read_enrolment(content: bytes) -> tuple[str, str]:
    """The answer to POST /clients: the client's id there and its token."""
    answer = json_object(content, "to an enrolment")
    return text(answer.get("client")), text(answer.get("token"))


def read_ticket(content: bytes) -> Ticket:
    """The answer to GET /work."""
    answer = json_object(content, "about work")
    return Ticket(
        ticket=text(answer.get("ticket")),
        round_number=integer(answer.get("round"), 0, MOST_ROUND),
        version=integer(answer.get("version"), 0, MOST_VERSION),
        deadline_seconds=number(answer.get("deadline_seconds")),
        most_rows=integer(answer.get("most_rows"), 0),
        season=integer(answer.get("season", 1), 1, MOST_ROUND),
    )


def read_receipt(content: bytes) -> str:
    """The answer to an upload: the digest of what the server stored."""
    return text(json_object(content, "to an upload").get("receipt"))


class Outcome(NamedTuple):
    """What became of an upload: a word, why where it was left out, the helper's record where it is in no sum."""

    word: str
    message: str
    record: str
    members: str = ""  # ids of the uploads in the sum of a round that has ended without this one


def helper_is_away(client: Client) -> bool:
    """Whether the leader says that its helper does not answer; one attempt, and no where it cannot be asked."""
    try:
        health = json_object(client.request("GET", "/status", attempts=1).content, "about its state").get("health")
    except (NoAnswer, Refused):
        return False
    reasons = health.get("reasons") if isinstance(health, dict) else None
    codes = [reason.get("code") for reason in reasons or () if isinstance(reason, dict)]
    return "helper-away" in codes


def fetch_outcome(client: Client, ticket: str) -> Outcome:
    """What the server says became of a message; one attempt."""
    return read_outcome(client.request("GET", f"{_task_path(ticket)}/outcome", attempts=1).content)


def read_outcome(content: bytes) -> Outcome:
    """The answer to a question about an upload."""
    answer = json_object(content, "about an upload")
    word, message = text(answer.get("outcome")), shown(answer.get("message", ""))
    record, members = (part if isinstance(part := answer.get(name), str) else "" for name in ("record", "members"))
    return Outcome(word, message, record, members)


def read_rows(content: bytes, info: FederationInfo) -> Rows:
    """A model or a part of one, with its round and version."""
    try:
        return info.rules.read_rows(content)
    except BadMessage as reason:
        raise BadAnswer(f"The server's model cannot be used, and was not: {reason}") from reason


def merged(rows: Rows, have: Model | None, n_items: int) -> Model:
    """The full model: the rows received over those that the client has already."""
    if have is None:
        if len(rows.items) != n_items:
            raise BadAnswer(
                f"The server sent {len(rows.items):,} of {n_items:,} rows of its model to a client that has none."
            )
        return rows.model
    received = rows.model
    if received.version < have.version:
        raise BadAnswer(
            f"The server offers version {received.version} of its model, and this client has version {have.version} "
            "already: versions never go back. Nothing was sent; ask the operator whether the federation was reset, "
            "and if so enrol again with another --state."
        )
    return have.merged(rows.items, received)
