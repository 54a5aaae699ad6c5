"""Tables about the runs themselves: what differs from the paper and why, what it took.

    differences_table   everything more than ten percent from the paper, with the study's note or "unexplained"
    runs_table          epochs, seconds, memory and bytes of each row
    failures_table      runs that did not end, with their reasons
    versions_table      with what it was computed: packages, machine, fingerprints of the data

Each is None where there is nothing to put in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from federank.studies.metric_words import words_of, written
from federank.studies.report_spec import Note, ReportSpec, note_on
from federank.studies.results import RunRecord, spoken_time
from federank.studies.rows import Row
from federank.studies.tables import NOTABLE, Difference, Table, plain_table

# Whether a difference from a paper is explained: a note explains only what something shows to be true.


UNEXPLAINED = "unexplained"
PRECISION = "precision@10"

Explain = Callable[[Difference], str]
"""Why a value differs from the paper's; begins with "unexplained" where nothing shows it."""


def explanations(specs: ReportSpec, differences: Sequence[Difference], rows: Sequence[Row]) -> Explain:
    """How a report's differences are explained: `differences` are all compared values, `rows` all of the study's."""
    compared = {(one.row.data, one.row.group, one.metric): one for one in differences}

    def explain(difference: Difference, followed: frozenset[str] = frozenset()) -> str:
        note = note_on(specs, difference.row, difference.metric)
        if note is None:
            return UNEXPLAINED
        shown, evidence = _evidence(note, difference, followed)
        text = f"{note.text} {evidence}".rstrip()
        return text if shown else f"{UNEXPLAINED}: {text}"

    def _evidence(note: Note, difference: Difference, followed: frozenset[str]) -> tuple[bool, str]:
        """Whether what the note names shows it, and a sentence that says so."""
        by = note.shown_by
        evidence: list[tuple[bool, str]] = []
        if "test" in by:
            evidence.append((True, f"Shown by {by['test']}."))
        if "paper" in by:
            evidence.append((True, f"The paper says so itself: {by['paper']}."))
        if "sweep" in by:
            precise = compared.get((difference.row.data, difference.row.group, PRECISION))
            evidence.append(_sweep_shows(by["sweep"], difference, rows, precise))
        if "group" in by or "data" in by:
            evidence.append(_row_shows(by, difference, followed))
        return bool(evidence) and all(shown for shown, _ in evidence), " ".join(text for _, text in evidence)

    def _row_shows(by: Mapping[str, str], difference: Difference, followed: frozenset[str]) -> tuple[bool, str]:
        data, group = by.get("data", difference.row.data), by.get("group", difference.row.group)
        name = group if data == difference.row.data else f"{group} on {data}"
        other = compared.get((data, group, difference.metric))
        if other is None:
            return False, f"The row that would show it, {name}, is not there."
        apart = f"{written(other.metric, other.ours)}, {other.percent:+.1f} %"
        if abs(other.percent) <= NOTABLE:
            return True, f"Shown by {name} ({apart})."
        if name not in followed and not explain(other, followed | {name}).startswith(UNEXPLAINED):
            return True, f"Shown by {name} ({apart}, explained there)."
        return False, f"{name} is not within {NOTABLE:.0f} % either ({apart})."

    return explain


def _sweep_shows(
    sweep: str, difference: Difference, rows: Sequence[Row], precise: Difference | None
) -> tuple[bool, str]:
    """Whether the paper's value is among those of a sweep's points, ten percent on either side.

    Only points count that are as precise as the paper's row (`precise`), where it has a precision.
    """
    points = [row for row in rows if row.data == difference.row.data and row.group == sweep]
    if precise is not None and difference.metric != PRECISION:
        points = [row for row in points if _near(row.mean(PRECISION), precise.paper)]
    values = [value for row in points if (value := row.mean(difference.metric)) is not None]
    if not values:
        return False, f"No point of the sweep that would show it, {sweep}, is as precise."
    low, high = min(values), max(values)
    interval = f"{written(difference.metric, low)} to {written(difference.metric, high)}"
    inside = low <= difference.paper <= high or any(_near(value, difference.paper) for value in values)
    if not inside:
        return False, f"Yet points of {sweep} that are as precise have {interval}."
    return True, f"Shown by {sweep}: points that are as precise have {interval}."


