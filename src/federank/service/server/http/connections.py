"""Connections with limits: how long a request's head may be and take, how many an address may hold.

A sender that dribbles its headers, or opens a connection and says nothing, would hold it for ever; so would a receiver
that never reads its answer. One that sends headers without end would fill the memory. This protocol gives every request
a timeout for its headers and a size for its address and headers, and every response a time in which some of it must
have been taken; the body's limits are kept by `rate_limits.read_body`. An address holds so many connections at most.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from ipaddress import ip_address, ip_network
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from federank.service.server.http.rate_limits import bucket_of

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
    """Whether an address is one of --proxies, through which many devices come."""
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
        """HTTP/1.1, cut off when a head is too long or too slow, nobody reads, or an address holds too much."""

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
