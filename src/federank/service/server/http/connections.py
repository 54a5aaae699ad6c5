"""Connections with timeouts.

A sender that dribbles its headers, or opens a connection and says nothing, would hold it for ever; so would a receiver
that never reads its answer. This protocol gives every request a timeout for its headers, and every response one in
which some of it must have been taken; the body's timeout is kept by `rate_limits.read_body`.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


def protocol_with_timeouts(header_timeout: float, reading_timeout: float) -> type[asyncio.Protocol]:
    """The HTTP protocol with a timeout for headers, and one for a receiver that has stopped to read."""

    class TimedProtocol(HttpToolsProtocol):
        """HTTP/1.1, cut off when headers take too long, or nobody reads."""

        _deadline: asyncio.TimerHandle | None = None
        _stalled: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._deadline = self.loop.call_later(header_timeout, self._cut_off)

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_waiting()
            self._stop_watching()
            super().connection_lost(exc)

        def pause_writing(self) -> None:
            super().pause_writing()
            self._watch(self.transport.get_write_buffer_size())

        def resume_writing(self) -> None:
            self._stop_watching()
            super().resume_writing()

        def _watch(self, waiting: int) -> None:
            self._stop_watching()
            self._stalled = self.loop.call_later(reading_timeout, self._see_progress, waiting)

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

        def on_message_begin(self) -> None:
            super().on_message_begin()
            if self._deadline is None:  # a further request on the same connection
                self._deadline = self.loop.call_later(header_timeout, self._cut_off)

        def on_headers_complete(self) -> None:
            self._stop_waiting()
            super().on_headers_complete()

        def _stop_waiting(self) -> None:
            if self._deadline is not None:
                self._deadline.cancel()
                self._deadline = None

        def _cut_off(self) -> None:
            self._deadline = None
            if not self.transport.is_closing():
                self.transport.abort()

    return TimedProtocol
