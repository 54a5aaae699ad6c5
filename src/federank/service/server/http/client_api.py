"""What a client does: enrol, wait for work, fetch its task, send its Update, leave.

A client is a random name and a token. The server knows nothing else of it: no account, no profile, no address kept.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from federank.errors import BadMessage
from federank.privacy.accountant import ABSOLUTE, MEASURES, MOST_ANSWERS, SQUARED
from federank.service.server.http.limits import bucket_of, enforce_rate_limit, range_of, read_body
from federank.service.server.http.public_api import check_int, newest
from federank.service.server.http.responses import Refusal, bytes_response, json_response
from federank.service.server.selection import QuotaSpent
from federank.service.server.service import Service
from federank.service.server.store.evaluation import keep_answer
from federank.service.server.store.queries import (
    Fate,
    Outcome,
    Upload,
    enrol,
    keep_upload,
    leave,
    outcome_of,
    withdraw,
)
from federank.service.server.store.secure import sum_row
from federank.service.server.store.writer import TALLIES
from federank.service.server.tickets import Ticket, hash_of_token, new_client, new_token, read_ticket, use_of

LONGEST_WAIT = 60
SMALL_BODY = 4096
MOST_MEMBER_BYTES = 2**18
"""Ids of 16,384 uploads: an answer about a larger round comes without them."""
TYPES = ("application/octet-stream", "application/vnd.safetensors")

_REFUSED: dict[Outcome, tuple[int, str]] = {
    "repeated": (409, "This ticket has been used for another Update; the first one counts."),
    "late": (410, "The round has ended without this Update; wait for the next."),
    "gone": (401, "The client has left; enrol again to take part."),
    "banned": (403, "The operator takes no upload of this client any more."),
}

_STAYS_SPENT = "It is in no sum, and stays spent."
_LEFT_OUT = {
    "norm-too-large": f"The message was left out: its proof that it is no longer than a message may be does not hold. "
    f"{_STAYS_SPENT}",
    "unopened": f"The message was left out: the helper could not open it. {_STAYS_SPENT}",
    "copied": f"The message was left out: another message of its round has the same id. {_STAYS_SPENT}",
    "malformed": f"The message was left out: it has another form than the messages of its round. {_STAYS_SPENT}",
    "abandoned": "The round was discarded, and the message is in no version of the model.",
}


async def enrol_client(service: Service, request: Request) -> Response:
    """A new client: a random id and a token, shown this once."""
    enforce_rate_limit(service.enrolment_limit, _address(request))
    enforce_rate_limit(service.range_limit, range_of(_address(request)))
    code = _invitation(await read_body(request, SMALL_BODY, service.trust.body_seconds))
    used = None if code is None else hash_of_token(code)
    client, token = new_client(), new_token()
    token_hash = hash_of_token(token)
    needed = service.invited_only
    if not await service.writer.write(
        lambda connection: enrol(connection, client, token_hash, used, invited_only=needed), TALLIES
    ):
        raise _not_invited()
    return json_response({"client": client, "token": token}, 201)


async def leave_federation(service: Service, request: Request) -> Response:
    """Leave: the client is forgotten, its token dies, and an Update that is not aggregated yet is withdrawn."""
    client, token_hash = await who_asks(service, request)
    key = service.config.ticket_key
    await service.writer.write(lambda connection: withdraw(connection, client, key))
    service.leader.mark_log_dirty()
    await service.writer.write(lambda connection: leave(connection, client), TALLIES)
    service.forget(token_hash)
    return Response(None, 204)


async def work(service: Service, request: Request) -> Response:
    """Wait for a task; a ticket for it, or nothing within the wait; no more once the client's messages are spent."""
    client, token_hash = await who_asks(service, request)
    if service.invited_only:
        owner = await service.client_of_token(token_hash)
        if owner is None or not owner.invited:  # enrolled while the operator let everyone in
            raise _not_invited()
    seconds = min(check_int(request, "wait") or 0, LONGEST_WAIT)

    async def gone() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    # Even a client that will not wait is given the moment that asking the store takes.
    ticket = await service.selection.wait(client, max(seconds, 0.25), gone)
    if ticket is None:
        return Response(None, 204)
    if isinstance(ticket, QuotaSpent):
        raise Refusal(
            409,
            "spent",
            f"This client has been invited {ticket.invitations} times, as often as this season allows; "
            "models are still there for it.",
        )
    return json_response(
        {
            "ticket": str(ticket),
            "round": ticket.round_number,
            "version": ticket.version,
            "deadline_seconds": round(service.latest.seconds_left(), 3),
            "most_rows": service.form.most_rows,
            "season": service.config.season.number,
        }
    )