def _near(ours: float | None, paper: float) -> bool:
    return ours is not None and abs(ours - paper) <= NOTABLE / 100 * abs(paper)


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


def groups_table(rows: Sequence[Row]) -> Table | None:
    """Recall by user activity and item popularity; None where no run has it."""
    names = {name for row in rows for record in row.records for name in record.metrics if name.startswith("recall@")}
    cuts = sorted({int(name[7:].partition("/")[0]) for name in names if "/activity-" in name})
    if not cuts:
        return None
    columns = [f"recall@{cuts[-1]}/{by}-{group}" for by in ("activity", "popularity") for group in range(1, 5)]
    shown = [row for row in rows if any(row.mean(column) is not None for column in columns)]
    cells = [[row.data, row.label, *(written(column, row.mean(column)) for column in columns)] for row in shown]
    heads = [f"{title}|{group}>" for title in ("Users by activity", "Items by popularity") for group in range(1, 5)]
    caption = (
        f"Recall@{cuts[-1]}. Group 1 has the least active users and the least popular items. Users are cut at the "
        "quartiles of their activity; each group of items has about a quarter of the training interactions, and its "
        "recall is over the test interactions with its items. Equal users or items share a group."
    )
    return plain_table("Metrics by group", caption, ["Data", "Method", *heads], cells)


def price_table(rows: Sequence[Row]) -> Table | None:
    """What differential privacy costs: the share of the gain over popularity that each private row keeps.

    The reference is the best row without noise of the same method, or of any where that has none. None where nothing is
    private, or where popularity was not run.
    """
    cells = []
    for row in (row for row in rows if row.mean("noise_epsilon") is not None):
        others = [other for other in rows if other.data == row.data and other.mean("noise_epsilon") is None]
        floor = _best_precision(other for other in others if _method(other) == "popular")
        same = [other for other in others if _method(other) == _method(row)]
        full = _best_precision(same or (other for other in others if _method(other) != "popular"))
        ours = row.mean(PRECISION)
        if floor is None or full is None or ours is None or full <= floor:
            continue
        popularity = [f"recall@10/popularity-{group}" for group in range(1, 5)]
        figures = [f"{ours / full:.0%}", f"{floor / full:.0%}", f"{(ours - floor) / (full - floor):.0%}"]
        cells.append(
            [
                *(row.data, row.label, f"{row.mean('noise_epsilon'):.3g}", written(PRECISION, ours)),
                *figures,
                written("item_coverage@10", row.mean("item_coverage@10")),
                *(written(metric, row.mean(metric)) for metric in popularity),
            ]
        )
    if not cells:
        return None
    caption = (
        "Kept: P@10 as a share of the best row without noise, of the same method if it has one. Popularity: the share "
        "that the most popular items keep. Gain kept: the share of the gain over popularity that is kept. Recall@10 by "
        "item popularity, group 1 the least popular."
    )
    columns = ["Data", "Method", "Epsilon>", "P@10>", "Kept>", "Popularity>", "Gain kept>", "IC@10>"]
    columns += [f"Items by popularity|{group}>" for group in range(1, 5)]
    return plain_table("The price of differential privacy", caption, columns, cells)


def _best_precision(rows: Iterable[Row]) -> float | None:
    return max((value for row in rows if (value := row.mean(PRECISION)) is not None), default=None)


def _method(row: Row) -> str:
    return row.records[0].model


def runs_table(rows: Sequence[Row], records: Sequence[RunRecord]) -> Table:
    """Each row's runs: where they ended and what they cost; means over seeds."""
    cells = []
    for row in rows:
        sent = [record.bytes for record in row.records if record.bytes is not None]
        cells.append(
            [
                row.data,
                row.label,
                str(len(row.records)),
                _mean([record.epoch for record in row.records], "{:g}"),
                _mean([record.seconds for record in row.records], "{:,.1f}"),
                _mean([record.memory_mb for record in row.records], "{:,.0f}"),
                _mean([traffic.up for traffic in sent], "{:,.1f}", 1e6),
                _mean([traffic.down for traffic in sent], "{:,.1f}", 1e6),
                _chosen(row),
            ]
        )
    each = {record.id: record for record in records}
    total = sum(float(record.seconds or 0) for record in each.values())
    choosing = sum(record.task == "choose" for record in each.values())
    caption = (
        f"{len(each):,} runs in all, {choosing:,} of them to choose settings; {spoken_time(total)} of computing, added "
        "up over all runs. Times and memory are means over seeds and folds; bytes are those of a full run, counted "
        "once for each row where the count means making all draws again."
    )
    columns = ["Data", "Method", "Runs>", "Epoch>", "Seconds>", "Memory, MB>", "Sent up, MB>", "Down, MB>", "Chosen"]
    return plain_table("Runs", caption, columns, cells)


