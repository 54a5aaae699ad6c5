"""Tables about the runs themselves: what differs from the paper and why, what was audited, what it took.

    differences_table   everything more than ten percent from the paper, with the study's note or "unexplained"
    privacy_table       what a curious server learnt in the audited runs
    runs_table          epochs, seconds, memory and bytes of each row
    failures_table      runs that did not end, with their reasons
    versions_table      with what it was computed: packages, machine, fingerprints of the data

Each is None where there is nothing to put in it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from federank.studies.report.explanations import PRECISION, UNEXPLAINED, Explain
from federank.studies.report.tables import NOTABLE, Difference, Table, plain_table
from federank.studies.results.line import Line
from federank.studies.results.metric_words import words_of, written, written_once
from federank.studies.results.rows import Row

_ORDERS = ("popularity/auc", "auc", "popularity/auc_held_back", "auc_held_back")
"""The orders that the privacy table shows: the honest baseline and the server's best attack, of everything and of what
never left."""


def differences_table(differences: Sequence[Difference], explain: Explain) -> Table | None:
    """Every difference of more than ten percent, the largest first within each data set; None without a comparison."""
    if not differences:
        return None
    notable = sorted(
        (one for one in differences if abs(one.percent) > NOTABLE), key=lambda one: (one.row.data, -abs(one.percent))
    )
    cells = [
        [
            one.row.data,
            one.row.label,
            words_of(one.metric).short,
            written(one.metric, one.ours),
            written(one.metric, one.paper),
            f"{one.percent:+.1f} %",
            explain(one),
        ]
        for one in notable
    ]
    caption = (
        f"{len(notable)} of {len(differences)} compared values differ from the paper by more than {NOTABLE:.0f} %; "
        f"{sum(row[-1].startswith(UNEXPLAINED) for row in cells)} of them unexplained."
    )
    columns = ["Data", "Method", "Metric", "Ours>", "Paper>", "Diff.>", "Why"]
    return plain_table(f"Differences over {NOTABLE:.0f} % from the paper", caption, columns, cells)


def privacy_table(lines: Sequence[Line]) -> Table | None:
    """What the audited runs gave away; None where nothing was audited."""
    audits = [line for line in lines if line.task == "audit" and line.done]
    if not audits:
        return None
    several = len({line.data for line in audits}) > 1
    priced = any(PRECISION in line.metrics for line in audits)
    cells = []
    for line in audits:
        found = line.metrics
        pi = line.settings.get("pi")
        orders = [found.get(name) for name in _ORDERS]
        openly = None if line.extra.get("sees", "").startswith("sums") else found.get("disclosed_share")
        cells.append(
            [
                *([line.data] if several else []),
                line.group,
                "-" if pi is None else f"{pi:g}",
                *([written_once(PRECISION, found.get(PRECISION))] if priced else []),
                _percent(openly),
                _percent(found.get("fused/recall")),
                _percent(found.get("fused/precision")),
                *("-" if order is None else f"{order:.3f}" for order in orders),
            ]
        )
    columns = [
        "Sharing",
        "pi>",
        *(["P@10>"] if priced else []),
        "Sent openly>",
        "Named>",
        "Right>",
        "Order|popularity>",
        "Order|attacker>",
    ]
    columns += ["Order of what never left|popularity>", "Order of what never left|attacker>"]
    caption = (
        "A server that keeps every message, or has only sums of them, guesses what each person's history holds. Sent "
        "openly: the share of a history that was sent as liked at least once, for the server to read. Named: the share "
        "of a history that the server claims, with all its attacks together. Right: the share of its claims that is "
        "so. Order: how often it ranks one of a person's items above another item (0.5 is chance, 1 is certainty), by "
        "popularity alone and with the best attack; then the same for those items that never left."
    )
    return plain_table("What a curious server learns", caption, ["Data", *columns] if several else columns, cells)


def runs_table(rows: Sequence[Row], lines: Sequence[Line]) -> Table:
    """Each row's runs: where they ended and what they cost; means over seeds."""
    cells = []
    for row in rows:
        sent = [line.bytes for line in row.lines if line.bytes is not None]
        cells.append(
            [
                row.data,
                row.label,
                str(len(row.lines)),
                _mean([line.epoch for line in row.lines], "{:g}"),
                _mean([line.seconds for line in row.lines], "{:,.1f}"),
                _mean([line.memory_mb for line in row.lines], "{:,.0f}"),
                _mean([traffic.up for traffic in sent], "{:,.1f}", 1e6),
                _mean([traffic.down for traffic in sent], "{:,.1f}", 1e6),
                _chosen(row),
            ]
        )
    each = {line.id: line for line in lines}
    total = sum(float(line.seconds or 0) for line in each.values())
    choosing = sum(line.task == "choose" for line in each.values())
    caption = (
        f"{len(each):,} runs in all, {choosing:,} of them to choose settings; {spoken_time(total)} of computing, added "
        "up over all runs. Times and memory are means over seeds and folds; bytes are those of a whole run, counted "
        "once for each row where the count means making all draws again."
    )
    columns = ["Data", "Method", "Runs>", "Epoch>", "Seconds>", "Memory, MB>", "Sent up, MB>", "Down, MB>", "Chosen"]
    return plain_table("Runs", caption, columns, cells)


