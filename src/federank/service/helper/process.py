"""The helper's one process: its application, its sockets, and its end.

One process is enough: a helper opens thousands of seeds a second, and only leaders ask it. It may be killed at any
moment; what it must not forget is in the store, and the keys of rounds under way are in memory that outlives it.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from pathlib import Path

from federank.errors import BadMessage, StoreAway
from federank.service.helper.api import OPERATOR_ROUTES, ROUTES
from federank.service.helper.rounds import NotNow
from federank.service.helper.service import HelperService
from federank.service.server.http.application import Application, Entry, Headers
from federank.service.server.http.listening import (
    ConnectionLimits,
    follow_signals,
    proxies_of,
    run,
    serve_until,
    stop_soon,
    uvicorn_server,
)
from federank.service.server.http.responses import Refusal

SAFETY: Headers = [
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
]
_STATUS = {"unknown": 404, "full": 507, "not-allowed": 403}


class HelperApp(Application):
    """What leaders, clients and anyone who watches talk to."""

    def __init__(self, service: HelperService, routes: tuple[Entry, ...] = ROUTES) -> None:
        super().__init__(service, routes, SAFETY)

    def refusal(self, reason: Exception) -> Refusal:
        """The reasons of a helper besides; all are counted."""
        refusal = self._refusal(reason) or super().refusal(reason)
        self._service.metrics.refused(refusal.slug)
        return refusal

    def _refusal(self, reason: Exception) -> Refusal | None:
        if isinstance(reason, BadMessage):
            return Refusal(422, "malformed", str(reason))
        if isinstance(reason, NotNow):
            return Refusal(_STATUS.get(reason.slug, 409), reason.slug, str(reason))
        if getattr(reason, "errno", None) == errno.ENOSPC or (isinstance(reason, StoreAway) and reason.is_full):
            return Refusal(503, "full", "There is no space left on the helper's disk.", {"Retry-After": "10"})
        return None


def serve(
    service: HelperService,
    public: socket.socket,
    operator: socket.socket,
    *,
    certificate: Path | None = None,
    key: Path | None = None,
    proxies: str | None = None,
) -> int:
    """Serve until stopped by a signal; an exit code. Round keys, identity and store are the service's."""
    settings = service.settings
    limits = ConnectionLimits(
        header_timeout=settings.header_seconds,
        reading_timeout=settings.body_seconds,
        per_address=settings.address_connections,
        is_proxy=proxies_of(proxies),
    )
    service.certificate = certificate

    async def work() -> None:
        servers = [
            uvicorn_server(HelperApp(service), limits, certificate, key, proxies),
            uvicorn_server(HelperApp(service, OPERATOR_ROUTES), limits),
        ]
        stopping = follow_signals(servers, certificate, key, service.log)
        service.log.say("serving")
        watching = asyncio.create_task(service.watch())
        await serve_until(stopping, servers, [public, operator], watching.cancel)
        await stop_soon(asyncio.to_thread(service.stop), service.log)

    return run(work())
