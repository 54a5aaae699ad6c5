"""Tables of text, read whole: CSV, TSV, `::`, check-ins, RecBole's atomic files.

Polars cuts the text and turns each column into numbers piece by piece, so that memory follows the columns and no
row ever becomes a Python object:

1. every column is text; rows without any content are blank lines and are left out;
2. ids become whole numbers; a column in which one is not so written is read again, as text;
3. ratings and times become numbers; where one does not, `faults` finds its line.
"""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from federank.data.sources import values
from federank.data.sources.columns import Columns, categories_by_item
from federank.data.sources.options import ColumnChoices
from federank.data.sources.roles import Roles, assign_roles
from federank.data.sources.text import faults
from federank.data.sources.text.contents import Text
from federank.data.sources.text.layout import Layout, find_layout
from federank.data.sources.values import Fault
from federank.errors import BadFile

_STAND_INS = "\x1f\x1e\x1d\x1c\x01\x02\x03\x04\x05\x06"
"""Single bytes to put in place of a delimiter of several, ASCII's own separators first: one that does not occur."""


def read_delimited(
    text: Text,
    choices: ColumnChoices | None = None,
    *,
    header: bool | None = None,
    delimiter: str | None = None,
) -> Columns:
    """The columns of a table of text, laid out as it shows itself or as the caller says."""
    choices = choices or ColumnChoices()
    layout = find_layout(text, header=header, delimiter=delimiter, named=choices.named())
    roles = assign_roles(layout.names, layout.width, choices, text.label)
    return read_columns(text, layout, roles)


def read_columns(text: Text, layout: Layout, roles: Roles) -> Columns:
    """The columns with these roles, each checked from its first row to its last."""
    table = _Table(text, layout, roles)
    wanted = [_id_expression(layout, roles.users), _id_expression(layout, roles.items)]
    if roles.ratings is not None:
        wanted.append(values.numbers(_name(roles.ratings)))
    if roles.times is not None:
        form = values.date_format(_examples(layout, roles.times))
        wanted.append(values.seconds(_name(roles.times), form))
    if roles.categories is not None:
        wanted.append(pl.col(_name(roles.categories)))
    last = _name(layout.width - 1)
    frame = _collected(table, [*wanted, pl.col(last).is_null().alias("short")])
    if not frame.height:
        raise BadFile(f"{text.label} has a header but no rows; one line per interaction is needed.")
    # A row that ends early looks like one whose last field is empty: only the slow way tells them apart.
    if (layout.width - 1) not in roles and frame["short"].any():
        faults.check_rows(text, layout, table.read)
    return _checked(table, frame)


class _Table(NamedTuple):
    text: Text
    layout: Layout
    roles: Roles

    @property
    def read(self) -> set[int]:
        """The columns by which a row counts as blank: all that are read, and the last."""
        return {position for position in self.roles if position is not None} | {self.layout.width - 1}


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


def _collected(table: _Table, wanted: list[pl.Expr]) -> pl.DataFrame:
    blank = pl.all_horizontal(pl.col(_name(position)).fill_null("") == "" for position in sorted(table.read))

    def collect(text: Text, layout: Layout) -> pl.DataFrame:
        return _scanned(text, layout).filter(~blank).select(wanted).collect(engine="streaming")

    try:
        return collect(table.text, table.layout)
    except pl.exceptions.PolarsError:
        # Either a row is at fault, or all are well but for a stray quote that Polars cannot follow.
        return collect(*faults.rewritten(table.text, table.layout, table.read))


def _checked(table: _Table, frame: pl.DataFrame) -> Columns:
    roles = table.roles
    users = _ids(table, frame, roles.users, "a user")
    items = _ids(table, frame, roles.items, "an item")
    ratings = times = categories = None
    if roles.ratings is not None:
        ratings = frame[_name(roles.ratings)]
        _refuse(table, roles.ratings, values.rating_fault(ratings))
    if roles.times is not None:
        times = frame[_name(roles.times)]
        _refuse(table, roles.times, values.time_fault(times))
    if roles.categories is not None:
        categories = categories_by_item(items, frame[_name(roles.categories)])
    return Columns(users, items, ratings, times, categories=categories)


def _ids(table: _Table, frame: pl.DataFrame, position: int, kind: str) -> pl.Series:
    column = frame[_name(position)]
    if column.dtype.is_integer() and column.null_count():
        column = _collected(table, [values.words(_name(position))]).to_series()
    _refuse(table, position, values.id_fault(column, kind))
    return column


def _refuse(table: _Table, position: int, fault: Fault | None) -> None:
    if fault:
        raise faults.bad_value(table.text, table.layout, table.read, position, fault)


def _id_expression(layout: Layout, position: int) -> pl.Expr:
    whole = all(values.is_whole(example) for example in _examples(layout, position))
    return values.whole_numbers(_name(position)) if whole else values.words(_name(position))


def _examples(layout: Layout, position: int) -> list[str]:
    return [row[position] for row in layout.sample if len(row) > position and row[position]]


def _name(position: int) -> str:
    return f"column {position}"
