"""The report as Markdown: one file, with its figures as SVG files in a folder of the same name beside it.

Where the file has no ending, the folder cannot have its name and has "-figures" added to it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from federank.studies.report.tables import Cell, Column, Table, slug

if TYPE_CHECKING:
    from federank.studies.figures.draw import Picture
    from federank.studies.report.report import Report

_WITH_MEANING = "\\`*_[]<>|"


def markdown_files(report: Report, path: Path) -> dict[Path, str]:
    """The text of the report and of its figures, by their positions."""
    parts = [f"# {escaped(report.title)}"]
    parts += [escaped(report.finding)] if report.finding else []
    parts += [f"**{escaped(warning)}**" for warning in report.warnings]
    if report.description:
        parts.append(escaped(report.description))
    parts += [_table(table) for table in report.results]
    files: dict[Path, str] = {}
    for number, picture in enumerate(report.pictures, start=1):
        text, figures = _picture(picture, number, path)
        parts.append(text)
        files |= figures
    parts += [_table(table) for table in report.about]
    # The figures first: a text that is there has its figures.
    return files | {path: "\n\n".join(parts) + "\n"}


def escaped(text: str) -> str:
    """A text without power over Markdown or a table's bars."""
    return "".join(f"\\{letter}" if letter in _WITH_MEANING else letter for letter in " ".join(text.split()))


def _table(table: Table) -> str:
    head = " | ".join(escaped(_head(column)) for column in table.columns)
    rule = "|".join("---:" if column.number else "---" for column in table.columns)
    lines = [f"| {' | '.join(map(_cell, row))} |" for row in table.rows]
    body = "\n".join([f"| {head} |", f"|{rule}|", *lines])
    return f"## {escaped(table.title)}\n\n{body}\n\n{escaped(table.caption)}".rstrip()


def _head(column: Column) -> str:
    return column.name if not column.bundle else f"{column.bundle} {column.name}"


def _cell(cell: Cell) -> str:
    text = escaped(cell.text)
    text = f"**{text}**" if cell.best or cell.notable else text
    return text + (f" {escaped(cell.mark)}" if cell.mark else "")


def _picture(picture: Picture, number: int, path: Path) -> tuple[str, dict[Path, str]]:
    folder = path.with_suffix("") if path.suffix else path.with_name(f"{path.name}-figures")
    lines, files = [], {}
    for panel in picture.panels:
        position = folder / f"{number:02}-{picture.kind}-{slug(panel.name)}.svg"
        files[position] = panel.svg
        lines.append(f"![{escaped(f'{picture.title}, {panel.name}: {panel.seen}')}]({folder.name}/{position.name})")
        if panel.seen:
            lines.append(f"{escaped(panel.name)}: {escaped(panel.seen)}")
    return "\n\n".join([f"## {escaped(picture.title)}", escaped(picture.caption), *lines]), files
