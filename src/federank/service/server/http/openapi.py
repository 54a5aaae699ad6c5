"""The OpenAPI document, made from the table of routes."""

from __future__ import annotations

import re
from functools import cache
from importlib.metadata import version
from typing import Any

from federank.service.server.http.routes import PUBLIC, Entry

_PHRASES = {
    200: "Done.",
    201: "Stored.",
    202: "Under way.",
    204: "Nothing to say.",
    304: "Unchanged.",
    400: "Not understood.",
    401: "The token is missing or unknown.",
    403: "Not invited.",
    404: "Not there, or another device's.",
    408: "Too slow.",
    409: "Contradicts what was done before.",
    410: "Too late.",
    413: "Too large.",
    415: "Of a type or encoding that is not taken.",
    422: "Breaks the protocol.",
    429: "Too many requests; Retry-After says when.",
    503: "The store does not answer now; nothing was done.",
}
_TOKENS = {"device": "device", "operator": "operator"}


@cache
def openapi_document(entries: tuple[Entry, ...], title: str) -> dict[str, Any]:
    """Describe these routes; once in a process, however many servers it has."""
    paths: dict[str, dict[str, Any]] = {}
    for entry in entries:
        paths.setdefault(entry.path, {})[entry.method.lower()] = _operation(entry)
    own = {"get": {"operationId": "openapi", "summary": "This document.", "responses": {"200": _answer(200, _JSON)}}}
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
                "device": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A device's token, given when it enrolled.",
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


_JSON = "application/json"


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
            "required": entry.sends != _JSON or entry.who == "operator",
            "content": _content(entry.sends),
        }
    if entry.who in _TOKENS:
        described["security"] = [{_TOKENS[entry.who]: []}]
    return described


def _identity(entry: Entry) -> str:
    suffix = "_at_root" if entry.path.count("/") == 1 and entry.path != "/metrics" else ""
    return ("sums_" if "/sums/" in entry.path else "") + entry.endpoint.__name__ + suffix


def _usual(entry: Entry) -> tuple[int, ...]:
    return (429, 503) if entry.who == "anyone" else (401, 429, 503)


def _answer(status: int, kind: str) -> dict[str, Any]:
    return {"description": _PHRASES[status]} | ({"content": _content(kind)} if kind else {})


def _refusal(status: int) -> dict[str, Any]:
    schema = {"schema": {"$ref": "#/components/schemas/Refusal"}}
    return {"description": _PHRASES[status], "content": {_JSON: schema}}


def _content(kind: str) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object"} if kind == _JSON else {"type": "string"}
    if kind == "application/octet-stream":
        schema = {"type": "string", "format": "binary", "description": "safetensors: items, vectors, biases"}
    return {kind: {"schema": schema}}