def failures_table(lines: Sequence[Line]) -> Table | None:
    """Why runs failed, a row for each cause; None where all went well."""
    failed = {(line.id, line.group): line for line in lines if not line.done}.values()
    if not failed:
        return None
    causes: dict[tuple[str, str, str], list[Line]] = {}
    for line in failed:
        causes.setdefault((line.data, line.task, _cause(line.reason or "-")), []).append(line)
    cells = [
        [
            data,
            ", ".join(dict.fromkeys(line.group for line in alike)),
            task,
            str(len({line.id for line in alike})),
            alike[0].reason or "-",
        ]
        for (data, task, _), alike in causes.items()
    ]
    caption = (
        "A row for each cause and task, with the reason of the first of its runs. The others went on without them."
    )
    return plain_table("Failed runs", caption, ["Data", "Method", "Task", "Runs>", "Reason"], cells)


def _cause(reason: str) -> str:
    """What is to blame: a reason without the epoch or the id at which it showed."""
    return re.sub(r"(?<![\w.])\d[\d,]*(?![\w.])", "N", reason)


def versions_table(lines: Sequence[Line]) -> Table:
    """Packages and machine as the runs recorded them, and what data they read."""
    found: dict[str, set[str]] = {}
    for line in lines:
        for name, version in line.versions.items():
            found.setdefault(name, set()).add(str(version))
        if line.data_fingerprint:
            found.setdefault(f"data {line.data}", set()).add(line.data_fingerprint)
        if line.repeats_left_out:
            found.setdefault(f"repeated rows of {line.data}, left out", set()).add(f"{line.repeats_left_out:,}")
    cells = [[name, ", ".join(sorted(values))] for name, values in found.items()]
    several = any(len(values) > 1 for values in found.values())
    caption = "Several values in one line: the runs were not all made with the same." if several else ""
    return plain_table("Versions and data", caption, ["What", "Version or fingerprint"], cells)


def spoken_time(seconds: float) -> str:
    """A time as people say it."""
    if seconds < 120:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:.1f} hours"


def _chosen(row: Row) -> str:
    """What was chosen for the row, and on which part."""
    parts = {line.chosen_on for line in row.lines} - {None}
    if not parts:
        return "nothing"
    values: dict[str, None] = {}
    for line in row.lines:
        values |= dict.fromkeys(f"{name.replace('_', ' ')} {value}" for name, value in line.chosen.items())
    return f"{', '.join(values or ['the epoch'])}, on {' and '.join(sorted(map(str, parts)))}"


def _mean(values: Sequence[Any], form: str, unit: float = 1.0) -> str:
    held = [float(value) for value in values if value is not None]
    return form.format(np.mean(held) / unit) if held else "-"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"