async def task(service: Service, request: Request) -> Response:
    """The Broadcast of a ticket: the rows changed since the version that the client has."""
    client, _ = await who_asks(service, request)
    ticket = _ticket(service, request, client)
    now = service.latest.round
    model = service.latest.models.get(ticket.version)
    ended = now is not None and (now.number, now.state != "open") > (ticket.round_number, False)
    _refuse_unseen(service, ticket)
    if ended or model is None or service.latest.has_enough(ticket.round_number):
        raise Refusal(410, "late", "The round of this ticket has ended, or has enough uploads; wait for the next.")
    content = service.encoded.since(model, check_int(request, "have"), ticket.round_number)
    service.metrics.download(len(content))
    return bytes_response(content, {"X-Model-Version": str(model.version), "Cache-Control": "no-store"})


async def upload(service: Service, request: Request) -> Response:
    """An Update: stored durably before it is acknowledged; the receipt is its digest.

    Idempotent: the same bytes with the same ticket are stored once, and get the same receipt.
    """
    client, _ = await who_asks(service, request)
    try:
        ticket = _ticket(service, request, client)
        if request.headers.get("content-type", TYPES[0]).split(";")[0].strip().lower() not in TYPES:
            raise Refusal(415, "type", f"An Update is safetensors, sent as {TYPES[0]}.")
        body = await read_body(request, service.form.most_bytes, service.trust.body_seconds)
        _refuse_unseen(service, ticket)
        clipped = _judge(service, ticket, body)
    except Refusal as refusal:
        service.refused(refusal.slug)
        raise
    content = Upload(client, ticket, hashlib.sha256(body).digest(), body, clipped)
    outcome, number = await service.writer.write(lambda connection: keep_upload(connection, content))
    service.selection.has_answered(client)
    if outcome in _REFUSED:
        status, message = _REFUSED[outcome]
        service.refused(outcome)
        raise Refusal(status, outcome, message)
    service.metrics.upload(outcome, len(body), clipped)
    service.selection.has_uploaded(client, number)
    service.ranges.note(_address(request))
    receipt = {"receipt": content.digest.hex(), "round": number, "stored": True}
    return json_response(receipt, 201 if outcome == "stored" else 200)


async def outcome(service: Service, request: Request) -> Response:
    """What became of an upload: `waiting` until its round has ended; then `counted`, `abandoned`, or a reason.

    `counted` comes with the number of uploads in the round's aggregate. Under secure aggregation, `abandoned` comes
    with the helper's signed record of the round, where there is one; and `absent`, of an upload that came too late or
    never, with this record and the ids of the uploads in the sum.
    """
    client, _ = await who_asks(service, request)
    ticket = _ticket(service, request, client)
    found = await service.read(lambda connection: outcome_of(connection, ticket.use))
    if found is None and service.config.sums is not None:
        return await _absent(service, ticket)
    if found is None:
        raise Refusal(404, "unknown", "No Update came with this ticket, or it was long ago.")
    word = _word_for(found)
    more: dict[str, int | str] = {"uploads": found.uploads} if word == "counted" else {}
    if word == "abandoned" and found.helper_record:
        more = {"record": found.helper_record.decode(errors="replace")}
    return json_response({"outcome": word, "message": _LEFT_OUT.get(word, "")} | more)


async def _absent(service: Service, ticket: Ticket) -> Response:
    """What shows that a sum was made without the upload of a ticket, or that there was none; `waiting` until then."""
    row = await service.read(lambda connection: sum_row(connection, ticket.round_number))
    if row is None:
        raise Refusal(404, "unknown", "This round was never offered.")
    if not row.record:
        return json_response({"outcome": "waiting", "message": ""})
    members = row.members.hex() if len(row.members) <= MOST_MEMBER_BYTES else ""
    record = row.helper_record.decode(errors="replace")
    return json_response({"outcome": "absent", "message": "", "record": record, "members": members})


