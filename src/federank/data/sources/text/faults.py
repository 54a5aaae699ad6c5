"""Where a table of text breaks: the line and the column, for a sentence that helps.

The fast reader knows only that something is wrong, or in which row. Here the text is gone through once more, one
record at a time, until the line is found. That is slow, and it happens only when reading has failed.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterator
from itertools import islice

from federank.data.sources.text.contents import Text
from federank.data.sources.text.layout import Layout
from federank.data.sources.text.records import Record, records
from federank.data.sources.values import Fault
from federank.errors import BadFile


def bad_value(text: Text, layout: Layout, read: Collection[int], position: int, fault: Fault) -> BadFile:
    """The sentence for a value that cannot stand; `read` are the columns by which a row counts as blank."""
    record = next(islice(_rows(text, layout, read), fault.row, None))
    if len(record.fields) != layout.width:
        return _uneven(text, layout, record)
    value = record.fields[position]
    shown = repr(value if len(value) <= 60 else f"{value[:60]}...") if value else "nothing"
    return BadFile(
        f"Line {record.line} of {text.label} has {shown} in column {layout.column(position)}, where {fault.need}."
    )


def check_rows(text: Text, layout: Layout, read: Collection[int]) -> None:
    """Raise at the first row that is not UTF-8, breaks its quotes, or has too many or too few columns."""
    for _ in _even_rows(text, layout, read):
        pass


def rewritten(text: Text, layout: Layout, read: Collection[int]) -> tuple[Text, Layout]:
    """The same table with every field in quotes, for a reader stricter than this one; a row at fault raises."""
    content = io.StringIO(newline="")
    writer = csv.writer(content, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerows(record.fields for record in _even_rows(text, layout, read))
    plain = Text(text.label, content.getvalue().encode())
    return plain, layout._replace(delimiter=",", quoted=True, skipped=0)


def _even_rows(text: Text, layout: Layout, read: Collection[int]) -> Iterator[Record]:
    for record in _rows(text, layout, read):
        if len(record.fields) != layout.width:
            raise _uneven(text, layout, record)
        yield record


def _rows(text: Text, layout: Layout, read: Collection[int]) -> Iterator[Record]:
    every = records(text.lines(), text.label, layout.delimiter, quoted=layout.quoted)
    for record in islice(every, layout.skipped, None):
        width = len(record.fields)
        if any(position < width and record.fields[position] for position in read):
            yield record


def _uneven(text: Text, layout: Layout, record: Record) -> BadFile:
    return BadFile(
        f"Line {record.line} of {text.label} has {len(record.fields)} columns when cut at {layout.delimiter!r}, and "
        f"the {'header' if layout.names else 'first line'} has {layout.width}; every line needs the same number."
    )
