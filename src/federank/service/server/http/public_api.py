"""What anyone may ask: what this federation is, its catalogue, its model, how it is doing."""

from __future__ import annotations

import asyncio
import gzip
from contextlib import suppress
from functools import lru_cache
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from federank.errors import StoreAway
from federank.federation.server import Published
from federank.secagg.config import config_from
from federank.service.server.config import read_catalogue
from federank.service.server.http.responses import (
    JSON,
    Refusal,
    bytes_response,
    has_already,
    json_response,
    sums_not_published,
    takes_gzip,
)
from federank.service.server.secure_config import Agreement
from federank.service.server.service import Service
from federank.service.server.store import secure as store
from federank.service.server.store.database import Connection
from federank.service.server.store.queries import put_value
from federank.service.server.store.seasons import (
    CATALOGUE,
    CONFIG,
    FIRST,
    SETTINGS,
    SIGNATURES,
    Season,
    all_seasons,
    content_of,
)
from federank.service.server.store.secure import SumRow
from federank.service.server.store.writer import METADATA

API = 1
SHORTLY = "max-age=3"
"""A browser fetches what a page begins with beside its HTML, and its worker asks for it again some moments later."""
PROBE_BYTES = 16384
"""What is written to see whether a store that has failed takes something again."""


async def federation(service: Service, request: Request) -> Response:  # noqa: ARG001 (every endpoint is given both)
    """What this federation is: method, recipe, rounds, limits."""
    config, rounds, form, sums = service.config, service.latest.rounds, service.form, service.config.sums
    return json_response(
        {
            "api": API,
            "federation_id": config.federation_id,
            "name": config.name,
            "method": config.public_method,
            "recipe": config.settings.public_settings(),
            "items": config.n_items,
            "catalogue": config.catalogue.digest,
            "version": newest(service).version,
            "rounds": {
                "target": rounds.target,
                "minimum": rounds.minimum,
                "over_selection": rounds.over_selection,
                "deadline_seconds": rounds.deadline,
            },
            "limits": {"most_rows": form.most_rows, "most_bytes": form.most_bytes, "most_norm": form.most_norm},
            "suggested_policy": config.suggested_policy,
            "uploads": "plain" if sums is None else "sums",
            # The canonical bytes of GET /sums/config and /sums/settings, so that a page needs no further request.
            "sums": sums and {"config": sums.config.to_bytes().decode(), "settings": sums.settings.decode()},
            "season": season_lines(config.season),
            "trained": config.trained,
            "invited_only": service.invited_only,
            "upload_period_seconds": config.upload_period,
        }
        | config.texts
        | {"translations": config.texts["translations"] or {}},
        headers={"Cache-Control": "no-cache"},  # a page must notice at once that another federation has begun
    )


def season_lines(season: Season) -> dict[str, Any]:
    """The public description of a season."""
    names = ("number", "uploads", "epsilon", "delta", "until", "began", "ended", "first_version", "first_round")
    return {name: getattr(season, name) for name in (*names, "starts_from", "pruned")}


async def seasons(service: Service, request: Request) -> Response:  # noqa: ARG001
    """Every season, the current one last: uploads, epsilon, end; under secure aggregation its config and signatures."""

    def read(connection: Connection) -> list[dict[str, Any]]:
        lines = []
        for season in all_seasons(connection):
            config = content_of(connection, season.number, CONFIG)
            signed = (content_of(connection, season.number, SIGNATURES) or b"").hex()
            texts = {} if config is None else {"config": config.decode(), "signatures": [signed[:128], signed[128:]]}
            lines.append(season_lines(season) | texts)
        return lines

    return json_response({"seasons": await service.read(read)}, headers={"Cache-Control": "no-cache"})


async def status(service: Service, request: Request) -> Response:  # noqa: ARG001
    """How the federation is doing."""
    return json_response(status_of(service))


