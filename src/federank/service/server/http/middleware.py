"""The middleware: what every request passes on its way in, and every response on its way out.

It enforces the address's rate limit, finds the route, adds the headers that keep a browser safe, measures, and turns
whatever goes wrong into a refusal: a sentence, never a stack trace.
"""

from __future__ import annotations

import posixpath
import re
import time

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from federank.errors import StoreAway
from federank.service.server.endpoints.openapi import openapi_document
from federank.service.server.endpoints.routes import PUBLIC, Endpoint, Entry
from federank.service.server.http.rate_limits import bucket_of, enforce_rate_limit
from federank.service.server.http.responses import Refusal, json_response, unavailable
from federank.service.server.http.safe_send import Headers, SafeSend
from federank.service.server.service import Service

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'{helper}; img-src 'self' data:; "
    "worker-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_ORIGIN = re.compile(r"https?://[A-Za-z0-9.:\[\]-]+")
_SAFETY: Headers = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"geolocation=(), camera=(), microphone=()"),
]


def safety_headers(helper: str | None) -> Headers:
    """What keeps a browser safe: a page connects to its own server, and to the helper that the charter names."""
    named = f" {helper}" if helper is not None and _ORIGIN.fullmatch(helper) else ""
    return [(b"content-security-policy", _POLICY.format(helper=named).encode()), *_SAFETY]


class Table:
    """The routes by their paths: looked up, not searched for. A path has at most one part that varies, a ticket."""

    def __init__(self, entries: tuple[Entry, ...], title: str) -> None:
        document = openapi_document(entries, title)

        async def describe(service: Service, request: Request) -> Response:  # noqa: ARG001
            return json_response(document)

        self.routes: dict[str, dict[str, Endpoint]] = {f"{PUBLIC}/openapi.json": {"GET": describe}}
        for entry in entries:
            self.routes.setdefault(entry.path, {})[entry.method] = entry.endpoint

    def template(self, path: str) -> tuple[str, dict[str, str]] | None:
        """Which route a path is of, and what stands in the place that varies; None if it is of none."""
        if path in self.routes and "{" not in path:
            return path, {}
        parts = path.split("/")
        if path.startswith(_TASKS) and len(parts) > 4:
            ticket, parts[4] = parts[4], "{ticket}"
            if "/".join(parts) in self.routes:
                return "/".join(parts), {"ticket": ticket}
        return None


_TASKS = f"{PUBLIC}/tasks/"


class Middleware:
    """What every request passes on its way in, and every answer on its way out."""

    def __init__(self, service: Service, table: Table, page: ASGIApp) -> None:
        self._service, self.table, self._page = service, table, page
        sums = service.charter.sums
        self._safety = safety_headers(None if sums is None else sums.charter.helper_origin)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        began = time.perf_counter()
        found = self.table.template(scope["path"])
        send_safely = SafeSend(scope, send, self._safety)
        try:
            await self._respond(found, scope, receive, send_safely)
        except Exception as reason:
            if send_safely.status:  # the answer was under way: all that is left is to cut it off
                self._service.log.fault("answer", reason)
                raise
            await self._refusal(reason).response()(scope, receive, send_safely)
        finally:
            route = found[0] if found else "unknown" if scope["path"].startswith(("/api/", "/admin/api/")) else "page"
            self._service.metrics.request(route, send_safely.status, time.perf_counter() - began)

    async def _respond(
        self, found: tuple[str, dict[str, str]] | None, scope: Scope, receive: Receive, send: Send
    ) -> None:
        client = scope.get("client")
        enforce_rate_limit(self._service.address_limit, bucket_of(client[0]) if client else "unknown")
        if found is None:
            if not _is_plain(scope["path"]):
                raise HTTPException(404)
            scope["app"] = self  # so that the router raises where it knows no route
            await self._page(scope, receive, send)
            return
        template, scope["path_params"] = found
        methods = self.table.routes[template]
        endpoint = methods.get("GET" if scope["method"] == "HEAD" else scope["method"])
        if endpoint is None:
            raise HTTPException(405, headers={"Allow": ", ".join(methods)})
        answer = await endpoint(self._service, Request(scope, receive, send))
        await answer(scope, receive, send)

    def _refusal(self, reason: Exception) -> Refusal:
        if isinstance(reason, Refusal):
            return reason
        if isinstance(reason, StoreAway):
            return unavailable()
        if isinstance(reason, HTTPException):
            return _http_refusal(reason)
        self._service.log.fault("request", reason)
        return Refusal(500, "fault", "The server has made a mistake; it was noted. Nothing was stored.")


def _is_plain(path: str) -> bool:
    """Whether a path is written the one way that files are found by: `//admin.html` and `/x/../admin.html` are not."""
    return path == "/" or (posixpath.normpath(path) == path and not path.startswith("//") and path.isprintable())


def _http_refusal(reason: HTTPException) -> Refusal:
    if reason.status_code == 405:
        return Refusal(405, "method", "This address does not take that method.", reason.headers)
    if reason.status_code == 404:
        return Refusal(404, "unknown", "There is nothing at this address.")
    return Refusal(reason.status_code, "refused", f"The request was refused ({reason.detail}).", reason.headers)
