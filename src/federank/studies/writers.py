"""The report as one HTML page that needs nothing else: styles and figures are inside, and nothing is ever fetched.

It reads on a telephone (wide tables scroll by themselves), on a light screen and on a dark one (figures take their
colours from the page), on paper, and with a screen reader (captions, heads of columns, a sentence for each figure).
"""

from __future__ import annotations

import csv
import io
from html import escape
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from federank.studies.figures.style import THEME, themed
from federank.studies.tables import Cell, Column, Table, slug

if TYPE_CHECKING:
    from federank.studies.figures.draw import Picture
    from federank.studies.report import Report


def html_files(report: Report, path: Path) -> dict[Path, str]:
    """The page, which is one file."""
    sections = [_table(table) for table in report.results]
    if report.pictures:
        pictures = "".join(_picture(picture, number) for number, picture in enumerate(report.pictures, start=1))
        sections.append(f'<div class="pictures">\n{pictures}</div>\n')
    sections += [_table(table) for table in report.about]
    warnings = "".join(f'<p class="warning">{escape(warning)}</p>' for warning in report.warnings)
    description = "".join(f"<p>{escape(part)}</p>" for part in report.description.split("\n\n") if part.strip())
    style = files("federank.studies").joinpath("report.css").read_text(encoding="utf-8")
    page = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<title>{escape(report.title)}</title>
<style>
{_colours()}
{style}</style>
</head>
<body>
<header>
<h1>{escape(report.title)}</h1>
{f'<p class="finding">{escape(report.finding)}</p>' if report.finding else ""}
{warnings}
{description}
</header>
{_contents(report)}
<main>
{"".join(sections)}</main>
<footer><p>Made by FedeRank. Everything on this page is inside this one file.</p></footer>
</body>
</html>
"""
    return {path: page}


def _colours() -> str:
    """The figures' colours and the page's own, for light pages and for dark ones."""
    light = " ".join(f"--{name}: {pair[0]};" for name, pair in THEME.items())
    dark = " ".join(f"--{name}: {pair[1]};" for name, pair in THEME.items())
    return f":root {{ {light} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}"


def _contents(report: Report) -> str:
    """Where to find what; left out on a page of few parts."""
    parts = [(_anchor(table), table.title) for table in report.results]
    parts += [(f"figure-{number}", picture.title) for number, picture in enumerate(report.pictures, start=1)]
    parts += [(_anchor(table), table.title) for table in report.about]
    if len(parts) < 4:
        return ""
    links = "".join(f'<li><a href="#{anchor}">{escape(title)}</a></li>' for anchor, title in parts)
    return f'<nav aria-label="Contents"><ul>{links}</ul></nav>'


def _anchor(table: Table) -> str:
    return f"table-{table.slug}"


def _table(table: Table) -> str:
    body = "".join(f"<tr>{_row(row, table.columns)}</tr>\n" for row in table.rows)
    name = escape(table.title)
    caption = f'<p class="caption">{escape(table.caption)}</p>\n' if table.caption else ""
    return f"""<section id="{_anchor(table)}">
<h2>{name}</h2>
<div class="scroll" tabindex="0" role="region" aria-label="{name}">
<table>
<thead>
{_heads(table.columns)}</thead>
<tbody>
{body}</tbody>
</table>
</div>
{caption}</section>
"""


def _heads(columns: tuple[Column, ...]) -> str:
    sides = (' class="number"' if column.number else "" for column in columns)
    names = "".join(f'<th scope="col"{side}>{escape(one.name)}</th>' for side, one in zip(sides, columns, strict=True))
    if not any(column.bundle for column in columns):
        return f"<tr>{names}</tr>\n"
    bundles = ""
    for bundle, members in groupby(columns, key=lambda column: column.bundle):
        width = len(list(members))
        bundles += (
            f'<th scope="colgroup" colspan="{width}" class="bundle">{escape(bundle)}</th>'
            if bundle
            else "<td></td>" * width
        )
    return f"<tr>{bundles}</tr>\n<tr>{names}</tr>\n"


def _row(row: tuple[Cell, ...], columns: tuple[Column, ...]) -> str:
    pairs = enumerate(zip(row, columns, strict=True))
    return "".join(_cell(cell, column, first=position == 0) for position, (cell, column) in pairs)


def _cell(cell: Cell, column: Column, *, first: bool) -> str:
    text = escape(cell.text)
    text = f"<strong>{text}</strong>" if cell.best else text
    text += f'<sup title="significantly different">{cell.mark}</sup>' if cell.mark else ""
    if first:
        return f'<th scope="row">{text}</th>'
    kinds = " ".join(["number"] * column.number + ["notable"] * cell.notable)
    return f'<td class="{kinds}">{text}</td>' if kinds else f"<td>{text}</td>"


def _picture(picture: Picture, number: int) -> str:
    panels = ""
    for position, panel in enumerate(picture.panels):
        label = escape(f"{picture.title}, {panel.name}. {panel.seen}")
        drawing = themed(panel.svg, f"f{number}p{position}")
        panels += f'<figure><div class="drawing" role="img" aria-label="{label}">{drawing}</div>'
        panels += f"<figcaption>{escape(panel.seen)}</figcaption></figure>\n"
    wide = ' class="wide"' if len(picture.panels) > 1 else ""
    return f"""<section id="figure-{number}"{wide}>
