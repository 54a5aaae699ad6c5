"""The two applications: one for devices and browsers, one for the operator. Both stand behind the same guard.

The guard is what every request passes: it counts the address's requests, adds the headers that keep a browser safe,
measures, and turns whatever goes wrong into a refusal: a sentence, never a stack trace.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Mount, Route, Router
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from federank.service.answers import Refusal, answer_json, away
from federank.service.database import StoreAway
from federank.service.limits import refuse_haste
from federank.service.openapi import openapi_document
from federank.service.routes import ADMIN_ROUTES, PUBLIC, PUBLIC_ROUTES, Endpoint, Entry
from federank.service.service import Service

PAGE = Path(__file__).parent / "page"
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "worker-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
SAFETY: list[tuple[bytes, bytes]] = [
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"geolocation=(), camera=(), microphone=()"),
]
_ONLY_TLS = (b"strict-transport-security", b"max-age=31536000")


def public_app(service: Service) -> ASGIApp:
    """What devices and browsers talk to."""
    routes = [*_routes(service, PUBLIC_ROUTES, "FedeRank federation"), Route("/admin.html", _nothing), *_page()]
    return Guard(service, Router(routes, redirect_slashes=False))


def admin_app(service: Service) -> ASGIApp:
    """What the operator talks to."""
    routes = [*_routes(service, ADMIN_ROUTES, "FedeRank operator"), Route("/admin", _admin_page), *_page()]
    return Guard(service, Router(routes, redirect_slashes=False))


def _routes(service: Service, entries: tuple[Entry, ...], title: str) -> list[BaseRoute]:
    document = openapi_document(entries, title)

    async def describe(_: Request) -> Response:
        return answer_json(document)

    routes: list[BaseRoute] = [
        Route(entry.path, _bound(service, entry.endpoint), methods=[entry.method]) for entry in entries
    ]
    return [*routes, Route(f"{PUBLIC}/openapi.json", describe)]


def _bound(service: Service, endpoint: Endpoint) -> Any:
    async def bound(request: Request) -> Response:
        return await endpoint(service, request)

    return bound


def _page() -> list[BaseRoute]:
    return [Mount("/", StaticFiles(directory=PAGE, html=True, check_dir=False))]


async def _admin_page(_: Request) -> Response:
    return FileResponse(PAGE / "admin.html") if (PAGE / "admin.html").is_file() else await _nothing(_)


async def _nothing(_: Request) -> Response:
    raise HTTPException(404)


class Guard:
    """What every request passes on its way in, and every answer on its way out."""

    def __init__(self, service: Service, app: ASGIApp) -> None:
        self._service, self._app = service, app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        began = time.perf_counter()
        scope["app"] = self  # so that the router raises where it knows no route
        status = 0

        async def send_safely(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], *SAFETY]
                if scope.get("scheme") == "https":
                    message["headers"].append(_ONLY_TLS)
            await send(message)

        try:
            await self._answer(scope, receive, send_safely)
        except Exception as reason:
            if status:  # the answer was under way: all that is left is to cut it off
                self._service.log.fault("answer", reason)
                raise
            await self._refusal(reason).answer()(scope, receive, send_safely)
        finally:
            self._service.metrics.request(_template(scope), status, time.perf_counter() - began)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        client = scope.get("client")
        refuse_haste(self._service.address_buckets, client[0] if client else "unknown")
        await self._app(scope, receive, send)

    def _refusal(self, reason: Exception) -> Refusal:
        if isinstance(reason, Refusal):
            return reason
        if isinstance(reason, StoreAway):
            return away()
        if isinstance(reason, HTTPException):
            return _http_refusal(reason)
        self._service.log.fault("request", reason)
        return Refusal(500, "fault", "The server has made a mistake; it was noted. Nothing was stored.")


def _http_refusal(reason: HTTPException) -> Refusal:
    if reason.status_code == 405:
        return Refusal(405, "method", "This address does not take that method.", reason.headers)
    if reason.status_code == 404:
        return Refusal(404, "unknown", "There is nothing at this address.")
    return Refusal(reason.status_code, "refused", f"The request was refused ({reason.detail}).", reason.headers)


def _template(scope: Scope) -> str:
    """The route without what is particular to a request: tickets do not belong into metrics."""
    path = str(scope["path"])
    if path.startswith(f"{PUBLIC}/tasks/"):
        return f"{PUBLIC}/tasks/{{ticket}}" + ("/update" if path.endswith("/update") else "")
    known = path.startswith(("/api/", "/admin/")) or path in ("/health", "/ready", "/metrics")
    return path if known and path in _PATHS else ("unknown" if known else "page")


_PATHS = {entry.path for entry in (*PUBLIC_ROUTES, *ADMIN_ROUTES)} | {f"{PUBLIC}/openapi.json"}
