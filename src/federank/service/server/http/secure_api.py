"""What anyone may fetch of a federation of sums: its federation config, every round's offer, the records of those
that ended.

With these and the helper's anyone can check what devices were offered and recompute every version (`federank verify`).
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from federank.service.server.http.public_api import check_int
from federank.service.server.http.responses import JSON, Refusal, bytes_response, json_response
from federank.service.server.secure_config import Agreement
from federank.service.server.service import Service
from federank.service.server.store import secure as store
from federank.service.server.store.database import Connection
from federank.service.server.store.queries import get_content
from federank.service.server.store.secure import SumRow

MOST_LISTED = 1000
_FRESH = {"Cache-Control": "no-cache"}


async def config(service: Service, request: Request) -> Response:  # noqa: ARG001 (every endpoint is given both)
    """The federation config of sums: what was promised once. Devices pin its digest."""
    return bytes_response(_agreement(service).config.to_bytes(), _FRESH, JSON)


async def settings(service: Service, request: Request) -> Response:  # noqa: ARG001
    """The method's settings, in the bytes whose digest is in the federation config."""
    return bytes_response(_agreement(service).settings, _FRESH, JSON)


async def offer(service: Service, request: Request) -> Response:
    """A round's offer, as the helper has signed it; without a number, the newest round's."""
    return bytes_response((await _row(service, request)).offer, _FRESH, JSON)


async def rounds(service: Service, request: Request) -> Response:
    """The rounds that have ended and were offered, from a number on."""
    _agreement(service)
    first = check_int(request, "from") or 0
    found = await service.read(lambda connection: store.rounds_with_records(connection, first, MOST_LISTED))
    return json_response({"rounds": found})


async def record(service: Service, request: Request) -> Response:
    """The leader's signed record of a round."""
    row = await _row(service, request)
    if not row.record:
        raise Refusal(404, "unknown", "This round has no record: it has not ended, or ended before it was closed.")
    return bytes_response(row.record, _FRESH, JSON)


async def total(service: Service, request: Request) -> Response:
    """The leader's noisy sum of shares of a round that was folded."""
    number = _number(service, request)

    def find(connection: Connection) -> bytes:
        return store.published_sums(connection, number)[0]

    content = await service.read(find)
    if not content:
        raise Refusal(404, "unknown", "No sum is kept of this round: it was not folded, or its sum was dropped since.")
    return bytes_response(content, _FRESH)


async def first(service: Service, request: Request) -> Response:  # noqa: ARG001
    """Version 0 with all that the first fold started from."""
    _agreement(service)
    return bytes_response(await service.read(lambda connection: get_content(connection, "first content")), _FRESH)


def _agreement(service: Service) -> Agreement:
    if service.config.sums is None:
        raise Refusal(
            409, "plain", "This federation's uploads are plain: its server reads them, and there are no sums."
        )
    return service.config.sums


def _number(service: Service, request: Request) -> int:
    _agreement(service)
    named = check_int(request, "round")
    newest = service.latest.round
    return named if named is not None else newest.number if newest else 0


async def _row(service: Service, request: Request) -> SumRow:
    number = _number(service, request)
    row: SumRow | None = await service.read(lambda connection: store.sum_row(connection, number))
    if row is None:
        raise Refusal(404, "unknown", f"Round {number} was never offered.")
    return row
