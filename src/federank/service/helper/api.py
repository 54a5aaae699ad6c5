"""What a helper can be asked over HTTP, by whom, and what it answers.

    GET  /identity                                anyone, from any page: the key, its fingerprint, the keys before it
    POST /federations                             a federation config, signed by the leader that it names; signed by
                                                  the helper too from then on
    POST /federations/CONFIG/prune               the leader: drop the sums of a season that has ended
    POST /federations/CONFIG/rounds/N/offer      the leader: terms in, a signed offer out
    POST /federations/CONFIG/rounds/N/prepare    the leader: reports in, which of them stand out
    POST /federations/CONFIG/rounds/N/answer     the leader: a set of reports in, the record and the noisy sum out
    POST /federations/CONFIG/rounds/N/abandon    the leader: the record of a round that has ended without an answer
    GET  /federations/CONFIG/rounds              anyone: rounds and their states, and the next season's config
    GET  /federations/CONFIG/rounds/N/offer | record | set | sum       anyone: what is published of a round
    GET  /health, /ready
    GET  /metrics                                 at the operator's address only

A leader's request carries a signature of its path and of its body's digest by the key in the federation config. Nothing
but a federation config is read of anyone else.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import Response

from federank.errors import BadMessage, StoreAway
from federank.secagg.config import SecaggConfig, config_from, sign_config
from federank.secagg.exchange import (
    SIGNATURE_HEADER,
    check_body,
    check_set,
    decode_reports,
    report_bytes,
    verify_request,
)
from federank.secagg.keys import fingerprint
from federank.secagg.proof.preparing import encode_looks
from federank.secagg.ring import RingVector
from federank.secagg.upload import Report
from federank.service.helper import rounds, store
from federank.service.helper.rounds import NotNow
from federank.service.helper.service import CONTENT_TYPE, HelperService, price
from federank.service.helper.store import Round
from federank.service.server.http.application import Application, Entry, Headers
from federank.service.server.http.limits import read_body
from federank.service.server.http.listening import (
    ConnectionLimits,
    follow_signals,
    proxies_of,
    run,
    serve_until,
    stop_soon,
    uvicorn_server,
)
from federank.service.server.http.responses import (
    JSON,
    Refusal,
    bytes_response,
    json_response,
    sums_not_published,
)
from federank.service.server.store.database import Connection

MAX_CONFIG = 100_000
MOST_TERMS = 2000
MOST_PREPARED = 1024
"""Reports that may be prepared in one request."""
MOST_LISTED = 1000
# Any page may read who the helper is: a client in a browser fetches it from here, and from nowhere else.
OPEN_TO_PAGES = {"Access-Control-Allow-Origin": "*", "Cache-Control": "no-cache"}


async def identity(service: HelperService, request: Request) -> Response:  # noqa: ARG001 (every endpoint is given both)
    """Who this helper is."""
    known = service.helper.identities
    successions = [
        {"old": old.public.hex(), "new": new.public.hex(), "signature": new.signature.hex()}
        for old, new in pairwise(known)
    ]
    key = service.helper.identity.public
    statement = {"key": key.hex(), "fingerprint": fingerprint(key), "origin": service.helper.origin}
    return json_response({**statement, "successions": successions}, headers=OPEN_TO_PAGES)


async def register(service: HelperService, request: Request) -> Response:
    """Take a federation on, or the next season of one, and sign its config."""
    body = await read_body(request, MAX_CONFIG, service.settings.body_seconds)
    config = config_from(body)
    _check_body(body, _signed_digest(request, config))
    await service.ask(lambda connection: rounds.register(connection, service.helper, body))
    signature = sign_config(service.helper.identity.private, config).hex()
    return json_response({"config": config.digest().hex(), "signature": signature}, 201)


async def offer(service: HelperService, request: Request) -> Response:
    """The signed offer of a round, on these terms."""
    config, number, body = await _asked(service, request, MOST_TERMS)
    made = await service.ask(lambda connection: rounds.offer(connection, service.helper, config, number, body))
    return bytes_response(made, {}, JSON)


async def prepare(service: HelperService, request: Request) -> Response:
    """Which reports stand: one digit for each, 1 or 0; where messages carry proofs, the helper's look at each."""
    config, number, reports = await _reports(service, request, MOST_PREPARED)
    rounds.refuse_copies(reports)
    check, helper, leader = config.norm_check(), service.helper, fingerprint(config.leader_public())
    looked = await service.work(
        leader,
        lambda connection, some: rounds.prepare(connection, helper, config, number, some, check),
        reports,
        price(await _length(service, config, number), is_checked=check is not None),
    )
    looks = [look for some in looked for look in some]
    stood = sum(look is not None for look in looks)
    service.metrics.reports(stood, len(looks) - stood)
    if check is None:
        return json_response({"stands": "".join("0" if look is None else "1" for look in looks)})
    return bytes_response(encode_looks(looks), {})


