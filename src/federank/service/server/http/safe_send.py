"""Answers leave with headers that keep browsers to what the service needs, and with a note of their status."""

from __future__ import annotations

from starlette.types import Message, Scope, Send

Headers = list[tuple[bytes, bytes]]

_ONLY_TLS = (b"strict-transport-security", b"max-age=31536000")


class SafeSend:
    """Sends one request's answer."""

    def __init__(self, scope: Scope, send: Send, headers: Headers) -> None:
        self._send = send
        self._headers = [*headers, _ONLY_TLS] if scope.get("scheme") == "https" else headers
        self.status = 0  # until the answer is under way

    async def __call__(self, message: Message) -> None:
        """Pass a part of the answer on; its first part gets the headers."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [*message["headers"], *self._headers]
        await self._send(message)
