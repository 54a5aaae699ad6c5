"""Tables of text, read completely: CSV, TSV, `::`, check-ins, RecBole's atomic files.

Polars cuts the text and turns each column into numbers piece by piece, so that memory follows the columns and no
row ever becomes a Python object:

1. every column is text; rows without any content are blank lines and are left out;
2. ids become integers; a column in which one is not so written is read again, as text;
3. ratings and times become numbers; where one does not, `faults` finds its line.
"""

from __future__ import annotations

import csv
import io
import mmap
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from types import MappingProxyType
from typing import NamedTuple

import polars as pl

from federank.data.archives import Text
from federank.data.columns import (
    ColumnChoices,
    Columns,
    Fault,
    Roles,
    assign_roles,
    checked_columns,
    ids_of_text,
    ints,
    recognises,
)
from federank.errors import BadFile, SettingError

# A table of text one record at a time: slow and exact, for headers, item files and the line at fault.


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


# How a table of text is laid out: its delimiter, whether quotes wrap fields, and its header.


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
    every = list(records(head, text.label, delimiter, quoted=quoted, errors="replace", strict=False))
    return [record for record in every if any(record.fields)]


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


# Where a table of text breaks: the line and the column, for a sentence that helps.


def bad_value(text: Text, layout: Layout, read: Collection[int], position: int, fault: Fault) -> BadFile:
    """The sentence for a value that cannot stand; `read` are the columns by which a row counts as blank."""
    record = next(islice(_rows_faults(text, layout, read), fault.row, None))
    if len(record.fields) != layout.width:
        return _uneven(text, layout, record)
    value = record.fields[position]
    shown = repr(value if len(value) <= 60 else f"{value[:60]}...") if value else "nothing"
    return BadFile(
        f"Line {record.line} of {text.label} has {shown} in column {layout.column(position)}, where {fault.need}."
    )


