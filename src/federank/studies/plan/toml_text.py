"""Writing a study as TOML: the standard library reads the format only.

Values are what TOML's own reader gives: text, numbers, truth values, lists and tables. Tables inside lists of plain
values are written in one line; the others get headings.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any


def toml_text(document: Mapping[str, Any]) -> str:
    """The document as TOML; reading it again gives the same document."""
    return "\n".join(_table(document, ())).strip() + "\n"


def _table(table: Mapping[str, Any], path: tuple[str, ...]) -> list[str]:
    lines = [f"{_key(key)} = {_value(value)}" for key, value in table.items() if not _has_heading(value)]
    for key, value in table.items():
        if not _has_heading(value):
            continue
        heading = ".".join(map(_key, (*path, key)))
        if isinstance(value, Mapping):
            lines += ["", f"[{heading}]", *_table(value, (*path, key))]
        else:
            for entry in value:
                lines += ["", f"[[{heading}]]", *_entry(entry)]
    return lines


def _entry(entry: Mapping[str, Any]) -> list[str]:
    """A table of a list: what is inside it stays in its lines, so that no heading can slip into the next entry."""
    return [f"{_key(key)} = {_value(value)}" for key, value in entry.items()]


def _has_heading(value: Any) -> bool:
    if isinstance(value, list):
        return bool(value) and all(isinstance(entry, Mapping) for entry in value)
    return isinstance(value, Mapping)


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _text(key)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return "nan" if math.isnan(value) else repr(value) if math.isfinite(value) else f"{'-' * (value < 0)}inf"
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(key)} = {_value(held)}" for key, held in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    return _text(str(value))


def _text(text: str) -> str:
    # JSON's escapes are TOML's, but that TOML wants the character 127 escaped as well.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
