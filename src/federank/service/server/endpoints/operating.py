"""What the operator does to a running federation: versions and a way back, new items, bans, tokens, the log, an export.

Every action is a line of the operator's log, in the transaction that does it (store/actions.py).
"""

from __future__ import annotations

import json
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from federank.errors import SettingError
from federank.service.server.endpoints.admin import check_operator, read_json
from federank.service.server.endpoints.public import newest, whole_number
from federank.service.server.federation.growing import ask_for_items, catalogue_now
from federank.service.server.federation.published import Published
from federank.service.server.http.responses import Refusal, bytes_response, json_response
from federank.service.server.service import Service
from federank.service.server.store.actions import all_actions, is_unbroken, note_action
from federank.service.server.store.database import Connection
from federank.service.server.store.rollback import kept_versions, roll_back
from federank.service.server.store.statements.devices import ban, invite
from federank.service.server.store.statements.facts import put_fact
from federank.service.server.store.statements.uploads import withdraw
from federank.service.server.store.versions import model_at
from federank.service.server.store.writer import FACTS, TALLIES
from federank.service.server.tickets import hash_of_token, new_token

MOST_INVITATIONS = 10_000
MOST_ITEMS_BYTES = 32 * 2**20


async def versions(service: Service, request: Request) -> Response:
    """The versions that can be gone back to, newest first."""
    await check_operator(service, request)
    return json_response({"version": newest(service).version, "versions": await service.read(kept_versions)})


async def rollback(service: Service, request: Request) -> Response:
    """Publish an earlier version as a new one; the round that is under way is given up."""
    await check_operator(service, request)
    wanted = (await read_json(service, request)).get("version")
    if not isinstance(wanted, int) or isinstance(wanted, bool):
        raise Refusal(422, "malformed", 'Say which version to go back to: {"version": 1200}.')
    if service.charter.sums is not None:
        raise Refusal(
            409,
            "sums",
            "This federation's versions follow from its published sums alone, so that anybody can recompute them; a "
            "version that no sum leads to cannot be published. Begin a new federation in its place.",
        )

    def go_back(connection: Connection) -> Published | None:
        model = roll_back(connection, wanted, service.charter.extend)
        if model is not None:
            note_action(connection, "rollback", to=wanted, as_version=model.version)
        return model

    model = await service.writer.write(go_back, TALLIES)
    if model is None:
        raise Refusal(404, "unknown", f"Version {wanted} is not kept; `federank admin versions` lists those that are.")
    service.leader.mark_log_dirty()
    service.log.say("rolled back", "warning", to=wanted, version=model.version)
    service.latest.wake()
    return json_response({"version": model.version, "content_of": wanted})


async def add_items(service: Service, request: Request) -> Response:
    """Add items to the catalogue, once the round that is under way has ended; how many wait for that."""
    await check_operator(service, request)
    given = (await read_json(service, request, MOST_ITEMS_BYTES)).get("items")
    if service.charter.sums is not None:
        raise Refusal(
            409,
            "sums",
            "This federation's charter names its catalogue, and devices and the helper have pinned it: nothing can be "
            "added behind their backs. Begin a new federation with the larger catalogue, in another --store.",
        )

    def ask(connection: Connection) -> int | str:
        try:
            return ask_for_items(connection, given)
        except SettingError as reason:
            return str(reason)

    waiting = await service.writer.write(ask, FACTS)
    if isinstance(waiting, str):
        raise Refusal(422, "malformed", f"{waiting} Nothing was added.")
    service.leader.wake()
    return json_response({"waiting": waiting}, 202)


async def items(service: Service, request: Request) -> Response:
    """How many items there are, with which version, and how many wait to be added."""
    await check_operator(service, request)
    return json_response(await service.read(catalogue_now))


async def ban_device(service: Service, request: Request) -> Response:
    """Take no Update of a device any more, and withdraw the one that is not folded yet."""
    await check_operator(service, request)
    device = (await read_json(service, request)).get("device")
    if not isinstance(device, str):
        raise Refusal(422, "malformed", 'Say which device to ban: {"device": "..."}, by its name.')

    def act(connection: Connection) -> bool | None:
        is_new = ban(connection, device)
        if is_new:
            note_action(connection, "ban", device=device)
        return is_new

    is_new = await service.writer.write(act, TALLIES)
    if is_new is None:
        raise Refusal(404, "unknown", "No device of this federation has this name.")
    key = service.charter.ticket_key
    await service.writer.write(lambda connection: withdraw(connection, device, key))
    service.leader.mark_log_dirty()
    return json_response({"device": device, "banned": True, "was_banned": not is_new})


async def make_invitations(service: Service, request: Request) -> Response:
    """New invitations, shown this once: each lets one device enrol where only the invited may."""
    await check_operator(service, request)
    count = (await read_json(service, request)).get("count", 1)
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= MOST_INVITATIONS:
        raise Refusal(422, "malformed", f'Say how many: {{"count": 100}}, from 1 to {MOST_INVITATIONS:,}.')
    codes = [new_token() for _ in range(count)]

    def act(connection: Connection) -> None:
        invite(connection, map(hash_of_token, codes))
        note_action(connection, "invite", count=count)

    await service.writer.write(act, FACTS)
    return json_response({"invitations": codes, "needed": service.trust.invited_only})


async def rotate_token(service: Service, request: Request) -> Response:
    """A new operator's token, shown this once; the one that asked dies."""
    await check_operator(service, request)
    token = new_token()

    def act(connection: Connection) -> None:
        put_fact(connection, "admin", hash_of_token(token).hex())
        note_action(connection, "rotate-token")

    await service.writer.write(act, FACTS)
    return json_response({"token": token})


async def log(service: Service, request: Request) -> Response:
    """Everything that operators did, oldest first, and whether no line was changed or taken out."""
    await check_operator(service, request)
    actions = await service.read(all_actions)
    lines = [{"number": n, "time": when, "action": action, **detail} for n, when, action, detail, _ in actions]
    return json_response({"unbroken": is_unbroken(actions), "actions": lines})


async def export(service: Service, request: Request) -> Response:
    """A version of the model as safetensors, all tables; what it is of stands in the headers."""
    await check_operator(service, request)
    wanted = whole_number(request, "version")
    number = newest(service).version if wanted is None else wanted
    model = await service.read(lambda connection: model_at(connection, number))
    if model is None:
        raise Refusal(404, "unknown", f"Version {number} is not kept; `federank admin versions` lists those that are.")
    await service.writer.write(lambda connection: note_action(connection, "export", version=number), FACTS)
    about: dict[str, Any] = {
        "method": service.charter.family.method,
        "name": service.charter.name,
        "version": number,
        "settings": service.charter.kept_settings(),
    }
    content = model.content
    told = content._replace(overall={**content.overall, **service.charter.family.heard(model)})
    model = model._replace(content=told)
    return bytes_response(model.stored(model.rows_since(None), 0), {"X-Export": json.dumps(about)})
