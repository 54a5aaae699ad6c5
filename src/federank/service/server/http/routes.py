"""The table of routes: what can be asked, by whom, and what is answered. The server and its OpenAPI document are both
made from it, so neither can know of a route that the other does not.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.metadata import version
from typing import Any

from federank.service.server.http import admin_api as admin
from federank.service.server.http import client_api as clients
from federank.service.server.http import public_api as public
from federank.service.server.http.application import Endpoint, Entry
from federank.service.server.http.responses import JSON, TENSORS

PUBLIC = "/api/v1"
ADMIN = "/admin/api/v1"
_JSON_OR_UNCHANGED, _ONE_TENSOR_FILE = ((200, JSON), (304, "")), ((200, TENSORS),)
_SEASON = ("season", "The season; the current one unless it is named.")
_ROUND = ("round", "The round; the newest one unless it is named.")
_ONLY_CHANGED = "Only rows changed since this version; all of them if it is unknown."


def _by_client(method: str, path: str, endpoint: Endpoint, **more: Any) -> Entry:
    """What a client asks with its token."""
    return Entry(method, f"{PUBLIC}{path}", endpoint, who="client", **more)


def _of_sums(name: str, endpoint: Endpoint, about: tuple[str, str], **more: Any) -> Entry:
    """What is published under secure aggregation."""
    return Entry("GET", f"{PUBLIC}/sums/{name}", endpoint, query=(about,), **{"refusals": (404, 409)} | more)


def _action(path: str, endpoint: Endpoint, *refusals: int, **more: Any) -> Entry:
    """What the operator does, stated as JSON."""
    refused = tuple(sorted({400, 413, 422, *refusals}))
    return Entry("POST", f"{ADMIN}{path}", endpoint, who="operator", sends=JSON, refusals=refused, **more)


_NOISY = {"answers": _ONE_TENSOR_FILE, "refusals": (403, 404, 409)}
_HEALTH = Entry("GET", "/health", public.health), Entry("GET", "/ready", public.ready)

PUBLIC_ROUTES: tuple[Entry, ...] = (
    Entry("GET", f"{PUBLIC}/federation", public.federation),
    Entry("GET", f"{PUBLIC}/status", public.status),
    Entry("GET", f"{PUBLIC}/catalogue", public.catalogue, answers=_JSON_OR_UNCHANGED),
    Entry(
        "GET",
        f"{PUBLIC}/model",
        public.model,
        query=(("since", _ONLY_CHANGED),),
        answers=((200, TENSORS), (304, "")),
    ),
    Entry("POST", f"{PUBLIC}/clients", clients.enrol_client, sends=JSON, answers=((201, JSON),), refusals=(403, 413)),
    _by_client("DELETE", "/clients/me", clients.leave_federation, answers=((204, ""),)),
    _by_client(
        "GET",
        "/work",
        clients.work,
        query=(("wait", f"Seconds to wait for work, at most {clients.LONGEST_WAIT}."),),
        answers=((200, JSON), (204, "")),
        refusals=(409,),
    ),
    _by_client(
        "GET",
        "/tasks/{ticket}",
        clients.task,
        query=(("have", _ONLY_CHANGED),),
        answers=_ONE_TENSOR_FILE,
        refusals=(404, 410),
    ),
    _by_client(
        "POST",
        "/tasks/{ticket}/update",
        clients.upload,
        sends=TENSORS,
        answers=((201, JSON), (200, JSON)),
        refusals=(400, 404, 408, 409, 410, 413, 415, 422),
    ),
    _by_client("GET", "/tasks/{ticket}/outcome", clients.outcome, refusals=(404,)),
    _by_client(
        "POST",
        "/hits",
        clients.evaluate,
        sends=JSON,
        answers=((201, JSON), (200, JSON)),
        refusals=(404, 409, 413, 422),
    ),
    Entry("GET", f"{PUBLIC}/seasons", public.seasons),
    _of_sums("config", public.config, _SEASON),
    _of_sums("settings", public.settings, _SEASON),
    _of_sums("first", public.first, _SEASON, **_NOISY),
    _of_sums("rounds", public.rounds, ("from", "Rounds from this number on.")),
    _of_sums("offer", public.offer, _ROUND),
    _of_sums("record", public.record, _ROUND),
    _of_sums("helper-record", public.helper_record, _ROUND),
    _of_sums("total", public.total, _ROUND, **_NOISY),
    _of_sums("helper-sum", public.helper_total, _ROUND, **_NOISY),
    *_HEALTH,
)

ADMIN_ROUTES: tuple[Entry, ...] = (
    Entry("GET", f"{ADMIN}/overview", admin.overview, who="operator"),
    Entry("POST", f"{ADMIN}/close", admin.close, who="operator", answers=((202, JSON),), refusals=(409,)),
    _action("/accuracy", admin.publish_accuracy),
    _action("/rounds", admin.pause),
    Entry("GET", f"{ADMIN}/catalogue", public.catalogue, answers=_JSON_OR_UNCHANGED),
    Entry("GET", f"{ADMIN}/versions", admin.versions, who="operator"),
    _action("/rollback", admin.rollback, 404, 409),
    _action("/ban", admin.ban_client, 404),
    _action("/invitations", admin.make_invitations),
    Entry("GET", f"{ADMIN}/seasons", public.seasons),
    _action("/seasons", admin.new_season, answers=((201, JSON),)),
    Entry("POST", f"{ADMIN}/seasons/end", admin.end_current_season, who="operator"),
    _action("/seasons/prune", admin.prune_season),
    Entry("POST", f"{ADMIN}/token", admin.rotate_token, who="operator"),
    Entry("GET", f"{ADMIN}/log", admin.log, who="operator"),
    Entry(
        "GET",
        f"{ADMIN}/export",
        admin.export,
        who="operator",
        query=(("version", "Which version; the newest by default."),),
        answers=_ONE_TENSOR_FILE,
        refusals=(404,),
    ),
    Entry("GET", "/metrics", admin.metrics, answers=((200, "text/plain"),)),
    *_HEALTH,
)


# The OpenAPI document, made from the table of routes.


_PHRASES = {
    200: "Done.",
    201: "Stored.",
    202: "Under way.",
    204: "Nothing to say.",
    304: "Unchanged.",
    400: "Not understood.",
    401: "The token is missing or unknown.",
    403: "Not invited.",
    404: "Not there, or another client's.",
    408: "Too slow.",
    409: "Contradicts what was done before.",
    410: "Too late.",
    413: "Too large.",
    415: "Of a type or encoding that is not taken.",
    422: "Breaks the protocol.",
    429: "Too many requests; Retry-After says when.",
    503: "The store does not answer now; nothing was done.",
}


@cache
def openapi_document(entries: tuple[Entry, ...], title: str) -> dict[str, Any]:
    """Describe these routes; once in a process, however many servers it has."""
    paths: dict[str, dict[str, Any]] = {}
    for entry in entries:
        paths.setdefault(entry.path, {})[entry.method.lower()] = _operation(entry)
    own = {"get": {"operationId": "openapi", "summary": "This document.", "responses": {"200": _answer(200, JSON)}}}
    paths[f"{PUBLIC}/openapi.json"] = own
    return {
        "openapi": "3.1.0",
        "info": {
            "title": title,
            "version": version("federank"),
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "securitySchemes": {
                "client": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A client's token, given when it enrolled.",
                },
                "operator": {"type": "http", "scheme": "bearer", "description": "The operator's token."},
            },
            "schemas": {
                "Refusal": {
                    "type": "object",
                    "required": ["error", "message"],
                    "properties": {"error": {"type": "string"}, "message": {"type": "string"}},
                }
            },
        },
    }


def _operation(entry: Entry) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": _identity(entry),
        "summary": " ".join((entry.endpoint.__doc__ or "").split()),
        "responses": {str(status): _answer(status, kind) for status, kind in entry.answers}
        | {str(status): _refusal(status) for status in sorted({*entry.refusals, *_usual(entry)})},
    }
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"{(\w+)}", entry.path)
    ] + [
        {
            "name": name,
            "in": "query",
            "required": False,
            "description": about,
            "schema": {"type": "integer", "minimum": 0},
        }
        for name, about in entry.query
    ]
    if parameters:
        described["parameters"] = parameters
    if entry.sends:
        described["requestBody"] = {
            "required": entry.sends != JSON or entry.who == "operator",
            "content": _content(entry.sends),
        }
    if entry.who != "anyone":
        described["security"] = [{entry.who: []}]
    return described


def _identity(entry: Entry) -> str:
    return ("sums_" if "/sums/" in entry.path else "") + entry.endpoint.__name__


def _usual(entry: Entry) -> tuple[int, ...]:
    return (429, 503) if entry.who == "anyone" else (401, 429, 503)


def _answer(status: int, kind: str) -> dict[str, Any]:
    return {"description": _PHRASES[status]} | ({"content": _content(kind)} if kind else {})


def _refusal(status: int) -> dict[str, Any]:
    schema = {"schema": {"$ref": "#/components/schemas/Refusal"}}
    return {"description": _PHRASES[status], "content": {JSON: schema}}


def _content(kind: str) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object"} if kind == JSON else {"type": "string"}
    if kind == TENSORS:
        schema = {"type": "string", "format": "binary", "description": "safetensors"}
    return {kind: {"schema": schema}}
