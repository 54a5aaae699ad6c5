"""The helper's one process: a socket, and its end.

One process is enough: a helper opens thousands of seeds a second, and only leaders ask it. It may be killed at any
moment; what it must not forget is in the store, and the keys of rounds under way are in memory that outlives it.
"""

from __future__ import annotations

import asyncio
import errno
import signal
import socket
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Receive, Scope, Send

from federank.errors import BadMessage, StoreAway, TLSError
from federank.service.helper.api import OPERATOR_ROUTES, ROUTES, Endpoint
from federank.service.helper.rounds import HelperSettings, NotNow
from federank.service.helper.service import HelperService, open_helper
from federank.service.server.http.limits import bucket_of, enforce_rate_limit
from federank.service.server.http.listening import (
    ConnectionLimits,
    proxies_of,
    server_context,
    stop_soon,
    uvicorn_server,
)
from federank.service.server.http.responses import Headers, Refusal, SafeSend, unavailable
from federank.service.server.logs import Log

# The helper's application: limits and routes on the way in; headers, counts and complete errors on the way out.


SAFETY: Headers = [
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
]
_STATUS = {"unknown": 404, "full": 507, "not-allowed": 403}


class HelperApp:
    """One application for leaders, clients and anyone who watches."""

    def __init__(self, service: HelperService, routes: tuple[tuple[str, str, Endpoint], ...] = ROUTES) -> None:
        self._service = service
        self._routes = [
            (Route(path, _bound(service, endpoint), methods=[method]), endpoint) for method, path, endpoint in routes
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
        if isinstance(reason, StoreAway) and not reason.is_full:
            return unavailable()
        if isinstance(reason, StoreAway) or (isinstance(reason, OSError) and reason.errno == errno.ENOSPC):
            return Refusal(503, "full", "There is no space left on the helper's disk.", {"Retry-After": "10"})
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


@dataclass(frozen=True, kw_only=True)
class HelperServing:
    """How one machine serves as a helper."""

    store: str
    origin: str
    keys: Path
    settings: HelperSettings
    certificate: Path | None = None
    key: Path | None = None
    proxies: str | None = None
    quiet: bool = False
    new_identity: bool = False


def open_service(serving: HelperServing) -> HelperService:
    """The helper's store, identity and keys, ready to serve."""
    log = Log(None if serving.quiet else sys.stderr)
    return open_helper(
        serving.store, serving.origin, serving.keys, serving.settings, log, new_identity=serving.new_identity
    )


def serve(serving: HelperServing, service: HelperService, bound: socket.socket, operator: socket.socket) -> int:
    """Serve until stopped by a signal; an exit code."""
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_work(serving, service, bound, operator))


def _read_certificate_again(serving: HelperServing, server: Any, log: Log) -> None:
    """Take a renewed certificate for new connections; one that cannot be used is logged, and the old one stays."""
    if serving.certificate is None or serving.key is None:
        return
    try:
        server_context(serving.certificate, serving.key)
        server.config.ssl.load_cert_chain(serving.certificate, serving.key)
    except (TLSError, OSError) as reason:
        log.say("certificate cannot be used", "error", kind=type(reason).__name__)
    else:
        log.say("certificate read again")


async def _work(serving: HelperServing, service: HelperService, bound: socket.socket, operator: socket.socket) -> int:
    limits = ConnectionLimits(
        header_timeout=serving.settings.header_seconds,
        reading_timeout=serving.settings.body_seconds,
        per_address=serving.settings.address_connections,
        is_proxy=proxies_of(serving.proxies),
    )
    server = uvicorn_server(HelperApp(service), limits, serving.certificate, serving.key, serving.proxies)
    operators = uvicorn_server(HelperApp(service, OPERATOR_ROUTES), limits)
    service.certificate = serving.certificate
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, _read_certificate_again, serving, server, service.log)
    service.log.say("serving")
    task = asyncio.create_task(server.serve(sockets=[bound]))
    other = asyncio.create_task(operators.serve(sockets=[operator]))
    watching = asyncio.create_task(service.watch())
    await asyncio.wait([asyncio.create_task(stopping.wait()), task], return_when=asyncio.FIRST_COMPLETED)
    server.should_exit = operators.should_exit = True
    watching.cancel()
    await asyncio.gather(task, other, watching, return_exceptions=True)
    await stop_soon(asyncio.to_thread(service.stop), service.log)
    return 0