def _word_for(found: Fate) -> str:
    """The outcome of an upload: that it was prepared for a sum says nothing yet about its round."""
    if found.outcome not in ("", "counted"):
        return found.outcome
    if found.state == "aggregated":
        return "counted"
    return "abandoned" if found.state == "abandoned" and found.is_confirmed else "waiting"


async def evaluate(service: Service, request: Request) -> Response:
    """A randomised answer: is the item that this client holds back in its top 10, with the model of this ticket?"""
    client, _ = await who_asks(service, request)
    body = await read_body(request, SMALL_BODY, service.trust.body_seconds)
    try:
        answer = json.loads(body)
        text, hit, measure = answer["ticket"], answer["hit"], answer.get("measure", ABSOLUTE)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        text = hit = measure = None
    if not isinstance(text, str) or not isinstance(hit, bool):
        raise Refusal(422, "malformed", 'Name the ticket that the model came with: {"ticket": "...", "hit": true}.')
    ticket = read_ticket(service.config.ticket_key, client, text[:100])
    if ticket is None:
        raise Refusal(404, "foreign", "An answer is about a model that was sent to this client, with its own ticket.")
    version = ticket.version
    if measure not in (MEASURES if service.config.span is not None else (ABSOLUTE,)):
        raise Refusal(422, "malformed", "A measure is absolute or squared, and only where ratings are predicted.")
    reporter = use_of(service.config.ticket_key, f"hit {client}", version)
    is_squared = measure == SQUARED
    is_first = await service.writer.write(
        lambda connection: keep_answer(connection, client, version, reporter, hit, is_squared)
    )
    if is_first is None:
        raise Refusal(409, "answered", f"This client has given {MOST_ANSWERS} answers, as many as there are.")
    return json_response({"counted": is_first}, 201 if is_first else 200)


def _invitation(body: bytes) -> str | None:
    """The invitation that a client brings, where it brings one."""
    try:
        answer = json.loads(body or b"{}").get("invitation")
    except (ValueError, AttributeError, RecursionError):
        return None
    return answer if isinstance(answer, str) and answer.isascii() and len(answer) <= 100 else None


async def who_asks(service: Service, request: Request) -> tuple[str, bytes]:
    """The client whose token a request carries, and the token's hash."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not 20 <= len(token) <= 100:
        raise _no_users()
    token_hash = hash_of_token(token)
    owner = await service.client_of_token(token_hash)
    if owner is None:
        raise _no_users()
    enforce_rate_limit(service.client_limit, owner.client)
    if owner.banned:
        raise Refusal(403, "banned", _REFUSED["banned"][1])
    return owner.client, token_hash


def _refuse_unseen(service: Service, ticket: Ticket) -> None:
    """Refuse a ticket that another worker gave out, about a newer version than this one has seen."""
    if ticket.version > newest(service).version:
        raise Refusal(503, "behind", "This worker is catching up; try again.", {"Retry-After": "1"})


def _judge(service: Service, ticket: Ticket, body: bytes) -> int:
    """Refuse what no client can have computed from its ticket's version; else how many of its rows are too long."""
    config, model = service.config, service.latest.models.get(ticket.version)
    try:
        clipped = config.served.judge(body, service.form_for(ticket.version))
    except BadMessage as reason:
        raise Refusal(422, "malformed", str(reason)) from reason
    if model is not None and service.trust.refuse_implausible and config.sums is None:
        why = config.served.implausible(config.settings, model, body)
        if why is not None:
            raise Refusal(422, "implausible", why)
    return clipped


def _ticket(service: Service, request: Request, client: str) -> Ticket:
    ticket = read_ticket(service.config.ticket_key, client, str(request.path_params["ticket"]))
    if ticket is None:
        raise Refusal(404, "foreign", "This ticket was not given to this client.")
    return ticket


def _not_invited() -> Refusal:
    return Refusal(
        403,
        "not-invited",
        "This federation takes clients by invitation only, and this client has none, or one that was used. Ask the "
        "operator for one, and enrol with it (--invitation CODE).",
    )


def _no_users() -> Refusal:
    return Refusal(
        401,
        "unknown-client",
        "No client has this token; enrol with POST /api/v1/clients.",
        {"WWW-Authenticate": "Bearer"},
    )


def _address(request: Request) -> str:
    client: Any = request.client
    return bucket_of(client.host) if client else "unknown"
