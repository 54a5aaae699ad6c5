"""What comes back over a device's line: read up to a limit, unpacked up to the same limit, or refused.

What goes wrong is said with BadAnswer, NoAnswer, Refused or Withdrawn (errors.py).
"""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, NamedTuple

from federank.errors import BadAnswer as BadAnswer
from federank.errors import NoAnswer as NoAnswer
from federank.errors import Refused as Refused
from federank.errors import Withdrawn as Withdrawn

if TYPE_CHECKING:
    import httpx

SECONDS_TO_ANSWER = 120.0
"""However slowly an answer drips, it is given up after this long."""


class Answer(NamedTuple):
    """What came back: a status of 2xx or 304, headers (lower case), and the whole content."""

    status: int
    headers: dict[str, str]
    content: bytes


class Passing(Exception):
    """Something that may be over at the next try; `wait` is how long the server asked to be left alone."""

    def __init__(self, reason: str, wait: float = 0.0) -> None:
        super().__init__(reason)
        self.wait = wait


def bounded_content(response: httpx.Response, most_bytes: int) -> bytes:
    """The content of an answer, unpacked, unless it is longer than was asked for or takes too long."""
    too_long = BadAnswer(
        f"The server's answer is longer than the {most_bytes:,} bytes it can have at most; it was not read further."
    )
    began, content = time.monotonic(), bytearray()
    for piece in _unpacked(response, most_bytes):
        content += piece
        if len(content) > most_bytes:
            raise too_long
        if time.monotonic() - began > SECONDS_TO_ANSWER:
            raise Passing(f"the answer was not complete after {SECONDS_TO_ANSWER:.0f} s")
    return bytes(content)


def _unpacked(response: httpx.Response, most_bytes: int) -> Iterator[bytes]:
    packing = response.headers.get("content-encoding", "identity").strip().lower()
    if packing == "identity":
        yield from response.iter_raw()
        return
    if packing != "gzip":
        raise BadAnswer(f"The server packed its answer as {packing[:40]!r}, which was not asked for.")
    unpack = zlib.decompressobj(wbits=31)
    try:
        for piece in response.iter_raw():
            yield unpack.decompress(piece, most_bytes + 1)  # a bomb goes off one byte above the limit
    except zlib.error as reason:
        raise BadAnswer(f"The server's answer is not the gzip it says it is ({reason}).") from reason


def complaint(content: bytes) -> tuple[str, str]:
    """The reason in one word and the sentence of an error's body, with no power over the terminal."""
    try:
        told = json.loads(content)
        slug, message = str(told["error"]), str(told["message"])
    except (ValueError, KeyError, TypeError, RecursionError):
        slug, message = "unknown", "no reason was given"
    return slug[:40], "".join(letter if letter.isprintable() else " " for letter in message[:300])


def retry_after(text: str) -> float:
    """How many seconds to wait: given as a number or as a date; 0 where it is neither."""
    try:
        return max(0.0, float(text)) if text else 0.0
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, OverflowError):
        return 0.0