def rewritten(text: Text, layout: Layout, read: Collection[int]) -> tuple[Text, Layout]:
    """The same table with every field in quotes, for a reader stricter than this one; a row at fault raises."""
    content = io.StringIO(newline="")
    writer = csv.writer(content, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerows(record.fields for record in even_rows(text, layout, read))
    plain = Text(text.label, content.getvalue().encode())
    return plain, layout._replace(delimiter=",", quoted=True, skipped=0)


def even_rows(text: Text, layout: Layout, read: Collection[int], encoding: str = "utf-8") -> Iterator[Record]:
    """The rows, blank ones aside; raises at the first one that is not such text, breaks its quotes, or is uneven."""
    for record in _rows_faults(text, layout, read, encoding):
        if len(record.fields) != layout.width:
            raise _uneven(text, layout, record)
        yield record


def _rows_faults(text: Text, layout: Layout, read: Collection[int], encoding: str = "utf-8") -> Iterator[Record]:
    every = records(text.lines(), text.label, layout.delimiter, quoted=layout.quoted, encoding=encoding)
    for record in islice(every, layout.skipped, None):
        width = len(record.fields)
        if any(position < width and record.fields[position] for position in read):
            yield record


def _uneven(text: Text, layout: Layout, record: Record) -> BadFile:
    return BadFile(
        f"Line {record.line} of {text.label} has {len(record.fields)} columns when cut at {layout.delimiter!r}, and "
        f"the {'header' if layout.names else 'first line'} has {layout.width}; every line needs the same number."
    )


_STAND_INS = "\x1f\x1e\x1d\x1c\x01\x02\x03\x04\x05\x06"
"""Single bytes to put in place of a delimiter of several, ASCII's own separators first: one that does not occur."""


def read_delimited(
    text: Text,
    choices: ColumnChoices = MappingProxyType({}),
    *,
    header: bool | None = None,
    delimiter: str | None = None,
) -> Columns:
    """The columns of a table of text, laid out as it shows itself or as the caller says."""
    named = any(isinstance(choice, str) for choice in choices.values())
    layout = find_layout(text, header=header, delimiter=delimiter, named=named)
    roles = assign_roles(layout.names, layout.width, choices, text.label)
    return read_columns(text, layout, roles)


# Adjacency lists: each line is a user followed by that user's items, all integers, cut at spaces.


def looks_like_lists(text: Text) -> bool:
    """Whether the first lines are adjacency lists: mostly integers, cut at spaces, of different lengths.

    In a table nearly all lines have the same length. Lists of one length look like a table.
    """
    head = [line for line in _head(text) if line.strip()]
    if not head or any(set(line) & set(b'\t,;|:"') for line in head):
        return False
    rows = [line.split() for line in head]
    fields = [field for row in rows for field in row]
    integers = sum(field.isdigit() for field in fields)
    most_common = Counter(map(len, rows)).most_common(1)[0][1]
    return 3 * most_common <= 2 * len(rows) and 2 * integers > len(fields)


def read_lists(text: Text) -> Columns:
    """The pairs of adjacency lists; a user without items has no row."""
    words = pl.Series("field", [line.decode("utf-8", "replace") for line in text.lines()], dtype=pl.String)
    frame = pl.DataFrame({"line": pl.arange(1, len(words) + 1, eager=True), "field": words.str.extract_all(r"\S+")})
    frame = (
        frame.filter(pl.col("field").list.len() > 0).with_columns(user=pl.col("field").list.first()).explode("field")
    )
    faults = frame.filter(ints("field").is_null())
    if len(faults):
        line, field = faults["line"][0], faults["field"][0]
        shown = repr(field if len(field) <= 60 else f"{field[:60]}...")
        raise BadFile(
            f"Line {line} of {text.label} has {shown}; adjacency lists need an integer user, then integer items, on "
            "every line, separated by spaces."
        )
    pairs = frame.filter(pl.int_range(pl.len()).over("line") > 0).select(pl.col("user", "field").cast(pl.Int64))
    if not len(pairs):
        raise BadFile(f"{text.label} has users but no items; each line needs a user, then that user's items.")
    return Columns(pairs["user"], pairs["field"])


def read_columns(text: Text, layout: Layout, roles: Roles) -> Columns:
    """The columns with these roles, each checked from its first row to its last."""
    # The columns by which a row counts as blank: all that are read, and the last.
    read = {*roles.values(), layout.width - 1}
    blank = pl.all_horizontal(pl.col(_name(position)).fill_null("") == "" for position in sorted(read))
    wanted = [_name(position) for position in sorted(read)]

    def collect(text: Text, layout: Layout) -> pl.DataFrame:
        return _scanned(text, layout).filter(~blank).select(wanted).collect(engine="streaming")

    try:
        frame = collect(text, layout)
    except pl.exceptions.PolarsError:
        # Either a row is at fault, or all are well but for a stray quote that Polars cannot follow.
        frame = collect(*rewritten(text, layout, read))
    if not frame.height:
        raise BadFile(f"{text.label} has a header but no rows; one line per interaction is needed.")
    # A row that ends early looks like one whose last field is empty: only the slow way distinguishes them.
    if layout.width - 1 not in roles.values() and frame[wanted[-1]].null_count():
        for _ in even_rows(text, layout, read):
            pass

    def refuse(role: str, fault: Fault) -> None:
        raise bad_value(text, layout, read, roles[role], fault)

    series = {role: frame[_name(position)] for role, position in roles.items()}
    return checked_columns(series | {role: ids_of_text(series[role]) for role in ("users", "items")}, refuse)


def _scanned(text: Text, layout: Layout) -> pl.LazyFrame:
    source, delimiter = text.source, layout.delimiter
    if len(delimiter.encode()) > 1:
        content = text.view()[:]
        delimiter = next((byte for byte in _STAND_INS if byte.encode() not in content), _STAND_INS[0])
        source = content.replace(layout.delimiter.encode(), delimiter.encode())
    return pl.scan_csv(
        source,
        has_header=False,
        skip_rows=layout.skipped,
        schema={_name(position): pl.String() for position in range(layout.width)},
        separator=delimiter,
        quote_char='"' if layout.quoted else None,
        missing_columns="insert",  # or a blank line right after the header would be taken for the table's width
        glob=False,
    )


def _name(position: int) -> str:
    return f"column {position}"