def failures_table(records: Sequence[RunRecord]) -> Table | None:
    """Why runs failed, a row for each cause; None where all went well."""
    failed = {(record.id, record.group): record for record in records if not record.done}.values()
    if not failed:
        return None
    causes: dict[tuple[str, str, str], list[RunRecord]] = {}
    for record in failed:
        # What is to blame: a reason without the epoch or the id at which it showed.
        cause = re.sub(r"(?<![\w.])\d[\d,]*(?![\w.])", "N", record.reason or "-")
        causes.setdefault((record.data, record.task, cause), []).append(record)
    cells = [
        [
            data,
            ", ".join(dict.fromkeys(record.group for record in alike)),
            task,
            str(len({record.id for record in alike})),
            alike[0].reason or "-",
        ]
        for (data, task, _), alike in causes.items()
    ]
    caption = (
        "A row for each cause and task, with the reason of the first of its runs. The others went on without them."
    )
    return plain_table("Failed runs", caption, ["Data", "Method", "Task", "Runs>", "Reason"], cells)


def versions_table(records: Sequence[RunRecord]) -> Table:
    """Packages and machine as the runs recorded them, and what data they read."""
    result: dict[str, set[str]] = {}
    for record in records:
        for name, version in record.versions.items():
            result.setdefault(name, set()).add(str(version))
        if record.data_fingerprint:
            result.setdefault(f"data {record.data}", set()).add(record.data_fingerprint)
        if record.repeats_left_out:
            result.setdefault(f"repeated rows of {record.data}, left out", set()).add(f"{record.repeats_left_out:,}")
    cells = [[name, ", ".join(sorted(values))] for name, values in result.items()]
    several = any(len(values) > 1 for values in result.values())
    caption = "Several values in one line: the runs were not all made with the same." if several else ""
    return plain_table("Versions and data", caption, ["What", "Version or fingerprint"], cells)


def _chosen(row: Row) -> str:
    """What was chosen for the row, and on which part."""
    parts = {record.chosen_on for record in row.records} - {None}
    if not parts:
        return "nothing"
    values: dict[str, None] = {}
    for record in row.records:
        values |= dict.fromkeys(f"{name.replace('_', ' ')} {value}" for name, value in record.chosen.items())
    return f"{', '.join(values or ['the epoch'])}, on {' and '.join(sorted(map(str, parts)))}"


def _mean(values: Sequence[Any], form: str, unit: float = 1.0) -> str:
    held = [float(value) for value in values if value is not None]
    return form.format(np.mean(held) / unit) if held else "-"


def comparison(differences: Sequence[Difference], explain: Explain) -> str:
    """The two sentences; nothing where no paper has these figures."""
    if not differences:
        return ""
    far = [one for one in differences if abs(one.percent) > NOTABLE]
    kinds = {one.formula for one in differences}
    has = " or ".join(words for formula, words in ((False, "has too"), (True, "has a formula for")) if formula in kinds)
    near = f"Of {len(differences):,} values that the paper {has}, {len(differences) - len(far):,} are within "
    near += f"{NOTABLE:.0f} % of it."
    if not far:
        return near
    unexplained = sum(explain(one).startswith(UNEXPLAINED) for one in far)
    groups = list(dict.fromkeys(one.row.group for one in far))
    return (
        f"{near} The others are of {_listed(groups)}: {len(far) - unexplained:,} have a note that explains them, "
        f"{unexplained:,} are unexplained."
    )


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{'; '.join(words[:-1])} and {words[-1]}"