async def answer(service: HelperService, request: Request) -> Response:
    """The record and the noisy sum of masks of a set."""
    largest = (await _config(service, request)).largest_cohort
    config, number, reports = await _reports(service, request, largest)
    rounds.refuse_copies(reports)
    check_set([report.id for report in reports], config.least_cohort, config.largest_cohort)
    helper, leader = service.helper, fingerprint(config.leader_public())
    masks: RingVector | None = None
    with suppress(NotNow):  # where it was answered before, the same answer is given again
        parts = await service.work(
            leader,
            lambda connection, some: rounds.masks_of(connection, helper, config, number, some),
            reports,
            price(await _length(service, config, number), is_checked=False),
        )
        masks = np.sum(parts, axis=0, dtype=np.uint32)
    content = await service.ask(lambda connection: rounds.answer(connection, helper, config, number, reports, masks))
    service.log.say("round answered", round=number, messages=len(reports))
    return bytes_response(content, {})


async def abandon(service: HelperService, request: Request) -> Response:
    """End a round without an answer."""
    config, number, _ = await _asked(service, request, 0)
    record = await service.ask(lambda connection: rounds.abandon(connection, service.helper, config, number))
    service.log.say("round abandoned", round=number)
    return bytes_response(record, {}, JSON)


async def prune(service: HelperService, request: Request) -> Response:
    """Drop the sums of a season that has ended."""
    config, _ = await _leaders(service, request, 0)
    dropped = await service.ask(lambda connection: rounds.prune(connection, config))
    service.log.say("season pruned", season=config.season, sums=dropped)
    return json_response({"sums": dropped})


async def listing(service: HelperService, request: Request) -> Response:
    """Rounds of a season and their states, from a number on; and the season that has begun after it, by its config."""
    name = (await _config(service, request)).digest()
    first = _integer(request.query_params.get("from", "0"))
    listed = await service.ask(lambda connection: store.rounds_of(connection, name, first, MOST_LISTED))
    successor = await service.ask(lambda connection: store.successor_of(connection, name))
    rounds_listed = [{"round": one.number, "state": one.state} for one in listed]
    return json_response({"rounds": rounds_listed, "successor": successor.hex()})


async def published_offer(service: HelperService, request: Request) -> Response:
    """The offer of a round, as everyone was given it."""
    return bytes_response((await _round(service, request)).offer, OPEN_TO_PAGES, JSON)


async def record(service: HelperService, request: Request) -> Response:
    """The signed record of a round that has ended."""
    return bytes_response((await _ended(service, request)).record, {}, JSON)


async def members(service: HelperService, request: Request) -> Response:
    """The ids of the reports in a round's sum, 16 bytes each, ascending."""
    return bytes_response((await _ended(service, request)).members, {})


async def total(service: HelperService, request: Request) -> Response:
    """The noisy sum of masks of a round; sums without noise are not published."""
    config, round_row = await _config(service, request), await _ended(service, request)
    if not config.has_noise:
        raise sums_not_published()
    content = await service.ask(lambda connection: store.total_of(connection, config.digest(), round_row.number))
    return bytes_response(content, {})


