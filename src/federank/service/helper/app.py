"""The helper's application: limits and routes on the way in; headers, counts and whole sentences on the way out.

What goes wrong becomes a sentence without a secret: exceptions of ours say what was found and what is needed, and of
all others only their kind is noted.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Receive, Scope, Send

from federank.errors import BadMessage, StoreAway
from federank.service.helper.endpoints import ROUTES, Endpoint
from federank.service.helper.rounds import NotNow
from federank.service.helper.service import HelperService
from federank.service.server.http.rate_limits import bucket_of, enforce_rate_limit
from federank.service.server.http.responses import Refusal, unavailable
from federank.service.server.http.safe_send import Headers, SafeSend

SAFETY: Headers = [
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
]
_STATUS = {"unknown": 404, "full": 507}


class HelperApp:
    """One application for leaders, devices and whoever watches."""

    def __init__(self, service: HelperService) -> None:
        self._service = service
        self._routes = [
            (Route(path, _bound(service, endpoint), methods=[method]), endpoint) for method, path, endpoint in ROUTES
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        began, send_safely = time.perf_counter(), SafeSend(scope, send, SAFETY)
        name, act = self._find(scope)
        try:
            client = scope.get("client")
            enforce_rate_limit(self._service.address_limit, bucket_of(client[0]) if client else "unknown")
            answer = await act(Request(scope, receive, send))
        except Exception as reason:
            refusal = self._refusal(reason)
            self._service.metrics.refused(refusal.slug)
            answer = refusal.response()
        try:
            await answer(scope, receive, send_safely)
        finally:
            self._service.metrics.request(name, send_safely.status, time.perf_counter() - began)

    def _find(self, scope: Scope) -> tuple[str, Callable[[Request], Awaitable[Response]]]:
        """The route of a request, by its name; or what refuses it."""
        known = False
        for route, endpoint in self._routes:
            match, child = route.matches(scope)
            if match is Match.FULL:
                scope.update(child)
                return endpoint.__name__, _bound(self._service, endpoint)
            known = known or match is Match.PARTIAL
        if known:
            return "unknown", _refuse(Refusal(405, "method", "This address does not take that method."))
        return "unknown", _refuse(Refusal(404, "unknown", "There is nothing at this address."))

    def _refusal(self, reason: Exception) -> Refusal:
        if isinstance(reason, Refusal):
            return reason
        if isinstance(reason, BadMessage):
            return Refusal(422, "malformed", str(reason))
        if isinstance(reason, NotNow):
            return Refusal(_STATUS.get(reason.slug, 409), reason.slug, str(reason))
        if isinstance(reason, StoreAway):
            return unavailable()
        if isinstance(reason, HTTPException):
            return Refusal(reason.status_code, "refused", "The request was refused.")
        self._service.log.fault("request", reason)
        return Refusal(500, "fault", "The helper has made a mistake; it was noted. Nothing was stored.")


def _bound(service: HelperService, endpoint: Endpoint) -> Callable[[Request], Awaitable[Response]]:
    async def act(request: Request) -> Response:
        return await endpoint(service, request)

    return act


def _refuse(refusal: Refusal) -> Callable[[Request], Awaitable[Response]]:
    async def act(request: Request) -> Response:  # noqa: ARG001
        raise refusal

    return act
