"""What the operator asks, on an address of its own and with the operator's token: overview, close, pause, accuracy."""

from __future__ import annotations

import hmac
import json
import math
from collections.abc import Callable
from dataclasses import asdict, fields
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from federank.errors import SettingError
from federank.federation.server import Published
from federank.service.server.http.limits import read_body
from federank.service.server.http.public_api import check_int, newest, season_lines, status_of
from federank.service.server.http.responses import Refusal, bytes_response, json_response
from federank.service.server.metrics import CONTENT_TYPE
from federank.service.server.rounds import hidden_items
from federank.service.server.seasons import SeasonSpec, begin_season, end_season, prune
from federank.service.server.service import Service
from federank.service.server.store.database import Connection
from federank.service.server.store.evaluation import ENOUGH, judged_versions, latest_rounds, pooled, report_of
from federank.service.server.store.queries import ban, get_value, invite, put_value, tallies, withdraw
from federank.service.server.store.versions import kept_versions, model_at, roll_back
from federank.service.server.store.writer import METADATA, TALLIES, all_actions, is_unbroken, note_action
from federank.service.server.tickets import hash_of_token, new_token

SHOWN_ROUNDS, SHOWN_JUDGED, SHOWN_ITEMS = 200, 20, 20
SMALL_BODY = 65536


