"""Tables of the README that are made from the reports: the scorecard, the configurations, epsilon; `make scorecard`.

Every number that a packaged study quotes from a paper (`[[paper]]`) gets one verdict, that of the first of its rows
that a report in docs/results has: same digits, within 10 %, explained (the report's list of differences names the run
or test), unexplained, or no data. Formulas are counted from the table in docs/results/README.md, where each names its
test.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from federank.studies.metric_words import words_of

ROOT = Path(__file__).parents[2]
RESULTS, STUDIES = ROOT / "docs" / "results", ROOT / "src" / "federank" / "studies" / "packaged"
VERDICTS = ("same digits", "within 10 %", "explained", "unexplained", "no data", "tested")
PAPERS = ("FPL (2020)", "FPL, short (2021)", "FPL, privacy (2022)", "FedeRank (2021)", "FedRec (2020)")
BY_TEST = {"FPL (2020), Table 3"}
"""Tables that follow from formulas and the data's counts alone: a test has all of their digits, without the data."""
NOTABLE = 10.0
SHOWN_IN = {
    "README.md": ("scorecard", "configurations", "epsilon"),
    "docs/frugal.md": ("support",),
    "docs/results/README.md": ("scorecard",),
}
"""The pages, and the tables that each of them shows."""


class Number(NamedTuple):
    """One number of a paper, and what became of it."""

    paper: str
    source: str
    data: str
    group: str
    metric: str
    verdict: str


# Reading reports.


def cells(line: str) -> list[str]:
    """The cells of a line of a Markdown table, without marks of emphasis."""
    parts = re.split(r"(?<!\\)\|", line.strip().strip("|"))
    return [re.sub(r"\\(.)", r"\1", part.replace("**", "")).strip() for part in parts]


def number(text: str) -> float | None:
    """The first number of a cell: the mean, where a deviation follows."""
    match = re.match(r"[-+]?[\d,]*\.?\d+", text)
    return float(match[0].replace(",", "")) if match else None


@cache
def tables(report: str) -> dict[str, list[dict[str, str]]]:
    """A report's tables by their titles: a dictionary per row."""
    found: dict[str, list[dict[str, str]]] = {}
    title, head = "", []
    for line in (RESULTS / report).read_text().splitlines():
        if line.startswith("#"):
            title, head = line.lstrip("# "), []
        elif not line.startswith("|"):
            head = []
        elif not head:
            head = cells(line)
        elif not set(line) <= set("|-: "):
            found.setdefault(title, []).append(dict(zip(head, cells(line), strict=False)))
    return found


def reports() -> list[str]:
    """The reports, by name."""
    return sorted(path.name for path in RESULTS.glob("*.md") if path.name != "README.md")


def row_of(report: str, data: str, label: str, column: str) -> dict[str, str] | None:
    """The row with this label that has a paper's value in this column."""
    for title, rows in tables(report).items():
        if title.endswith(f": {data}"):
            for row in rows:
                named = row.get("Method", "")
                if (named == label or named.startswith(f"{label} = ")) and f"{column} paper" in row:
                    return row
    return None


def verdict_of(report: str, data: str, row: dict[str, str], column: str) -> str | None:
    """What a report says of one number; None where the row has none."""
    ours, paper = number(row[f"{column} ours"]), row[f"{column} paper"]
    theirs = number(paper)
    if ours is None or theirs is None:
        return None
    decimals = len(paper.partition(".")[2].rstrip(" %"))
    if round(ours, decimals) == theirs:
        return "same digits"
    if theirs and abs(ours - theirs) / abs(theirs) * 100 <= NOTABLE:
        return "within 10 %"
    for line in tables(report).get("Differences over 10 % from the paper", []):
        values = list(line.values())
        if values[:3] == [data, row["Method"], column]:
            return "unexplained" if values[-1].startswith("unexplained") else "explained"
    return "within 10 %" if theirs else "unexplained"  # a difference that rounding alone takes over the bound


# The papers' numbers.


def labels_of(entry: dict[str, Any]) -> list[str]:
    """The labels of the rows that a paper's numbers are held against, the paper's own protocol first."""
    groups = [entry["group"]] if isinstance(entry["group"], str) else entry["group"]
    settings = "".join(f", {name} = {value:g}" for name, value in entry.get("settings", {}).items())
    return [f"{group}{settings}" for group in groups]


