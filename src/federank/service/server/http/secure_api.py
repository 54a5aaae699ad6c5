"""What anyone may fetch of a federation of sums: its federation config, every round's offer, the records of those
that ended.

With these and the helper's lists anyone can recompute every version (`federank audit verify`).
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from federank.secagg.config import config_from
from federank.service.server.http.public_api import check_int
from federank.service.server.http.responses import JSON, Refusal, bytes_response, json_response, sums_not_published
from federank.service.server.secure_config import Agreement
from federank.service.server.service import Service
from federank.service.server.store import secure as store
from federank.service.server.store.seasons import CONFIG, FIRST, SETTINGS, content_of
from federank.service.server.store.secure import SumRow

MOST_LISTED = 1000
_FRESH = {"Cache-Control": "no-cache"}


async def config(service: Service, request: Request) -> Response:
    """The config of a season; without a number, of the current one. Clients pin its digest."""
    return bytes_response(await _of_season(service, request, CONFIG), _FRESH, JSON)


async def settings(service: Service, request: Request) -> Response:
    """The method's settings, in the bytes whose digest is in the config of the season."""
    return bytes_response(await _of_season(service, request, SETTINGS), _FRESH, JSON)


async def offer(service: Service, request: Request) -> Response:
    """A round's offer, as the helper has signed it; without a number, the newest round's."""
    return bytes_response((await _row(service, request)).offer, _FRESH, JSON)


async def rounds(service: Service, request: Request) -> Response:
    """Every round that was ever offered, from a number on, with its state and version; `skipped`: a restored backup."""
    _agreement(service)
    first = check_int(request, "from") or 0
    rows = await service.read(lambda connection: store.listed_rounds(connection, first, MOST_LISTED))
    return json_response({"rounds": [row._asdict() for row in rows]})


async def record(service: Service, request: Request) -> Response:
    """The leader's signed record of a round."""
    row = await _row(service, request)
    if not row.record:
        raise Refusal(404, "unknown", "This round has no record: it has not ended, or ended before it was closed.")
    return bytes_response(row.record, _FRESH, JSON)


async def total(service: Service, request: Request) -> Response:
    """The leader's noisy sum of shares of a round that was aggregated; sums without noise are not published."""
    return await _sum(service, request, 0)


async def helper_total(service: Service, request: Request) -> Response:
    """The helper's noisy sum of masks, as the leader received it: for a helper whose store was restored."""
    return await _sum(service, request, 1)


async def helper_record(service: Service, request: Request) -> Response:
    """The helper's signed record of a round, as the leader received it."""
    row = await _row(service, request)
    if not row.helper_record:
        raise Refusal(404, "unknown", "The helper has sent no record of this round.")
    return bytes_response(row.helper_record, _FRESH, JSON)


async def _sum(service: Service, request: Request, which: int) -> Response:
    number = _number(service, request)
    if not _agreement(service).config.has_noise:
        raise sums_not_published()
    content = (await service.read(lambda connection: store.published_sums(connection, number)))[which]
    if not content:
        raise Refusal(404, "unknown", "No sum is kept of this round: it was not aggregated, or the sum was dropped.")
    return bytes_response(content, _FRESH)


async def first(service: Service, request: Request) -> Response:
    """The first version of a season, with all that the first server step started from.

    Sums without noise are not published, nor what later seasons remember of them.
    """
    config = config_from(await _of_season(service, request, CONFIG))
    if not config.first:
        raise sums_not_published()
    return bytes_response(await _of_season(service, request, FIRST), _FRESH)


async def _of_season(service: Service, request: Request, name: str) -> bytes:
    _agreement(service)
    number = check_int(request, "season") or service.config.season.number
    content: bytes | None = await service.read(lambda connection: content_of(connection, number, name))
    if content is None:
        raise Refusal(404, "unknown", f"There is no season {number}.")
    return content


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