async def check_operator(service: Service, request: Request) -> None:
    """Refuse anyone who does not have the operator's token."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    kept = await service.read(lambda connection: get_value(connection, "admin"))
    if scheme.lower() != "bearer" or not hmac.compare_digest(hash_of_token(token), bytes.fromhex(kept)):
        raise Refusal(
            401,
            "not-the-operator",
            "This needs the operator's token, shown when the federation was established.",
            {"WWW-Authenticate": "Bearer"},
        )


async def metrics(service: Service, request: Request) -> Response:  # noqa: ARG001
    """Counts and sizes for Prometheus."""
    text = service.metrics.text(service.latest, service.selection.waiting, service.health(), service.ranges.busiest())
    return bytes_response(text, {}, CONTENT_TYPE)


async def overview(service: Service, request: Request) -> Response:  # noqa: ARG001
    """The latest rounds: reports, dropouts, refusals by reason, bytes, drift, duration, clients; and latency."""
    rounds, rejected = await service.read(lambda connection: latest_rounds(connection, SHOWN_ROUNDS))
    judged = await service.read(lambda connection: judged_versions(connection, SHOWN_ROUNDS))
    joining = await service.read(lambda connection: get_value(connection, "joining"))
    counts = await service.read(tallies)
    config, settings, moved = service.config, service.latest.rounds, service.latest.signals.rows
    hidden = hidden_items(newest(service))
    items = json.loads(config.catalogue.content)["items"] if len(hidden) or moved else []
    return json_response(
        status_of(service)
        | {
            "name": config.name,
            "description": config.texts["description"],
            "run_by": config.texts["run_by"],
            "joining": joining,
            "left": counts.departures,
            "paused": service.latest.paused,
            "limits": {"minimum": settings.minimum, "enough": settings.target, "deadline": settings.deadline},
            "waiting": service.selection.waiting,
            "leads": service.leader.leads,
            "rejected_aggregate": service.latest.rejected or None,
            "rounds": rounds,
            "rejected": rejected,
            "latency_ms": service.metrics.latency(),
            "evaluation": [report_of(version, config.span) for version in judged[:SHOWN_JUDGED]],
            "trend": [report_of(version, config.span) for version in pooled(judged, ENOUGH)],
            "largest_move": finite(service.latest.signals.largest_move),
            "moved_most": [{"item": items[row]["title"], "move": finite(far)} for row, far in moved],
            "busiest_range_reports": service.ranges.busiest(),
            "held_rows": service.latest.bounded.get("held_rows", 0),
            "capped_rows": service.latest.bounded.get("capped_rows", 0),
            "capped_items": service.latest.bounded.get("capped_items", 0),
            "hidden_items": [items[row]["title"] for row in hidden[:SHOWN_ITEMS].tolist()],
            "progress": service.latest.progress,
        }
    )


async def close(service: Service, request: Request) -> Response:  # noqa: ARG001
    """End the open round now, as if its time were up."""
    now = service.latest.round
    if now is None or now.state != "open":
        raise Refusal(409, "not-open", "No round is open.")

    def ask(connection: Connection) -> None:
        put_value(connection, "close", now.number)
        note_action(connection, "close", round=now.number)

    await service.writer.write(ask, METADATA)
    return json_response({"round": now.number, "closing": True}, 202)


def finite(value: float) -> float | None:
    """A number to four decimals; None for one that JSON cannot hold, as a diverged model makes them."""
    return round(value, 4) if math.isfinite(value) else None


def _is_finite(value: Any) -> bool:
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:  # an integer beyond all floats
        return False


async def publish_accuracy(service: Service, request: Request) -> Response:
    """Publish how good the model is, as measured elsewhere: names of metrics and their values."""
    given = await read_json(service, request)
    numbers = {name: value for name, value in given.items() if name != "version"}
    fine = all(len(name) <= 40 and _is_finite(value) for name, value in numbers.items())
    version = given.get("version", newest(service).version)
    if not numbers or len(numbers) > 20 or not fine or not isinstance(version, int):
        raise Refusal(422, "malformed", 'Give names of metrics with finite numbers, such as {"precision@10": 0.12}.')
    accuracy = numbers | {"version": version}

    def publish(connection: Connection) -> None:
        put_value(connection, "accuracy", accuracy)
        note_action(connection, "accuracy", **{"of version": version})

    await service.writer.write(publish, METADATA)
    return json_response(accuracy)


async def pause(service: Service, request: Request) -> Response:
    """Pause the rounds after the open one, or go on."""
    paused = await _given(service, request, bool, "paused", 'Say {"paused": true} or {"paused": false}.')

    def remember(connection: Connection) -> None:
        put_value(connection, "paused", paused)
        note_action(connection, "pause" if paused else "go on")

    await service.writer.write(remember, METADATA)
    return json_response({"paused": paused})


async def read_json(service: Service, request: Request, most_bytes: int = SMALL_BODY) -> dict[str, Any]:
    """The JSON object that the operator has sent."""
    body = await read_body(request, most_bytes, service.trust.body_seconds)
    try:
        given = json.loads(body)
        # What has half a character in it (an unpaired surrogate) could be stored, and never be sent again.
        json.dumps(given, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        raise Refusal(400, "not-json", "The body must be a JSON object, in complete characters.")
    return given


async def _given(service: Service, request: Request, kind: type[Any], name: str, example: str) -> Any:
    """One value of what the operator has sent."""
    value = (await read_json(service, request)).get(name)
    if type(value) is not kind:  # true and false are integers too
        raise Refusal(422, "malformed", example)
    return value


# What the operator does to a running federation: versions and a way back, new items, bans, tokens, the log, an export.


MOST_INVITATIONS = 10_000
MOST_ITEMS_BYTES = 32 * 2**20


async def versions(service: Service, request: Request) -> Response:  # noqa: ARG001
    """The versions that can be gone back to, newest first."""
    return json_response({"version": newest(service).version, "versions": await service.read(kept_versions)})


async def rollback(service: Service, request: Request) -> Response:
    """Publish an earlier version as a new one; the round that is under way is given up."""
    wanted = await _given(service, request, int, "version", 'Say which version to go back to: {"version": 1200}.')
    if service.config.sums is not None:
        raise Refusal(
            409,
            "sums",
            "This federation's versions follow from its published sums alone, so that anyone can recompute them; "
            "within a season none can be replaced. `federank admin season restart-from VERSION` begins a season from "
            "an earlier one.",
        )

    def go_back(connection: Connection) -> Published | None:
        model = roll_back(connection, wanted, service.config.extend)
        if model is not None:
            note_action(connection, "rollback", to=wanted, as_version=model.version)
        return model

    model = await service.writer.write(go_back, TALLIES)
    if model is None:
        raise Refusal(
            404,
            "unknown",
            f"Version {wanted} is not kept, or is of an earlier season. `federank admin versions` lists those that are "
            "kept, and `federank admin season restart-from` begins a season from an earlier one.",
        )
    service.leader.mark_log_dirty()
    service.log.say("rolled back", "warning", to=wanted, version=model.version)
    service.latest.wake()
    return json_response({"version": model.version, "content_of": wanted})


async def new_season(service: Service, request: Request) -> Response:
    """Begin another season: its catalogue, uploads per client, epsilon, end, and the version that it continues."""
    given = await read_json(service, request, MOST_ITEMS_BYTES)
    names = {part.name for part in fields(SeasonSpec)}
    unknown = sorted(set(given) - names)
    if unknown:
        raise Refusal(422, "malformed", f"A season has {', '.join(sorted(names))}; found {', '.join(unknown)[:80]}.")
    if type(given.get("start_from")) not in (int, type(None)):
        raise Refusal(422, "malformed", "start_from is the number of a version.")
    season, model = await _changed(service, lambda connection: begin_season(connection, SeasonSpec(**given)))
    service.log.say("season", number=season.number, starts_from=season.starts_from, version=model.version)
    _wake(service)
    return json_response(season_lines(season) | {"version": model.version}, 201)


async def end_current_season(service: Service, request: Request) -> Response:  # noqa: ARG001
    """End the current season: its open round is discarded, and no other begins."""
    season = await _changed(service, end_season)
    service.log.say("season ended", number=season.number)
    _wake(service)
    return json_response(season_lines(season))


async def prune_season(service: Service, request: Request) -> Response:
    """Drop the sums and the versions of a closed season, at both servers."""
    number = await _given(service, request, int, "season", 'Say which season: {"season": 1}.')
    return json_response(season_lines(await _changed(service, lambda connection: prune(connection, number))))


async def _changed(service: Service, act: Callable[[Connection], Any]) -> Any:
    """The result of something that changes seasons, or a refusal that says why nothing was changed."""

    def guarded(connection: Connection) -> Any:
        try:
            return act(connection)
        except SettingError as reason:
            return reason

    result = await service.read_apart(guarded)
    if isinstance(result, SettingError):
        raise Refusal(422, "malformed", str(result))
    return result


def _wake(service: Service) -> None:
    service.leader.mark_log_dirty()
    service.leader.wake()
    service.latest.wake()


async def ban_client(service: Service, request: Request) -> Response:
    """Take no Update of a client any more, and withdraw the one that is not aggregated yet."""
    client = await _given(service, request, str, "client", 'Say which client: {"client": "..."}, by its name.')

    def act(connection: Connection) -> bool | None:
        is_new = ban(connection, client)
        if is_new:
            note_action(connection, "ban", client=client)
        return is_new

    is_new = await service.writer.write(act, TALLIES)
    if is_new is None:
        raise Refusal(404, "unknown", "No client of this federation has this name.")
    key = service.config.ticket_key
    await service.writer.write(lambda connection: withdraw(connection, client, key))
    service.leader.mark_log_dirty()
    return json_response({"client": client, "banned": True, "was_banned": not is_new})


async def make_invitations(service: Service, request: Request) -> Response:
    """New invitations, shown this once: each lets one client enrol where only the invited may."""
    count = (await read_json(service, request)).get("count", 1)
    if type(count) is not int or not 1 <= count <= MOST_INVITATIONS:
        raise Refusal(422, "malformed", f'Say how many: {{"count": 100}}, from 1 to {MOST_INVITATIONS:,}.')
    codes = [new_token() for _ in range(count)]

    def act(connection: Connection) -> None:
        invite(connection, map(hash_of_token, codes))
        note_action(connection, "invite", count=count)

    await service.writer.write(act, METADATA)
    return json_response({"invitations": codes, "needed": service.invited_only})


async def rotate_token(service: Service, request: Request) -> Response:  # noqa: ARG001
    """A new operator's token, shown this once; the one that asked dies."""
    token = new_token()

    def act(connection: Connection) -> None:
        put_value(connection, "admin", hash_of_token(token).hex())
        note_action(connection, "rotate-token")

    await service.writer.write(act, METADATA)
    return json_response({"token": token})


