"""The tables of a report as CSV, a file each, for other programs: numbers in full, deviations and marks in columns."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING

from federank.studies.report.tables import Table

if TYPE_CHECKING:
    from federank.studies.report.report import Report


def csv_files(report: Report, folder: Path) -> dict[Path, str]:
    """A file for each table; one for all, each under its title, where the name is a file's."""
    if folder.suffix == ".csv":
        return {folder: "\n".join(f"# {table.title}\n{csv_table(table)}" for table in report.tables)}
    return {folder / f"{table.slug}.csv": csv_table(table) for table in report.tables}


def csv_table(table: Table) -> str:
    """A table with a line of heads; a column that has deviations or marks is followed by a column of them."""
    spreads = [any(row[position].spread is not None for row in table.rows) for position in range(len(table.columns))]
    marks = [any(row[position].mark for row in table.rows) for position in range(len(table.columns))]
    heads: list[str] = []
    lines: list[list[str]] = [[] for _ in table.rows]
    for position, column in enumerate(table.columns):
        name = f"{column.bundle} {column.name}".strip()
        heads += [name, *([f"{name} deviation"] * spreads[position]), *([f"{name} mark"] * marks[position])]
        for line, row in zip(lines, table.rows, strict=True):
            cell = row[position]
            line.append(cell.text if cell.value is None else repr(cell.value))
            line += ["" if cell.spread is None else repr(cell.spread)] * spreads[position]
            line += [cell.mark] * marks[position]
    content = io.StringIO()
    csv.writer(content, lineterminator="\n").writerows([heads, *lines])
    return content.getvalue()
