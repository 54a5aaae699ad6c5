"""Listening: sockets, and a server on one of them that keeps to limits. What the leader and the helper have alike."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import json
import os
import resource
import signal
import socket
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from federank.errors import SettingError
from federank.errors import TLSError as TLSError
from federank.extras import need
from federank.files import PRIVATE, atomic_write
from federank.service.server.http.limits import bucket_of
from federank.service.server.logs import Log

# Connections with limits: how long a request's head may be and take, how many an address may hold.


MOST_URL = 8 * 1024
"""Bytes of a request's address: path and query."""
MOST_HEAD = 32 * 1024
"""Bytes of a request's address and headers together."""
_SLUGS = {HTTPStatus.TOO_MANY_REQUESTS: "too-many", HTTPStatus.BAD_REQUEST: "not-http"}


@dataclass(frozen=True, kw_only=True)
class ConnectionLimits:
    """What one connection may take, and how many an address may hold (0: no limit); proxies are not counted."""

    header_timeout: float
    reading_timeout: float
    per_address: int = 0
    is_proxy: Callable[[str], bool] = lambda _: False
    held: Counter[str] = field(default_factory=Counter)


def proxies_of(proxies: str | None) -> Callable[[str], bool]:
    """Whether an address is one of --proxies, through which many clients come."""
    named = [] if proxies is None else [proxy.strip() for proxy in proxies.split(",")]
    networks = [ip_network(proxy) for proxy in named if proxy != "*"]

    def is_proxy(address: str) -> bool:
        try:
            return "*" in named or any(ip_address(address) in network for network in networks)
        except ValueError:
            return False

    return is_proxy


class _TooLarge(Exception):
    """The head of a request is longer than allowed."""


def protocol_with_limits(limits: ConnectionLimits) -> type[asyncio.Protocol]:
    """The HTTP protocol that keeps to these limits."""

    class LimitedProtocol(HttpToolsProtocol):
        """HTTP/1.1, cut off when a head is too long or too slow, no one reads, or an address holds too much."""

        _deadline: asyncio.TimerHandle | None = None
        _stalled: asyncio.TimerHandle | None = None
        _holder: str | None = None
        _too_large: tuple[HTTPStatus, str] | None = None
        _head_begins = _in_head = True
        _head_bytes = 0

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._deadline = self.loop.call_later(limits.header_timeout, self._cut_off)
            if self.client is None or limits.is_proxy(self.client[0]):
                return
            holder = bucket_of(self.client[0])
            if limits.per_address and limits.held[holder] >= limits.per_address:
                self._refuse(HTTPStatus.TOO_MANY_REQUESTS, "Too many connections from one address; close some first.")
                return
            self._holder = holder
            limits.held[holder] += 1

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_waiting()
            self._stop_watching()
            if self._holder is not None:
                limits.held[self._holder] -= 1
                if not limits.held[self._holder]:
                    del limits.held[self._holder]
                self._holder = None
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            if self.transport.is_closing():
                return
            # A part that a head begins in is as long as a read at most; those that it goes on in are counted.
            self._head_begins = False
            super().data_received(data)
            if self._in_head and not self._head_begins and not self.transport.is_closing():
                self._head_bytes += len(data)
                if self._head_bytes > MOST_HEAD:
                    self._refuse_head(len(self.url))

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self._in_head = self._head_begins = True
            self._head_bytes = 0
            if self._deadline is None:  # a further request on the same connection
                self._deadline = self.loop.call_later(limits.header_timeout, self._cut_off)

        def on_url(self, url: bytes) -> None:
            super().on_url(url)
            if len(self.url) > MOST_URL:
                self._find_too_large(len(self.url))

        def on_headers_complete(self) -> None:
            self._stop_waiting()
            self._in_head = False
            size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
            if size > MOST_HEAD:
                self._find_too_large(len(self.url))
            super().on_headers_complete()

        def _find_too_large(self, url: int) -> None:
            # The parser stops at an exception, and uvicorn answers by `send_400_response`.
            self._too_large = _about_head(url)
            raise _TooLarge

        def _refuse_head(self, url: int) -> None:
            self._refuse(*_about_head(url))

        def send_400_response(self, msg: str) -> None:
            if self._too_large is not None:
                self._refuse(*self._too_large)
            else:
                self._refuse(HTTPStatus.BAD_REQUEST, msg)

        def _refuse(self, status: HTTPStatus, message: str) -> None:
            body = json.dumps({"error": _SLUGS.get(status, "too-large"), "message": message}).encode()
            head = f"HTTP/1.1 {status.value} {status.phrase}\r\ncontent-type: application/json\r\n"
            head += f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
            self._stop_waiting()
            self.transport.write(head.encode() + body)
            self.transport.close()

        def pause_writing(self) -> None:
            super().pause_writing()
            self._watch(self.transport.get_write_buffer_size())

        def resume_writing(self) -> None:
            self._stop_watching()
            super().resume_writing()

        def _watch(self, waiting: int) -> None:
            self._stop_watching()
            self._stalled = self.loop.call_later(limits.reading_timeout, self._see_progress, waiting)

        def _see_progress(self, waited: int) -> None:
            waiting = self.transport.get_write_buffer_size()
            if waiting < waited:
                self._watch(waiting)  # slow, but reading
            else:
                self._cut_off()

        def _stop_watching(self) -> None:
            if self._stalled is not None:
                self._stalled.cancel()
                self._stalled = None

        def _stop_waiting(self) -> None:
            if self._deadline is not None:
                self._deadline.cancel()
                self._deadline = None

        def _cut_off(self) -> None:
            self._deadline = None
            if not self.transport.is_closing():
                self.transport.abort()

    return LimitedProtocol


