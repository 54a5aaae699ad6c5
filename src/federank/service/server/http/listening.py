"""Listening: sockets, and a server on one of them that keeps to limits. What the leader and the helper have alike."""

from __future__ import annotations

import resource
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from federank.errors import SettingError
from federank.service.server.http.connections import ConnectionLimits, protocol_with_limits
from federank.service.server.http.tls import server_context

BACKLOG = 4096
KEEP_ALIVE_TIMEOUT = 75
SPARE_FILES = 100
"""Open files that are kept free for the store when connections take all the others."""


def bind(host: str, port: int, flag: str = "--port") -> socket.socket:
    """A listening socket; port 0 takes a free one. `flag` is where another can be named."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
    except (OSError, OverflowError) as reason:
        bound.close()
        if port == 0 or isinstance(reason, socket.gaierror):
            host_flag = flag.replace("port", "host")
            raise SettingError(f"{host_flag} {host} is no address of this machine ({reason}).") from reason
        raise SettingError(f"Port {port} of {host} cannot be used ({reason}); choose another with {flag}.") from reason
    bound.listen(BACKLOG)
    bound.setblocking(False)
    return bound


def uvicorn_server(
    app: Any,
    limits: ConnectionLimits,
    certificate: Path | None = None,
    key: Path | None = None,
    proxies: str | None = None,
) -> Any:
    """A server for this application; signals are left to whoever runs it."""
    import uvicorn

    class Server(uvicorn.Server):
        """uvicorn, with the signals left to us."""

        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

    config = uvicorn.Config(
        app,
        http=protocol_with_limits(limits),
        limit_concurrency=max(10, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - SPARE_FILES),
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="critical",
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=proxies is not None,
        forwarded_allow_ips=proxies,
        timeout_keep_alive=KEEP_ALIVE_TIMEOUT,
        timeout_graceful_shutdown=5,
    )
    config.load()
    if certificate and key:
        config.ssl = server_context(certificate, key)
    return Server(config)


def allow_many_connections() -> None:
    """As many open connections as the machine allows: every device that waits holds one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