def numbers() -> list[Number]:
    """Every number that the packaged studies quote from the five papers, once."""
    found = {}
    for path in sorted(STUDIES.glob("*.toml")):
        for entry in tomllib.loads(path.read_text()).get("paper", []):
            paper = next((name for name in PAPERS if str(entry.get("source", "")).startswith(name)), None)
            if paper is None or "formulas" in entry:
                continue
            for data in [entry["data"]] if isinstance(entry["data"], str) else entry["data"]:
                if "," in data:  # a stand-in, which explains and is not counted
                    continue
                for metric in entry["metrics"]:
                    key = (entry["source"], data, labels_of(entry)[0], metric)
                    found[key] = Number(paper, *key, _verdict(entry, data, metric))
    return list(found.values())


def _verdict(entry: dict[str, Any], data: str, metric: str) -> str:
    if entry["source"] in BY_TEST:
        return "tested"
    column = words_of(metric).short
    for label in labels_of(entry):
        # The same row may stand in two reports, and the run that explains it in one of them.
        rows = [(report, row) for report in reports() if (row := row_of(report, data, label, column))]
        verdicts = [verdict for report, row in rows if (verdict := verdict_of(report, data, row, column))]
        if verdicts:
            return next((verdict for verdict in verdicts if verdict != "unexplained"), "unexplained")
    return "no data"


# The rows of docs/results/README.md: tables, figures and formulas, each with its verdict in the last column.


def verdict_rows() -> list[tuple[str, str, str]]:
    """Paper, what, and verdict of every row of the table of everything."""
    text = (RESULTS / "README.md").read_text()
    part = text[text.index("## Every table, figure and formula") : text.index("## Reproducing a report")]
    found, paper = [], ""
    for line in part.splitlines():
        row = cells(line) if line.startswith("|") else []
        if len(row) == 6 and row[0] != "paper" and not set(line) <= set("|-: "):
            paper = row[0] or paper
            found.append((paper, row[1], row[-1]))
    return found


def scorecard() -> str:
    """The table of counts, as Markdown."""
    counted = {paper: Counter(each.verdict for each in numbers() if each.paper == paper) for paper in PAPERS}
    formulas = Counter(paper for paper, _, verdict in verdict_rows() if verdict.startswith("tested"))
    lines = [
        f"| paper | {' | '.join(VERDICTS)} |",
        f"|---|{'---:|' * len(VERDICTS)}",
    ]
    for paper, counts in counted.items():
        # The two short papers print numbers of FPL (2020) again: they have no counts of their own.
        values = [str(counts[verdict]) for verdict in VERDICTS[:-1]] if counts else ["as FPL (2020)", "", "", "", ""]
        lines.append(f"| {paper} | {' | '.join(values)} | {formulas[paper] + counts['tested']} |")
    return "\n".join(lines)


# Configurations that can be deployed, and what differential privacy costs: both from the reports.


def cell(report: str, table: str, label: str, column: str, **where: str) -> float:
    """The number in a report's table."""
    for row in tables(report)[table]:
        if row["Method"] == label and all(row[name] == value for name, value in where.items()):
            value = number(row[column])
            if value is not None:
                return value
    raise LookupError(f"{report} has no {column} of {label} in {table}.")


class Configuration(NamedTuple):
    """Cost, accuracy and who reads an upload, all of the same mode."""

    name: str
    precision: float
    megabytes: float
    reader: str
    gain_kept: float | None = None  # as its report says it; None: from the rounded precision


_PRICE, _LIFETIME = "The price of privacy: ml-1m", "Accuracy, and what it takes in a lifetime: ml-1m"


def popular_precision() -> float:
    """The precision of the most popular items; MovieLens 1M."""
    return cell("few-messages.md", _LIFETIME, "Top-Pop", "P@10")


def configuration_rows() -> list[Configuration]:
    """MovieLens 1M: what was chosen on validation in equally many trials, Frugal with its defaults, and with a helper."""

    def of(name: str, label: str, *ways: str, reader: str = "operator") -> Configuration:
        """A row of the study, with its megabytes these ways."""
        megabytes = sum(cell("few-messages.md", _LIFETIME, label, way) for way in ways)
        return Configuration(name, cell("few-messages.md", _LIFETIME, label, "P@10"), megabytes, reader)

    plain, frugal = ("MB up", "MB down"), "Frugal, messages = 5"
    rows = [
        of("FPL, tuned", "FPL", *plain),
        of("FPL, preset `few`, tuned", "FPL, few uploads", *plain),
        of("FCF, tuned (simulation only)", "FCF", *plain),
        of("Frugal, tuned, 5 uploads", "Frugal, tuned", *plain),
        of("Frugal, 5 uploads", frugal, *plain),
        of("Frugal with a helper", frugal, "MB, written out", reader="neither server"),
    ]
    for epsilon in (4, 2, 1):
        label = f"Frugal with a promise, epsilon = {epsilon}"
        noisy = [cell("privacy-price-gain.md", _PRICE, label, column) for column in ("P@10", "MB, written out")]
        gain = cell("privacy-price-gain.md", "The price of differential privacy", label, "Gain kept", Data="ml-1m")
        rows.append(Configuration(f"the same, epsilon {epsilon}", *noisy, "neither server", gain / 100))
    return rows


