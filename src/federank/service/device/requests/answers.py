"""The values of a server's answers: numbers in their range, short texts, names that people will see; or a refusal."""

from __future__ import annotations

import json
import math
from typing import Any

from federank.errors import BadAnswer
from federank.service.device.rules import LONGEST_TEXT


def shown(value: Any) -> str:
    """A name that people will see: of a bounded length, and with no power over a terminal."""
    name = str(value)[:500]
    return name if name.isprintable() else "".join(letter if letter.isprintable() else " " for letter in name)


def json_object(content: bytes, what: str) -> dict[str, Any]:
    """The object that an answer must be; `what` it was about is named if it is none."""
    try:
        answer = json.loads(content.decode())  # of bytes, json would also take UTF-16 and UTF-32
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        raise BadAnswer(f"The server's answer {what} is not the JSON that was asked for.")
    return answer


def whole(value: Any, least: int, most: float = 2**53) -> int:
    """A whole number in its range."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise BadAnswer(f"The server answered {str(value)[:40]!r} where a whole number from {least} is needed.")
    return value


def number(value: Any) -> float:
    """A finite number from 0."""
    try:
        found = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
    except OverflowError:  # a whole number beyond all floats
        found = math.inf
    if not math.isfinite(found) or found < 0:
        raise BadAnswer(f"The server answered {str(value)[:40]!r} where a finite number from 0 is needed.")
    return found


def text(value: Any) -> str:
    """A short text of plain letters."""
    if not isinstance(value, str) or not (value.isascii() and value.isprintable() and 0 < len(value) <= LONGEST_TEXT):
        raise BadAnswer(f"The server answered {str(value)[:40]!r} where a short text is needed.")
    return value
