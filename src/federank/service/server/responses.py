"""Answers: JSON, bytes, and refusals. A refusal is a slug for programs and a whole sentence for people."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

JSON = "application/json"
TENSORS = "application/octet-stream"


class Refusal(Exception):
    """A request that is answered with an error."""

    def __init__(self, status: int, slug: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.slug, self.message = status, slug, message
        self.headers = dict(headers or {})

    def answer(self) -> Response:
        """The refusal as it is sent."""
        return answer_json({"error": self.slug, "message": self.message}, self.status, self.headers)


def answer_json(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """An answer in JSON."""
    body = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
    return Response(body, status, headers=dict(headers or {}), media_type=JSON)


def answer_bytes(content: bytes, headers: Mapping[str, str], media_type: str = TENSORS) -> Response:
    """An answer of bytes that are ready."""
    return Response(content, 200, headers=dict(headers), media_type=media_type)


def away() -> Refusal:
    """The store does not answer."""
    return Refusal(
        503, "away", "The server's store does not answer now; nothing was stored. Try again soon.", {"Retry-After": "2"}
    )
