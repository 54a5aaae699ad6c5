"""The tables of a report as LaTeX, a file each, to be taken in by `\\input`; they need the package booktabs."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from federank.studies.report.tables import Cell, Column, Table

if TYPE_CHECKING:
    from federank.studies.report.report import Report

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


def escaped(text: str) -> str:
    """A text without power over LaTeX."""
    return "".join(_ESCAPES.get(letter, letter) for letter in text)


def latex_table(table: Table) -> str:
    """A table with its caption; metrics stand over their columns."""
    kinds = "".join("r" if column.number else "l" for column in table.columns)
    lines = [
        r"\begin{table}",
        rf"\caption{{{escaped(f'{table.title}. {table.caption}'.rstrip())}}}",
        rf"\label{{tab:{table.slug}}}",
        rf"\begin{{tabular}}{{{kinds}}}",
        r"\toprule",
        *_heads(table.columns),
        r"\midrule",
        *(" & ".join(map(_cell, row)) + r" \\" for row in table.rows),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _heads(columns: tuple[Column, ...]) -> list[str]:
    names = " & ".join(escaped(column.name) for column in columns) + r" \\"
    if not any(column.bundle for column in columns):
        return [names]
    bundles, rules, start = [], [], 1
    for bundle, members in groupby(columns, key=lambda column: column.bundle):
        width = len(list(members))
        bundles.append(rf"\multicolumn{{{width}}}{{c}}{{{escaped(bundle)}}}" if bundle else " & " * (width - 1))
        if bundle:
            rules.append(rf"\cmidrule(lr){{{start}-{start + width - 1}}}")
        start += width
    return [" & ".join(bundles) + r" \\", " ".join(rules), names]


def _cell(cell: Cell) -> str:
    text = escaped(cell.text)
    text = rf"\textbf{{{text}}}" if cell.best else rf"\emph{{{text}}}" if cell.notable else text
    return text + (f"$^{{{cell.mark}}}$" if cell.mark else "")
