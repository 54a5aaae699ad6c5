"""What the operator asks, on an address of its own and with the operator's token: overview, close, pause, accuracy."""

from __future__ import annotations

import hmac
import json
import math
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from federank.service.server.endpoints.public import newest, status_of
from federank.service.server.http.rate_limits import read_body
from federank.service.server.http.responses import Refusal, bytes_response, json_response
from federank.service.server.metrics import CONTENT_TYPE
from federank.service.server.service import Service
from federank.service.server.store.actions import note_action
from federank.service.server.store.database import Connection
from federank.service.server.store.hits import ENOUGH, judged_versions, pooled, told
from federank.service.server.store.overview import latest_rounds
from federank.service.server.store.statements.facts import get_fact, put_fact
from federank.service.server.store.statements.rounds import ask_to_close
from federank.service.server.store.writer import FACTS
from federank.service.server.tickets import hash_of_token

SHOWN_ROUNDS, SHOWN_JUDGED = 200, 20
SMALL_BODY = 65536


async def check_operator(service: Service, request: Request) -> None:
    """Refuse whoever does not have the operator's token."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    kept = await service.read(lambda connection: get_fact(connection, "admin"))
    if scheme.lower() != "bearer" or not hmac.compare_digest(hash_of_token(token), bytes.fromhex(kept)):
        raise Refusal(
            401,
            "not-the-operator",
            "This needs the operator's token, shown when the federation was established.",
            {"WWW-Authenticate": "Bearer"},
        )


async def metrics(service: Service, request: Request) -> Response:  # noqa: ARG001
    """Counts and sizes for Prometheus."""
    text = service.metrics.text(service.latest, service.dispatcher.waiting, service.health(), service.ranges.busiest())
    return bytes_response(text, {}, CONTENT_TYPE)


async def overview(service: Service, request: Request) -> Response:
    """The latest rounds: reports, dropouts, refusals by reason, bytes, drift, duration, devices; and latency."""
    await check_operator(service, request)
    rounds, rejected = await service.read(lambda connection: latest_rounds(connection, SHOWN_ROUNDS))
    judged = await service.read(lambda connection: judged_versions(connection, SHOWN_ROUNDS))
    joining = await service.read(lambda connection: get_fact(connection, "joining"))
    tally = await service.read(lambda connection: connection.one("SELECT departures FROM tallies"))
    charter, settings = service.charter, service.latest.rounds
    return json_response(
        status_of(service)
        | {
            "name": charter.name,
            "description": charter.description,
            "run_by": charter.run_by,
            "joining": joining,
            "left": int(tally[0]) if tally else 0,
            "paused": service.latest.paused,
            "limits": {"minimum": settings.minimum, "enough": settings.target, "deadline": settings.deadline},
            "waiting": service.dispatcher.waiting,
            "leads": service.leader.leads,
            "rejected_aggregate": service.latest.rejected or None,
            "rounds": rounds,
            "rejected": rejected,
            "latency_ms": service.metrics.latency(),
            "evaluation": [told(version, charter.span) for version in judged[:SHOWN_JUDGED]],
            "trend": [told(version, charter.span) for version in pooled(judged, ENOUGH)],
            "largest_move": finite(service.latest.signals.largest_move),
            "moved_most": moved_most(service),
            "busiest_range_reports": service.ranges.busiest(),
            "held_rows": service.latest.bounded.get("held_rows", 0),
            "capped_rows": service.latest.bounded.get("capped_rows", 0),
        }
    )


def moved_most(service: Service) -> list[dict[str, Any]]:
    """The items that the newest version moved farthest, by title, and how far in lengths of a mean row."""
    items = json.loads(service.charter.catalogue.content)["items"] if service.latest.signals.rows else []
    return [{"item": items[row]["title"], "move": finite(far)} for row, far in service.latest.signals.rows]


async def close(service: Service, request: Request) -> Response:
    """End the open round now, as if its time were up."""
    await check_operator(service, request)
    now = service.latest.round
    if now is None or now.state != "open":
        raise Refusal(409, "not-open", "No round is open.")

    def ask(connection: Connection) -> None:
        ask_to_close(connection, now.number)
        note_action(connection, "close", round=now.number)

    await service.writer.write(ask, FACTS)
    return json_response({"round": now.number, "closing": True}, 202)


def finite(value: float) -> float | None:
    """A number to four decimals; None for one that JSON cannot hold, as a diverged model makes them."""
    return round(value, 4) if math.isfinite(value) else None


def _is_finite(value: Any) -> bool:
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:  # a whole number beyond all floats
        return False


async def publish_accuracy(service: Service, request: Request) -> Response:
    """Publish how good the model is, as measured elsewhere: names of metrics and their values."""
    await check_operator(service, request)
    given = await read_json(service, request)
    numbers = {name: value for name, value in given.items() if name != "version"}
    fine = all(len(name) <= 40 and _is_finite(value) for name, value in numbers.items())
    version = given.get("version", newest(service).version)
    if not numbers or len(numbers) > 20 or not fine or not isinstance(version, int):
        raise Refusal(422, "malformed", 'Give names of metrics with finite numbers, such as {"precision@10": 0.12}.')
    accuracy = numbers | {"version": version}

    def publish(connection: Connection) -> None:
        put_fact(connection, "accuracy", accuracy)
        note_action(connection, "accuracy", **{"of version": version})

    await service.writer.write(publish, FACTS)
    return json_response(accuracy)


async def pause(service: Service, request: Request) -> Response:
    """Pause the rounds after the open one, or go on."""
    await check_operator(service, request)
    paused = (await read_json(service, request)).get("paused")
    if not isinstance(paused, bool):
        raise Refusal(422, "malformed", 'Say {"paused": true} or {"paused": false}.')

    def remember(connection: Connection) -> None:
        put_fact(connection, "paused", paused)
        note_action(connection, "pause" if paused else "go on")

    await service.writer.write(remember, FACTS)
    return json_response({"paused": paused})


async def read_json(service: Service, request: Request, most_bytes: int = SMALL_BODY) -> dict[str, Any]:
    """The JSON object that the operator has sent."""
    body = await read_body(request, most_bytes, service.trust.body_seconds)
    try:
        given = json.loads(body)
        # What has half a character in it (an unpaired surrogate) could be kept, and never be told again.
        json.dumps(given, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        raise Refusal(400, "not-json", "The body must be a JSON object, in whole characters.")
    return given
