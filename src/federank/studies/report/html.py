"""The report as one HTML page that needs nothing else: styles and figures are inside, and nothing is ever fetched.

It reads on a telephone (wide tables scroll by themselves), on a light screen and on a dark one (figures take their
colours from the page), on paper, and with a screen reader (captions, heads of columns, a sentence for each figure).
"""

from __future__ import annotations

from html import escape
from importlib.resources import files
from itertools import groupby
from typing import TYPE_CHECKING

from federank.studies.figures.style import THEME, themed
from federank.studies.report.tables import Cell, Column, Table

if TYPE_CHECKING:
    from federank.studies.figures.draw import Picture
    from federank.studies.report.report import Report


def html_page(report: Report) -> str:
    """The whole page."""
    sections = [_table(table) for table in report.results]
    if report.pictures:
        pictures = "".join(_picture(picture, number) for number, picture in enumerate(report.pictures, start=1))
        sections.append(f'<div class="pictures">\n{pictures}</div>\n')
    sections += [_table(table) for table in report.about]
    warnings = "".join(f'<p class="warning">{escape(warning)}</p>' for warning in report.warnings)
    description = "".join(f"<p>{escape(part)}</p>" for part in report.description.split("\n\n") if part.strip())
    style = files("federank.studies").joinpath("report.css").read_text(encoding="utf-8")
    return f"""<!doctype html>
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


def _colours() -> str:
    """The figures' colours and the page's own, for light pages and for dark ones."""
    light = " ".join(f"--{name}: {pair[0]};" for name, pair in THEME.items())
    dark = " ".join(f"--{name}: {pair[1]};" for name, pair in THEME.items())
    return f":root {{ {light} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}"


def _contents(report: Report) -> str:
    """Where to find what; on a page of a few parts nobody needs it."""
    titles = [table.title for table in report.results]
    titles += [picture.title for picture in report.pictures]
    titles += [table.title for table in report.about]
    if len(titles) < 4:
        return ""
    anchors = [_anchor(table) for table in report.results]
    anchors += [f"figure-{number}" for number in range(1, len(report.pictures) + 1)]
    anchors += [_anchor(table) for table in report.about]
    links = "".join(
        f'<li><a href="#{anchor}">{escape(title)}</a></li>' for anchor, title in zip(anchors, titles, strict=True)
    )
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
    names = "".join(f'<th scope="col"{_side(column)}>{escape(column.name)}</th>' for column in columns)
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


def _side(column: Column) -> str:
    return ' class="number"' if column.number else ""


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