async def health(service: HelperService, request: Request) -> Response:  # noqa: ARG001
    """Whether the process is alive."""
    return json_response({"alive": True})


async def ready(service: HelperService, request: Request) -> Response:  # noqa: ARG001
    """Whether the process can serve: the store takes what it is given, keys can be kept, the certificate is valid."""
    faults = await service.check()
    if faults:
        raise Refusal(503, next(iter(faults)), " ".join(faults.values()), {"Retry-After": "10"})
    return json_response({"ready": True})


async def metrics(service: HelperService, request: Request) -> Response:  # noqa: ARG001
    """Counts, as Prometheus reads them."""
    return bytes_response(service.metrics.text(await service.ask(store.count_rounds)), {}, CONTENT_TYPE)


async def _asked(service: HelperService, request: Request, most: int) -> tuple[SecaggConfig, int, bytes]:
    """A leader's request about a round: whose federation it is about, which round, and its body."""
    config, body = await _leaders(service, request, most)
    return config, _integer(request.path_params["number"]), body


async def _leaders(service: HelperService, request: Request, most: int) -> tuple[SecaggConfig, bytes]:
    """A leader's request: whose federation it is about, and its body, which is read only if the leader has signed it.

    Else anyone could have the helper hold bodies of the longest length.
    """
    config = await _config(service, request)
    signed = _signed_digest(request, config)
    await service.ask(lambda connection: rounds.refuse_leader(connection, service.helper, config))
    body = await read_body(request, most, service.settings.body_seconds)
    _check_body(body, signed)
    return config, body


async def _reports(service: HelperService, request: Request, most: int) -> tuple[SecaggConfig, int, list[Report]]:
    """A leader's request that is about reports, at most this many, in the form that the federation config gives
    them.
    """
    is_checked = (await _config(service, request)).norm_check() is not None
    config, number, body = await _asked(service, request, most * report_bytes(is_checked=is_checked))
    return config, number, decode_reports(body, is_checked=is_checked)


async def _length(service: HelperService, config: SecaggConfig, number: int) -> int:
    """How many numbers an upload of a round has; the longest of the plan where no such round is open."""

    def find(connection: Connection) -> int:
        round_row = store.round_of(connection, config.digest(), number)
        if round_row is None:
            return max(config.length_of(stage) for stage in range(min(2, config.messages)))
        return rounds.offer_of(service.helper, round_row).length

    return await service.ask(find)


def _signed_digest(request: Request, config: SecaggConfig) -> bytes:
    """The digest that the body of a leader's request must have."""
    try:
        return verify_request(config.leader_public(), request.url.path, request.headers.get(SIGNATURE_HEADER, ""))
    except BadMessage as reason:
        raise _unsigned(reason) from reason


def _check_body(body: bytes, signed: bytes) -> None:
    try:
        check_body(body, signed)
    except BadMessage as reason:
        raise _unsigned(reason) from reason


def _unsigned(reason: BadMessage) -> Refusal:
    message = f"The federation's leader has not signed this request. {reason}"
    return Refusal(401, "unsigned", message, {"Connection": "close"})


async def _config(service: HelperService, request: Request) -> SecaggConfig:
    text = str(request.path_params["config"])
    content = None
    if len(text) == 64 and set(text) <= set("0123456789abcdef"):
        name = bytes.fromhex(text)
        content = await service.ask(lambda connection: store.config_of(connection, name))
    if content is None:
        raise Refusal(404, "unknown", "This helper serves no federation with this federation config.")
    return config_from(content)


async def _round(service: HelperService, request: Request) -> Round:
    config, number = await _config(service, request), _integer(request.path_params["number"])

    def find(connection: Connection) -> Round | None:
        return store.round_of(connection, config.digest(), number)

    round_row: Round | None = await service.ask(find)
    if round_row is None:
        raise Refusal(404, "unknown", f"Round {number} was never offered.")
    return round_row