def configurations() -> str:
    """The configurations as a table, with the share of Frugal's gain over popularity that each keeps."""
    popular, rows = popular_precision(), configuration_rows()
    best = next(row.precision for row in rows if row.name == "Frugal, 5 uploads")
    lines = ["| configuration | P@10 | gain kept | MB | an upload is read by |", "|---|---:|---:|---:|---|"]
    lines.append(f"| most popular items | {popular:.3f} | 0 % | | |")
    for name, precision, megabytes, reader, gain in rows:
        kept = (precision - popular) / (best - popular) if gain is None else gain
        size = f"{megabytes:.0f}" if megabytes >= 10 else f"{megabytes:.1f}"
        lines.append(f"| {name} | {precision:.3f} | {kept:.0%} | {size} | {reader} |".replace("%", " %"))
    return "\n".join(lines)


def epsilon() -> str:
    """The share of Frugal's precision that is kept under differential privacy, beside what popularity keeps."""
    sets = {
        "MovieLens 1M": "ml-1m",
        "MovieLens 100K": "ml-100k",
        "Foursquare Italy": "foursquare-italy",
        "Amazon Digital Music": "amazon-digital-music",
    }
    lines = ["| precision kept | epsilon 4 | 2 | 1 | most popular items |", "|---|---:|---:|---:|---:|"]
    for name, data in sets.items():
        table = f"The price of privacy: {data}"
        full = cell("privacy-price.md", table, "Frugal", "P@10", **{"Server sees": "sums over all"})
        labels = [*(f"Frugal with a promise, epsilon = {epsilon}" for epsilon in (4, 2, 1)), "Top-Pop"]
        kept = [cell("privacy-price.md", table, label, "P@10") / full for label in labels]
        lines.append(f"| {name} | {' | '.join(f'{share:.0%}'.replace('%', ' %') for share in kept)} |")
    return "\n".join(lines)


def support() -> str:
    """Minimum support: accuracy, size, and an attacker with side knowledge, in the federation / left out of it."""
    sets = {
        "Foursquare Italy": "foursquare-italy",
        "Amazon Digital Music": "amazon-digital-music",
        "MovieLens 100K": "ml-100k",
        "MovieLens 1M": "ml-1m",
    }
    heads = (
        "",
        "k",
        "P@10",
        "nDCG@10",
        "items recommended",
        "MB, dense",
        "sums: shares",
        "sums: cosines",
        "published model",
    )
    lines = [f"| {' | '.join(heads)} |", "|---|" + "---:|" * (len(heads) - 1)]
    report = "minimum-support.md"
    for name, data in sets.items():
        for k in (1, 2, 5, 10):
            label = f"Frugal, min_support = {k}"
            size, attack = f"Accuracy and size: {data}", f"An attacker who knows ten items: {data}"
            precision, ndcg = (cell(report, size, label, column) for column in ("P@10", "nDCG@10"))
            items, dense = (cell(report, size, label, column) for column in ("IC@10", "MB, written out"))
            shares = [
                " / ".join(f"{cell(report, attack, label, f'{way}: {by}'):.2f}" for way in ("In", "Out"))
                for by in ("shares (sums)", "cosines (sums)", "model (outsider)")
            ]
            cells = (
                name if k == 1 else "",
                str(k),
                f"{precision:.4f}",
                f"{ndcg:.4f}",
                f"{items:,.0f}",
                f"{dense:.1f}",
                *shares,
            )
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


BLOCKS = {"scorecard": scorecard, "configurations": configurations, "epsilon": epsilon, "support": support}


def current(name: str) -> str:
    """A page with its tables as the reports have them."""
    text = (ROOT / name).read_text()
    for block in SHOWN_IN[name]:
        text = with_block(text, block, BLOCKS[block]())
    return text


def with_block(text: str, name: str, block: str) -> str:
    """A text with the block of this name replaced."""
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    if not rest or not after:
        raise ValueError(f"There is no block {begin} ... {end} to write.")
    return f"{before}{begin}\n{block}\n{end}{after}"


def main() -> None:
    """Write the tables where they are shown."""
    for name in SHOWN_IN:
        (ROOT / name).write_text(current(name))


if __name__ == "__main__":
    main()
