"""What every request passes on its way in, and every answer on its way out. The leader and the helper have it alike."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Literal, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from federank.errors import StoreAway
from federank.service.server.http.limits import bucket_of, enforce_rate_limit
from federank.service.server.http.responses import JSON, Refusal

Endpoint = Callable[[Any, Request], Awaitable[Response]]
Headers = list[tuple[bytes, bytes]]
_ONLY_TLS = (b"strict-transport-security", b"max-age=31536000")


class Entry(NamedTuple):
    """One route. Parts of its path in braces vary; the others are looked up."""

    method: str
    path: str
    endpoint: Endpoint
    who: Literal["anyone", "client", "operator"] = "anyone"
    query: tuple[tuple[str, str], ...] = ()  # name and meaning; all are integers
    sends: str | None = None  # content type of the request's body
    answers: tuple[tuple[int, str], ...] = ((200, JSON),)  # status and content type ("" for none)
    refusals: tuple[int, ...] = ()


class Application:
    """The routes of a server, behind its limits. Every endpoint is given the service."""

    def __init__(self, service: Any, entries: Iterable[Entry], headers: Headers) -> None:
        self._service, self._headers = service, headers
        self.routes: dict[str, dict[str, Entry]] = {}
        for entry in entries:
            self.routes.setdefault(entry.path, {})[entry.method] = entry
        self._templates = [path.split("/") for path in self.routes if "{" in path]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        began, status = time.perf_counter(), 0
        headers = [*self._headers, _ONLY_TLS] if scope.get("scheme") == "https" else self._headers

        async def send_safely(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], *headers]
            await send(message)

        template, scope["path_params"] = self._find(scope["path"])
        try:
            answer = await self._answer(template, Request(scope, receive, send))
            await answer(scope, receive, send_safely)
        except Exception as reason:
            if status:  # the answer was under way: all that is left is to cut it off
                self._service.log.fault("answer", reason)
                raise
            await self.refusal(reason).response()(scope, receive, send_safely)
        finally:
            self._service.metrics.request(template, status, time.perf_counter() - began)

    def _find(self, path: str) -> tuple[str, dict[str, str]]:
        """Which route a path is of, and what stands in the places that vary."""
        if path in self.routes and "{" not in path:
            return path, {}
        parts = path.split("/")
        for template in self._templates:
            pairs = list(zip(template, parts, strict=False))
            if len(template) == len(parts) and all(named[:1] == "{" or named == part for named, part in pairs):
                return "/".join(template), {named[1:-1]: part for named, part in pairs if named[:1] == "{"}
        return self.name_of_other(path), {}

    async def _answer(self, template: str, request: Request) -> Response:
        client = request.client
        enforce_rate_limit(self._service.address_limit, bucket_of(client.host) if client else "unknown")
        methods = self.routes.get(template)
        if methods is None:
            return self.other(request)
        entry = methods.get("GET" if request.method == "HEAD" else request.method)
        if entry is None:
            raise wrong_method(", ".join(methods))
        await self.admit(entry, request)
        return await entry.endpoint(self._service, request)

    def name_of_other(self, path: str) -> str:  # noqa: ARG002
        """What a path that is of no route is called in the metrics."""
        return "unknown"

    def other(self, request: Request) -> Response:  # noqa: ARG002
        """The answer where there is no route."""
        raise nothing_here()

    async def admit(self, entry: Entry, request: Request) -> None:
        """Refuse a request of anyone whom a route is not for."""

    def refusal(self, reason: Exception) -> Refusal:
        """What anyone who asks receives of an error; a fault of ours is logged."""
        if isinstance(reason, Refusal):
            return reason
        if isinstance(reason, StoreAway):
            message = "The server's store does not answer now; nothing was stored. Try again soon."
            return Refusal(503, "away", message, {"Retry-After": "2"})
        self._service.log.fault("request", reason)
        return Refusal(500, "fault", "The server has made a mistake; it was noted. Nothing was stored.")


def nothing_here() -> Refusal:
    """The answer to an address that there is not."""
    return Refusal(404, "unknown", "There is nothing at this address.")


def wrong_method(allowed: str) -> Refusal:
    """The answer to a method that an address does not take."""
    return Refusal(405, "method", "This address does not take that method.", {"Allow": allowed})
