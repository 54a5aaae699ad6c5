"""How a table of text is laid out: its delimiter, whether quotes wrap fields, and its header.

All is found from the first lines. A delimiter is right when it cuts a first line into known names, or else every
line into the same number of fields. A first line is a header when it names users or items, or when words stand
over columns of numbers. A caller who knows better says so, and is believed.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import NamedTuple

from federank.data.sources.roles import recognises
from federank.data.sources.text.contents import Text
from federank.data.sources.text.records import Record, records, uses_quotes
from federank.errors import BadFile, SettingError

DELIMITERS = ("\t", "::", ",", ";", "|", " ")
HEAD = 1 << 16
SAMPLE = 100

_ATOMIC = re.compile(r"(.+):(token|token_seq|float|float_seq)")


class Layout(NamedTuple):
    """How to cut a text into rows and columns."""

    delimiter: str
    quoted: bool
    names: tuple[str, ...] | None
    """The header, or None where there is none."""
    width: int
    """How many columns every row has."""
    skipped: int
    """How many records come before the first row: blank ones, and the header."""
    sample: list[list[str]]
    """The first rows, as text."""
    kinds: tuple[str, ...] | None = None
    """RecBole's types, where the header carries them."""

    def column(self, position: int) -> str:
        """What an error calls a column."""
        return repr(self.names[position]) if self.names else str(position + 1)


def find_layout(text: Text, *, header: bool | None = None, delimiter: str | None = None, named: bool = False) -> Layout:
    """Look at the first lines of a text; `named` says that a column was asked for by name."""
    if delimiter is not None and (not delimiter or set(delimiter) & set('"\r\n')):
        raise SettingError(f"A table cannot be cut at {delimiter!r}; give a delimiter such as ',' or '\\t'.")
    head = _head(text)
    if not any(line.strip() for line in head):
        raise BadFile(f"{text.label} starts with blank lines only; one line per interaction is needed.")
    cut = delimiter or _best_delimiter(text, head)
    rows = _rows(text, head, cut)
    if not rows:
        raise BadFile(f"{text.label} starts with lines that {cut!r} does not cut; check its delimiter and its quotes.")
    skipped, fields = rows[0].line - 1, rows[0].fields
    if len(fields) < 2:
        guess = f" It seems to be cut at {_best_delimiter(text, head)!r}." if delimiter else ""
        raise BadFile(f"Line {rows[0].line} of {text.label} has one column when cut at {cut!r}.{guess}")
    body = [row.fields for row in rows[1:]]
    if header is None:
        header = named or _is_header(fields, body)
    quoted = uses_quotes(text.view(), cut)
    if not header:
        return Layout(cut, quoted, None, len(fields), skipped, [fields, *body])
    names, kinds = _names(fields, rows[0].line, text.label)
    return Layout(cut, quoted, names, len(fields), skipped + 1, body, kinds)


def is_number(value: str) -> bool:
    """Whether a field reads as a number."""
    try:
        float(value)
    except ValueError:
        return False
    return True


def _head(text: Text) -> list[bytes]:
    """The first lines, none of them cut through."""
    content = text.view()
    lines = io.BytesIO(content[:HEAD]).readlines()
    return (lines if len(content) <= HEAD or len(lines) == 1 else lines[:-1])[:SAMPLE]


def _rows(text: Text, head: Sequence[bytes], delimiter: str) -> list[Record]:
    quoted = uses_quotes(b"".join(head), delimiter)
    found = list(records(head, text.label, delimiter, quoted=quoted, errors="replace", strict=False))
    return [record for record in found if any(record.fields)]


def _best_delimiter(text: Text, head: Sequence[bytes]) -> str:
    """The first delimiter under which the header is known, else the rows are even, else the first row is cut."""
    order = (",", *(d for d in DELIMITERS if d != ",")) if ".csv" in text.label.lower() else DELIMITERS
    cuts = {delimiter: [row.fields for row in _rows(text, head, delimiter)] for delimiter in order}
    cuts = {delimiter: rows for delimiter, rows in cuts.items() if rows and len(rows[0]) > 1}
    for delimiter, rows in cuts.items():
        if recognises(rows[0], "users", "items"):
            return delimiter
    for delimiter, rows in cuts.items():
        if len({len(row) for row in rows}) == 1:
            return delimiter
    if not cuts:
        for _ in records(head, text.label, "\t", quoted=False):
            pass  # where this is not text at all, that is the thing to say
        raise BadFile(
            f"The first line of {text.label} has neither tab, comma, '::', semicolon, bar nor space to cut it at, and "
            "at least a user and an item are needed; name another delimiter with delimiter='...'."
        )
    return next(iter(cuts))


def _is_header(first: Sequence[str], body: Sequence[Sequence[str]]) -> bool:
    if recognises(first, "users") or recognises(first, "items"):
        return True
    # Ids may be words in one row and numbers in the next, so only what follows them can give a header away.
    return any(
        not is_number(first[position]) and all(is_number(row[position]) for row in body if len(row) > position)
        for position in range(2, len(first))
        if any(len(row) > position for row in body)
    )


def _names(fields: Sequence[str], line: int, label: str) -> tuple[tuple[str, ...], tuple[str, ...] | None]:
    names = [name.strip() for name in fields]
    atomic = [_ATOMIC.fullmatch(name) for name in names]
    kinds = tuple(match[2] for match in atomic if match)
    if len(kinds) == len(names):
        names = [match[1] for match in atomic if match]
    repeated = next((name for name in names if name and names.count(name) > 1), None)
    if repeated is not None:
        raise BadFile(f"The header on line {line} of {label} has the column {repeated!r} twice; rename one of them.")
    return tuple(names), kinds if len(kinds) == len(names) else None