<h2>{escape(picture.title)}</h2>
<p class="caption">{escape(picture.caption)}</p>
<div class="panels">
{panels}</div>
</section>
"""


# The tables of a report as LaTeX, a file each, to be taken in by `\input`; they need the package booktabs.


_ESCAPES = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "π": r"$\pi$",
    "ρ": r"$\rho$",
    **{letter: f"\\{letter}" for letter in "&%$#_{}"},
}


def latex_files(report: Report, folder: Path) -> dict[Path, str]:
    """A file for each table; one for all where the name is a file's."""
    if folder.suffix == ".tex":
        return {folder: "\n".join(map(latex_table, report.tables))}
    return {folder / f"{table.slug}.tex": latex_table(table) for table in report.tables}


def latex_escaped(text: str) -> str:
    """A text without power over LaTeX."""
    return "".join(_ESCAPES.get(letter, letter) for letter in text)


def latex_table(table: Table) -> str:
    """A table with its caption; metrics stand over their columns."""
    kinds = "".join("r" if column.number else "l" for column in table.columns)
    lines = [
        r"\begin{table}",
        rf"\caption{{{latex_escaped(f'{table.title}. {table.caption}'.rstrip())}}}",
        rf"\label{{tab:{table.slug}}}",
        rf"\begin{{tabular}}{{{kinds}}}",
        r"\toprule",
        *_heads_latex(table.columns),
        r"\midrule",
        *(" & ".join(map(_cell_latex, row)) + r" \\" for row in table.rows),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _heads_latex(columns: tuple[Column, ...]) -> list[str]:
    names = " & ".join(latex_escaped(column.name) for column in columns) + r" \\"
    if not any(column.bundle for column in columns):
        return [names]
    bundles, rules, start = [], [], 1
    for bundle, members in groupby(columns, key=lambda column: column.bundle):
        width = len(list(members))
        bundles.append(rf"\multicolumn{{{width}}}{{c}}{{{latex_escaped(bundle)}}}" if bundle else " & " * (width - 1))
        if bundle:
            rules.append(rf"\cmidrule(lr){{{start}-{start + width - 1}}}")
        start += width
    return [" & ".join(bundles) + r" \\", " ".join(rules), names]


def _cell_latex(cell: Cell) -> str:
    text = latex_escaped(cell.text)
    text = rf"\textbf{{{text}}}" if cell.best else rf"\emph{{{text}}}" if cell.notable else text
    return text + (f"$^{{{cell.mark}}}$" if cell.mark else "")


# The report as Markdown: one file, with its figures as SVG files in a folder of the same name beside it.


_WITH_MEANING = "\\`*_[]<>|"


def markdown_files(report: Report, path: Path) -> dict[Path, str]:
    """The text of the report and of its figures, by their positions."""
    parts = [f"# {escaped(report.title)}"]
    parts += [escaped(report.finding)] if report.finding else []
    parts += [f"**{escaped(warning)}**" for warning in report.warnings]
    if report.description:
        parts.append(escaped(report.description))
    parts += [_table_markdown(table) for table in report.results]
    files: dict[Path, str] = {}
    for number, picture in enumerate(report.pictures, start=1):
        text, figures = _picture_markdown(picture, number, path)
        parts.append(text)
        files |= figures
    parts += [_table_markdown(table) for table in report.about]
    # The figures first: a text that is there has its figures.
    return files | {path: "\n\n".join(parts) + "\n"}


def escaped(text: str) -> str:
    """A text without power over Markdown or a table's bars."""
    return "".join(f"\\{letter}" if letter in _WITH_MEANING else letter for letter in " ".join(text.split()))


def _table_markdown(table: Table) -> str:
    head = " | ".join(escaped(f"{column.bundle} {column.name}".strip()) for column in table.columns)
    rule = "|".join("---:" if column.number else "---" for column in table.columns)
    lines = [f"| {' | '.join(map(_cell_markdown, row))} |" for row in table.rows]
    body = "\n".join([f"| {head} |", f"|{rule}|", *lines])
    return f"## {escaped(table.title)}\n\n{body}\n\n{escaped(table.caption)}".rstrip()


def _cell_markdown(cell: Cell) -> str:
    text = escaped(cell.text)
    text = f"**{text}**" if cell.best or cell.notable else text
    return text + (f" {escaped(cell.mark)}" if cell.mark else "")


def _picture_markdown(picture: Picture, number: int, path: Path) -> tuple[str, dict[Path, str]]:
    folder = path.with_suffix("") if path.suffix else path.with_name(f"{path.name}-figures")
    lines, files = [], {}
    for panel in picture.panels:
        position = folder / f"{number:02}-{picture.kind}-{slug(panel.name)}.svg"
        files[position] = panel.svg
        lines.append(f"![{escaped(f'{picture.title}, {panel.name}: {panel.seen}')}]({folder.name}/{position.name})")
        if panel.seen:
            lines.append(f"{escaped(panel.name)}: {escaped(panel.seen)}")
    return "\n\n".join([f"## {escaped(picture.title)}", escaped(picture.caption), *lines]), files


# The tables of a report as CSV, a file each, for other programs: numbers in full, deviations and marks in columns.


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