def status_of(service: Service) -> dict[str, Any]:
    """Version, round and counts, as this worker sees them."""
    view = service.latest
    now = view.round
    return {
        "federation_id": service.config.federation_id,
        "version": newest(service).version,
        "round": now.number if now else 0,
        "open": bool(now and now.state == "open"),
        "reports": now.reports if now else 0,
        "items": service.config.n_items,
        "season": service.config.season.number,
        "clients": view.clients,
        "rounds_aggregated": view.aggregated,
        "rounds_abandoned": view.abandoned,
        "aggregates_rejected": int(view.rejected.get("count", 0)),
        "accuracy": view.accuracy,
        "health": service.health().to_json(),
        "simulated": view.simulated,
    }


async def catalogue(service: Service, request: Request) -> Response:
    """Every item: id, title, categories, `titles` in other languages if known; in the order of item numbers.

    `ended` marks an item that is there no more. With a number, the catalogue of an earlier season.
    """
    number, kept = check_int(request, "season"), service.config.catalogue
    if number not in (None, service.config.season.number):
        content = await service.read(lambda connection: content_of(connection, number, CATALOGUE))
        if content is None:
            raise Refusal(404, "unknown", f"There is no season {number}.")
        kept = read_catalogue(content)
    headers = {"ETag": f'"{kept.digest}"', "Cache-Control": SHORTLY, "Vary": "Accept-Encoding"}
    if has_already(request, headers["ETag"]):
        return Response(None, 304, headers)
    if takes_gzip(request):
        return bytes_response(kept.compressed, headers | {"Content-Encoding": "gzip"}, JSON)
    return bytes_response(kept.content, headers, JSON)


async def model(service: Service, request: Request) -> Response:
    """The model, in full or only the rows changed since a version."""
    now = newest(service)
    have = check_int(request, "since")
    headers = {
        "ETag": f'"{service.config.federation_id}-v{now.version}"',
        "X-Model-Version": str(now.version),
        "X-Federation-Id": service.config.federation_id,
        "Cache-Control": SHORTLY if have is None else "no-cache",
        "Vary": "Accept-Encoding",
    }
    if has_already(request, headers["ETag"]):
        return Response(None, 304, headers)
    number = service.latest.round.number if service.latest.round else 0
    content = service.encoded.since(now, have, number)
    if takes_gzip(request):
        content = await asyncio.to_thread(_compressed, content)
        headers["Content-Encoding"] = "gzip"
    service.metrics.download(len(content))
    return bytes_response(content, headers)


async def health(service: Service, request: Request) -> Response:  # noqa: ARG001
    """Whether the process is alive."""
    return json_response({"alive": True})


async def ready(service: Service, request: Request) -> Response:  # noqa: ARG001
    """Whether the process can serve: the model is there, the store answers, and takes what it is given."""
    if service.writer.fault is not None:
        with suppress(StoreAway):  # does it take something again?
            await service.writer.write(lambda connection: put_value(connection, "probe", "x" * PROBE_BYTES), METADATA)
    fault = service.writer.fault
    if fault is not None and fault.is_full:
        raise Refusal(503, "full", "The store's disk is full; not ready.", {"Retry-After": "10"})
    if fault is not None:
        raise Refusal(503, "away", "The store takes nothing now; not ready.", {"Retry-After": "2"})
    if service.latest.model is None or not service.latest.is_fresh():
        raise Refusal(503, "away", "The store has not answered for some seconds; not ready.", {"Retry-After": "2"})
    return json_response({"ready": True, "health": service.health().to_json()})


def newest(service: Service) -> Published:
    """The published model."""
    if service.latest.model is None:
        raise Refusal(503, "starting", "The model has not been read yet; try again soon.", {"Retry-After": "1"})
    return service.latest.model


def check_int(request: Request, name: str) -> int | None:
    """An integer of the query; None where it is absent or no such number."""
    text = request.query_params.get(name, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else None


@lru_cache(maxsize=8)
def _compressed(content: bytes) -> bytes:
    return gzip.compress(content, compresslevel=1, mtime=0)


# What anyone may fetch of a federation of sums: its federation config, every round's offer, the records of those
# that ended.
#
# With these and the helper's lists anyone can recompute every version (`federank audit verify`).


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
