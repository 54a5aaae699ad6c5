"""Responses: JSON, bytes, and refusals. A refusal is a slug for programs and a whole sentence for people."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

JSON = "application/json"
TENSORS = "application/octet-stream"


class Refusal(Exception):
    """A request that gets an error."""

    def __init__(self, status: int, slug: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.slug, self.message = status, slug, message
        self.headers = dict(headers or {})

    def response(self) -> Response:
        """The refusal as it is sent."""
        return json_response({"error": self.slug, "message": self.message}, self.status, self.headers)


def json_response(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A response in JSON."""
    body = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
    return Response(body, status, headers=dict(headers or {}), media_type=JSON)


def bytes_response(content: bytes, headers: Mapping[str, str], media_type: str = TENSORS) -> Response:
    """A response of bytes that are ready."""
    return Response(content, 200, headers=dict(headers), media_type=media_type)


def unavailable() -> Refusal:
    """The store does not answer."""
    return Refusal(
        503, "away", "The server's store does not answer now; nothing was stored. Try again soon.", {"Retry-After": "2"}
    )