async def _ended(service: HelperService, request: Request) -> Round:
    round_row = await _round(service, request)
    if round_row.state == store.OPEN:
        raise Refusal(404, "under-way", f"Round {round_row.number} has not ended; nothing of it is published yet.")
    return round_row


def _integer(text: Any) -> int:
    if not (isinstance(text, str) and text.isascii() and text.isdecimal() and len(text) < 16):
        raise Refusal(404, "unknown", "Rounds are named by integers.")
    return int(text)


_ROUND = "/federations/{config}/rounds/{number}"
_STATE = Entry("GET", "/health", health), Entry("GET", "/ready", ready)
ROUTES = (
    Entry("GET", "/identity", identity),
    Entry("GET", "/api/v1/identity", identity),  # where a user's client looks
    Entry("POST", "/federations", register),
    Entry("POST", "/federations/{config}/prune", prune),
    Entry("GET", "/federations/{config}/rounds", listing),
    Entry("POST", f"{_ROUND}/offer", offer),
    Entry("POST", f"{_ROUND}/prepare", prepare),
    Entry("POST", f"{_ROUND}/answer", answer),
    Entry("POST", f"{_ROUND}/abandon", abandon),
    Entry("GET", f"{_ROUND}/offer", published_offer),
    Entry("GET", f"{_ROUND}/record", record),
    Entry("GET", f"{_ROUND}/set", members),
    Entry("GET", f"{_ROUND}/sum", total),
    *_STATE,
)
OPERATOR_ROUTES = (Entry("GET", "/metrics", metrics), *_STATE)


# The helper's one process: its application, its sockets, and its end.
#
# One process is enough: a helper opens thousands of seeds a second, and only leaders ask it. It may be killed at any
# moment; what it must not forget is in the store, and the keys of rounds under way are in memory that outlives it.


SAFETY: Headers = [
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
]
_STATUS = {"unknown": 404, "full": 507, "not-allowed": 403}


class HelperApp(Application):
    """What leaders, clients and anyone who watches talk to."""

    def __init__(self, service: HelperService, routes: tuple[Entry, ...] = ROUTES) -> None:
        super().__init__(service, routes, SAFETY)

    def refusal(self, reason: Exception) -> Refusal:
        """The reasons of a helper besides; all are counted."""
        refusal = self._refusal(reason) or super().refusal(reason)
        self._service.metrics.refused(refusal.slug)
        return refusal

    def _refusal(self, reason: Exception) -> Refusal | None:
        if isinstance(reason, BadMessage):
            return Refusal(422, "malformed", str(reason))
        if isinstance(reason, NotNow):
            return Refusal(_STATUS.get(reason.slug, 409), reason.slug, str(reason))
        if getattr(reason, "errno", None) == errno.ENOSPC or (isinstance(reason, StoreAway) and reason.is_full):
            return Refusal(503, "full", "There is no space left on the helper's disk.", {"Retry-After": "10"})
        return None


def serve(
    service: HelperService,
    public: socket.socket,
    operator: socket.socket,
    *,
    certificate: Path | None = None,
    key: Path | None = None,
    proxies: str | None = None,
) -> int:
    """Serve until stopped by a signal; an exit code. Round keys, identity and store are the service's."""
    settings = service.settings
    limits = ConnectionLimits(
        header_timeout=settings.header_seconds,
        reading_timeout=settings.body_seconds,
        per_address=settings.address_connections,
        is_proxy=proxies_of(proxies),
    )
    service.certificate = certificate

    async def work() -> None:
        servers = [
            uvicorn_server(HelperApp(service), limits, certificate, key, proxies),
            uvicorn_server(HelperApp(service, OPERATOR_ROUTES), limits),
        ]
        stopping = follow_signals(servers, certificate, key, service.log)
        service.log.say("serving")
        watching = asyncio.create_task(service.watch())
        await serve_until(stopping, servers, [public, operator], watching.cancel)
        await stop_soon(asyncio.to_thread(service.stop), service.log)

    return run(work())
