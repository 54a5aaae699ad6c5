"""A table of text one record at a time: slow and exact, for headers, item files and the line at fault.

Two ways of writing a table are told apart. Where some field begins with a quote, quotes are the CSV standard's:
they wrap a field that may hold delimiters, line ends and doubled quotes. Where none does, a quote is a letter
like any other, as in a title of `7" Singles`.
"""

from __future__ import annotations

import csv
import mmap
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from federank.errors import BadFile

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Record(NamedTuple):
    """One row as text, and the number of the line it starts on."""

    line: int
    fields: list[str]


def uses_quotes(content: bytes | mmap.mmap, delimiter: str) -> bool:
    """Whether some field begins with a quote, so that quotes wrap fields."""
    if len(delimiter) > 1 or content.find(b'"') < 0:
        return False
    at_start = content[:4].removeprefix(BYTE_ORDER_MARK).startswith(b'"')
    return at_start or content.find(b'\n"') >= 0 or content.find(delimiter.encode() + b'"') >= 0


def records(
    lines: Iterable[bytes],
    label: str,
    delimiter: str,
    *,
    quoted: bool,
    encoding: str = "utf-8",
    errors: str = "strict",
    strict: bool = True,
) -> Iterator[Record]:
    """Each record with its line; a blank line is a record of one empty field.

    Unless `strict`, records end quietly where quotes break: a first look at lines may use the wrong delimiter.
    """
    decoded = _decoded(lines, label, encoding, errors)
    if quoted:
        yield from _quoted_records(decoded, label, delimiter, strict)
    else:
        for number, line in enumerate(decoded, start=1):
            yield Record(number, line.removesuffix("\n").removesuffix("\r").split(delimiter))


def _decoded(lines: Iterable[bytes], label: str, encoding: str, errors: str) -> Iterator[str]:
    for number, line in enumerate(lines, start=1):
        content = line.removeprefix(BYTE_ORDER_MARK) if number == 1 else line
        try:
            yield content.decode(encoding, errors)
        except UnicodeDecodeError as mistake:
            raise BadFile(
                f"Line {number} of {label} is not UTF-8 text (byte {mistake.start + 1} of it cannot be); save the "
                "file as UTF-8."
            ) from None


def _quoted_records(lines: Iterable[str], label: str, delimiter: str, strict: bool) -> Iterator[Record]:
    reader = csv.reader(lines, delimiter=delimiter, strict=strict)
    while True:
        start = reader.line_num + 1
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as mistake:
            if not strict:
                return
            raise BadFile(
                f"The record that starts on line {start} of {label} breaks the rules of quoting ({mistake}); a field "
                "with a quote in it is wrapped in quotes, and each quote inside is doubled."
            ) from None
        yield Record(start, fields or [""])
