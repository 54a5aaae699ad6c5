"""A lean HTTP connection for each of thousands of simulated clients in one process.

It is kept alive (HTTP/1.1), on asyncio's own transports, with httptools reading the responses: a load test on the
machine of its server must not spend the processor on its client. No pools, no redirects, no retries; a cut connection
is made again at the next request. Bytes are counted as they pass.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import Any, NamedTuple, cast
from urllib.parse import urlsplit

from federank.errors import BadAnswer, NoAnswer
from federank.extras import need
from federank.service.client.http import PREFIX, read_retry_after


class Reply(NamedTuple):
    """A response: its status, its content, and of its headers only how many seconds it asks to wait."""

    status: int
    content: bytes
    retry_after: float = 0.0


def needed_httptools() -> Any:
    """The package httptools, or an error that says how to get it."""
    need("service", "A connection to a server", "httptools")
    import httptools

    return httptools


class Connection(asyncio.Protocol):
    """A client's connection; one request at a time."""

    def __init__(self, address: str, trusted: ssl.SSLContext | None = None) -> None:
        parts = urlsplit(address)
        self._secure = parts.scheme == "https"
        self._host, self._port = parts.hostname or "", parts.port or (443 if self._secure else 80)
        self._trusted = trusted
        self._transport: asyncio.Transport | None = None
        self._reply: asyncio.Future[Reply] | None = None
        self._head = f" HTTP/1.1\r\nHost: {parts.netloc}\r\n".encode()
        self.token: str | None = None
        self.most_bytes = 1 << 26
        self.sent = self.received = self._hung_up = 0
        self._httptools = needed_httptools()

    async def request(self, method: str, path: str, body: bytes | None = None, *, timeout: float = 60.0) -> Reply:
        """One request and its full response; `NoAnswer` where there is none within the timeout."""
        try:
            async with asyncio.timeout(timeout):
                if self._transport is None or self._transport.is_closing():
                    await self._connect()
                loop = asyncio.get_running_loop()
                self._reply = loop.create_future()
                self._write(method, path, body)
                return await self._reply
        except (OSError, TimeoutError) as fault:
            self.close()
            raise NoAnswer(f"{self._host}:{self._port} did not answer ({fault or 'in time'}).") from fault
        except asyncio.CancelledError:
            self.close()
            raise

    def close(self) -> None:
        """Hang up."""
        if self._transport is not None:
            self._transport.abort()
            self._transport = None
            self._hung_up += 1  # asyncio will report its loss later, when there may be a new connection

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        secure: dict[str, Any] = {"ssl": self._trusted, "server_hostname": self._host} if self._secure else {}
        try:
            await loop.create_connection(lambda: self, self._host, self._port, **secure)
        except ssl.SSLCertVerificationError as fault:
            raise BadAnswer(
                f"The certificate of {self._host} cannot be trusted ({fault.verify_message}); name its file with --ca."
            ) from fault

    def _write(self, method: str, path: str, body: bytes | None) -> None:
        assert self._transport is not None
        head = bytearray(f"{method} {PREFIX}{path}".encode())
        head += self._head
        if self.token is not None:
            head += f"Authorization: Bearer {self.token}\r\n".encode()
        if body is not None:
            head += f"Content-Type: application/octet-stream\r\nContent-Length: {len(body)}\r\n".encode()
        head += b"\r\n"
        if body is not None:
            head += body
        self.sent += len(head)
        self._transport.write(bytes(head))

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is there."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one in all but name
        self._parser = self._httptools.HttpResponseParser(self)

    def data_received(self, data: bytes) -> None:
        """Bytes have come."""
        self.received += len(data)
        try:
            self._parser.feed_data(data)
        except self._httptools.HttpParserError as fault:
            self._fail(ConnectionError(f"not an answer in HTTP: {fault}"))

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone."""
        if self._hung_up:
            self._hung_up -= 1
            return
        self._transport = None
        self._fail(ConnectionError(str(exc or "the connection was cut")))

    # What httptools calls.

    def on_message_begin(self) -> None:
        """A response begins."""
        self._pieces: list[bytes] = []
        self._size = 0
        self._retry_after = 0.0

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header; one of them matters."""
        if name.lower() == b"retry-after":
            self._retry_after = read_retry_after(value.decode("latin-1"))

    def on_body(self, piece: bytes) -> None:
        """A piece of the content."""
        self._size += len(piece)
        if self._size > self.most_bytes:
            self._fail(ConnectionError(f"an answer of more than {self.most_bytes:,} bytes"))
        else:
            self._pieces.append(piece)

    def on_message_complete(self) -> None:
        """A response is complete."""
        status = self._parser.get_status_code()
        if not self._parser.should_keep_alive():
            self.close()
        if self._reply is not None and not self._reply.done():
            self._reply.set_result(Reply(status, b"".join(self._pieces), self._retry_after))

    def _fail(self, fault: Exception) -> None:
        if self._reply is not None and not self._reply.done():
            self._reply.set_exception(fault)
        self.close()
