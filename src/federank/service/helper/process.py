"""The helper's one process: a socket, and its end.

One process is enough: a helper opens thousands of seeds a second, and only leaders ask it. It may be killed at any
moment; what it must not forget is in the store, and the keys of rounds under way are in memory that outlives it.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from federank.errors import TLSError
from federank.service.helper.app import HelperApp
from federank.service.helper.service import HelperService, open_helper
from federank.service.helper.settings import HelperSettings
from federank.service.server.http.connections import ConnectionLimits, proxies_of
from federank.service.server.http.listening import uvicorn_server
from federank.service.server.http.tls import server_context
from federank.service.server.logs import Log


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


def serve(serving: HelperServing, service: HelperService, bound: socket.socket) -> int:
    """Serve until told to stop; an exit code."""
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_work(serving, service, bound))


def _read_certificate_again(serving: HelperServing, server: Any, log: Log) -> None:
    """Take a renewed certificate for new connections; one that cannot be used is told, and the old one stays."""
    if serving.certificate is None or serving.key is None:
        return
    try:
        server_context(serving.certificate, serving.key)
        server.config.ssl.load_cert_chain(serving.certificate, serving.key)
    except (TLSError, OSError) as reason:
        log.say("certificate cannot be used", "error", kind=type(reason).__name__)
    else:
        log.say("certificate read again")


async def _work(serving: HelperServing, service: HelperService, bound: socket.socket) -> int:
    limits = ConnectionLimits(
        header_timeout=serving.settings.header_seconds,
        reading_timeout=serving.settings.body_seconds,
        per_address=serving.settings.address_connections,
        is_proxy=proxies_of(serving.proxies),
    )
    server = uvicorn_server(HelperApp(service), limits, serving.certificate, serving.key, serving.proxies)
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, _read_certificate_again, serving, server, service.log)
    service.log.say("serving")
    task = asyncio.create_task(server.serve(sockets=[bound]))
    await asyncio.wait([asyncio.create_task(stopping.wait()), task], return_when=asyncio.FIRST_COMPLETED)
    server.should_exit = True
    await asyncio.gather(task, return_exceptions=True)
    await asyncio.to_thread(service.stop)
    service.log.say("stopped")
    return 0