async def log(service: Service, request: Request) -> Response:  # noqa: ARG001
    """Everything that operators did, oldest first, and whether no line was changed or taken out."""
    actions = await service.read(all_actions)
    lines = [{"number": n, "time": when, "action": action, **detail} for n, when, action, detail, _ in actions]
    return json_response({"unbroken": is_unbroken(actions), "actions": lines})


async def export(service: Service, request: Request) -> Response:
    """A version of the model as safetensors, all tables; what it is of stands in the headers."""
    wanted = check_int(request, "version")
    number = newest(service).version if wanted is None else wanted
    model = await service.read(lambda connection: model_at(connection, number))
    if model is None:
        raise Refusal(404, "unknown", f"Version {number} is not kept; `federank admin versions` lists those that are.")
    await service.writer.write(lambda connection: note_action(connection, "export", version=number), METADATA)
    about: dict[str, Any] = {
        "method": service.config.served.name,
        "name": service.config.name,
        "version": number,
        "settings": asdict(service.config.settings),
    }
    content = model.content
    known = service.config.served.learnt_from(service.config.settings, content)
    published = content._replace(overall={**content.overall, **known})
    model = model._replace(content=published)
    return bytes_response(model.stored(model.rows_since(None), 0), {"X-Export": json.dumps(about)})