def _about_head(url: int) -> tuple[HTTPStatus, str]:
    if url > MOST_URL:
        return HTTPStatus.REQUEST_URI_TOO_LONG, f"The address of the request is longer than {MOST_URL:,} bytes."
    return (
        HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
        f"The headers of the request are longer than {MOST_HEAD:,} bytes together.",
    )


# TLS: an own certificate, or one made on the spot for a rehearsal or a closed network.


VALID_DAYS = 397


def server_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """How connections are encrypted: TLS 1.2 or newer."""
    for path in (certificate, key):
        if not path.is_file():
            raise TLSError(f"{path} is not there; give the certificate and its key as PEM files.")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(certificate, key)
    except (ssl.SSLError, OSError) as reason:
        raise TLSError(f"{certificate} and {key} cannot be used as a certificate and its key ({reason}).") from reason
    return context


def self_signed(folder: Path, hosts: tuple[str, ...]) -> tuple[Path, Path]:
    """A certificate for these hosts and its key, made if they are not in the folder yet.

    The first host is the one that matters: a certificate of an earlier start that is not for it is refused.
    """
    certificate, key = folder / "federank-cert.pem", folder / "federank-key.pem"
    need("service", "A certificate", "cryptography")
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    if certificate.is_file() and key.is_file():
        _refuse_unavailable(certificate, hosts[0])
        return certificate, key
    secret = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, hosts[0])])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(secret.public_key())
        .serial_number(x509.random_serial_number())
        # A day early: a client whose clock is slow must not take it for one of the future.
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=VALID_DAYS))
        .add_extension(x509.SubjectAlternativeName([_named(host) for host in hosts]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(secret, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    pem = serialization.Encoding.PEM
    atomic_write(key, secret.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain), mode=PRIVATE)
    atomic_write(certificate, made.public_bytes(pem))
    return certificate, key


def hosts_of(certificate: Path) -> list[str]:
    """The hosts that a certificate is for."""
    from cryptography import x509

    extensions = _read(certificate).extensions
    return [str(name.value) for name in extensions.get_extension_for_class(x509.SubjectAlternativeName).value]


def _refuse_unavailable(certificate: Path, host: str) -> None:
    """Clients would refuse a certificate of another host, or one whose time is over."""
    ends = _read(certificate).not_valid_after_utc
    if ends < datetime.datetime.now(datetime.UTC):
        wrong = f"was valid until {ends:%-d %B %Y}"
    elif host not in hosts_of(certificate):
        wrong = f"is for {', '.join(hosts_of(certificate))}, not for {host}"
    else:
        return
    raise TLSError(
        f"{certificate} {wrong}. Remove it and its key to have new ones made, and give the new one to clients."
    )


def _read(certificate: Path) -> Any:
    from cryptography import x509

    try:
        return x509.load_pem_x509_certificate(certificate.read_bytes())
    except (OSError, ValueError) as reason:
        raise TLSError(f"{certificate} cannot be read as a certificate ({reason}).") from reason


def _named(host: str) -> Any:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


BACKLOG = 4096
KEEP_ALIVE_TIMEOUT = 75
SPARE_FILES = 100
"""Open files that are kept free for the store when connections take all the others."""
GRACE_SECONDS: Any = 0.3  # uvicorn's annotation has integers alone
"""How long requests under way may take at the end. What was not acknowledged is sent again."""
LAST_SECONDS = 5.0
"""How long the store may take at the end: SQLite empties its log then."""


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
    """A server for this application; signals are left to anyone who runs it."""
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
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    config.load()
    if certificate and key:
        config.ssl = server_context(certificate, key)
    return Server(config)


def run(work: Coroutine[Any, Any, None]) -> int:
    """Run a server's process to its end; an exit code."""
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(work)
    return 0


def follow_signals(servers: list[Any], certificate: Path | None, key: Path | None, log: Log) -> asyncio.Event:
    """What a signal to stop will set. SIGHUP reads a renewed certificate, for new connections."""
    stopping, loop = asyncio.Event(), asyncio.get_running_loop()

    def read_again() -> None:
        if certificate is None or key is None:
            return
        try:
            server_context(certificate, key)  # a chain that does not go with its key must not be half taken
            for server in servers:
                if server.config.ssl is not None:
                    server.config.ssl.load_cert_chain(certificate, key)
        except (TLSError, OSError) as reason:  # the old one stays
            log.say("certificate cannot be used", "error", kind=type(reason).__name__)
        else:
            log.say("certificate read again")

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    loop.add_signal_handler(signal.SIGHUP, read_again)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})  # what came while this process started is taken now
    return stopping


async def serve_until(
    stopping: asyncio.Event, servers: list[Any], sockets: list[socket.socket], end: Callable[[], object]
) -> None:
    """Serve until the event is set or a server has ended; `end` answers those who wait."""
    tasks = [asyncio.create_task(server.serve(sockets=[bound])) for server, bound in zip(servers, sockets, strict=True)]
    await asyncio.wait([asyncio.create_task(stopping.wait()), *tasks], return_when=asyncio.FIRST_COMPLETED)
    for server in servers:
        server.should_exit = True
    end()
    await asyncio.gather(*tasks, return_exceptions=True)


async def stop_soon(stop: Awaitable[None], log: Log) -> None:
    """Stop what a process runs; if a thread waits for a store that does not answer, end the process.

    Nothing that was acknowledged is lost: all of that is stored.
    """
    try:
        async with asyncio.timeout(LAST_SECONDS):
            await stop
    except TimeoutError:
        log.say("stopped", "warning", reason="the store did not answer")
        os._exit(0)
    else:
        log.say("stopped")


def allow_many_connections() -> None:
    """As many open connections as the machine allows: every client that waits holds one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
