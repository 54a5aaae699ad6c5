"""Responses: JSON, bytes, and refusals. A refusal is a slug for programs and a sentence for people."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
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


def sums_not_published() -> Refusal:
    """The answer to who asks for a sum without noise: clients that know their own part of it would subtract that."""
    return Refusal(403, "no-noise", "The sums of this federation carry no noise, so they are not published.")


def json_response(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A response in JSON."""
    body = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
    return Response(body, status, headers=dict(headers or {}), media_type=JSON)


def bytes_response(content: bytes, headers: Mapping[str, str], media_type: str = TENSORS) -> Response:
    """A response of bytes that are ready."""
    return Response(content, 200, headers=dict(headers), media_type=media_type)


# What anyone who asks can take, and has already: compressed answers, and answers that need not be sent again.


def takes_gzip(request: Request) -> bool:
    """Whether anyone who asks can unpack an answer."""
    offered = request.headers.get("accept-encoding", "").lower().split(",")
    specs = {part.split(";")[0].strip(): part.replace(" ", "") for part in offered}
    return "gzip" in specs and not specs["gzip"].endswith((";q=0", ";q=0.0"))


def has_already(request: Request, etag: str) -> bool:
    """Whether anyone who asks has this very version."""
    named = {part.strip().removeprefix("W/") for part in request.headers.get("if-none-match", "").split(",")}
    return etag in named or "*" in named
