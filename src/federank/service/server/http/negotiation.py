"""What whoever asks can take, and has already: compressed answers, and answers that need not be sent again."""

from __future__ import annotations

from starlette.requests import Request


def takes_gzip(request: Request) -> bool:
    """Whether whoever asks can unpack an answer."""
    offered = request.headers.get("accept-encoding", "").lower().split(",")
    wishes = {part.split(";")[0].strip(): part.replace(" ", "") for part in offered}
    return "gzip" in wishes and not wishes["gzip"].endswith((";q=0", ";q=0.0"))


def has_already(request: Request, etag: str) -> bool:
    """Whether whoever asks has this very version."""
    named = {part.strip().removeprefix("W/") for part in request.headers.get("if-none-match", "").split(",")}
    return etag in named or "*" in named
