"""Whether a difference from a paper is explained: a note explains only what something shows to be true.

A study's note says with `shown_by` what that is. Each key is a kind of evidence, and all that are given must hold:

    group   a row on the same data: it is within ten percent of the paper, or explained itself
    data    the same row on other data, or `group` there: likewise
    sweep   a group that is swept: the paper's value lies among those of its points that are as precise as the paper's
    test    a test of the product, which fails where the note is wrong, as pytest names it
    paper   where the paper says so itself

A note that names nothing, or whose evidence does not hold, is printed behind the word "unexplained".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from federank.studies.plan.wishes import Note, Wishes, note_on
from federank.studies.report.tables import NOTABLE, Difference
from federank.studies.results.metric_words import written
from federank.studies.results.rows import Row

UNEXPLAINED = "unexplained"
PRECISION = "precision@10"

Explain = Callable[[Difference], str]
"""Why a value differs from the paper's; begins with "unexplained" where nothing shows it."""


def explanations(wishes: Wishes, differences: Sequence[Difference], rows: Sequence[Row]) -> Explain:
    """How a report's differences are explained: `differences` are all compared values, `rows` all of the study's."""
    compared = {(one.row.data, one.row.group, one.metric): one for one in differences}

    def explain(difference: Difference, asked: frozenset[str] = frozenset()) -> str:
        note = note_on(wishes, difference.row, difference.metric)
        if note is None:
            return UNEXPLAINED
        shown, evidence = _evidence(note, difference, asked)
        told = f"{note.text} {evidence}".rstrip()
        return told if shown else f"{UNEXPLAINED}: {told}"

    def _evidence(note: Note, difference: Difference, asked: frozenset[str]) -> tuple[bool, str]:
        """Whether what the note names shows it, and a sentence that tells so."""
        by = note.shown_by
        if not by:
            return False, ""
        held, sentences = [], []
        if "test" in by:
            held.append(True)
            sentences.append(f"Shown by {by['test']}.")
        if "paper" in by:
            held.append(True)
            sentences.append(f"The paper says so itself: {by['paper']}.")
        if "sweep" in by:
            precise = compared.get((difference.row.data, difference.row.group, PRECISION))
            found, sentence = _sweep_shows(by["sweep"], difference, rows, precise)
            held.append(found)
            sentences.append(sentence)
        if "group" in by or "data" in by:
            found, sentence = _row_shows(by, difference, asked)
            held.append(found)
            sentences.append(sentence)
        return all(held), " ".join(sentences)

    def _row_shows(by: Mapping[str, str], difference: Difference, asked: frozenset[str]) -> tuple[bool, str]:
        data, group = by.get("data", difference.row.data), by.get("group", difference.row.group)
        name = group if data == difference.row.data else f"{group} on {data}"
        other = compared.get((data, group, difference.metric))
        if other is None:
            return False, f"The row that would show it, {name}, is not there."
        apart = f"{written(other.metric, other.ours)}, {other.percent:+.1f} %"
        if abs(other.percent) <= NOTABLE:
            return True, f"Shown by {name} ({apart})."
        if name not in asked and not explain(other, asked | {name}).startswith(UNEXPLAINED):
            return True, f"Shown by {name} ({apart}, explained there)."
        return False, f"{name} is not within {NOTABLE:.0f} % either ({apart})."

    return explain


def _sweep_shows(
    sweep: str, difference: Difference, rows: Sequence[Row], precise: Difference | None
) -> tuple[bool, str]:
    """Whether the paper's value lies among those of a sweep's points, ten percent on either side.

    Only points count that are as precise as the paper's row (`precise`), where it has a precision.
    """
    points = [row for row in rows if row.data == difference.row.data and row.group == sweep]
    if precise is not None and difference.metric != PRECISION:
        points = [row for row in points if _near(row.mean(PRECISION), precise.paper)]
    values = [value for row in points if (value := row.mean(difference.metric)) is not None]
    if not values:
        return False, f"No point of the sweep that would show it, {sweep}, is as precise."
    low, high = min(values), max(values)
    range_told = f"{written(difference.metric, low)} to {written(difference.metric, high)}"
    inside = low <= difference.paper <= high or any(_near(value, difference.paper) for value in values)
    if not inside:
        return False, f"Yet points of {sweep} that are as precise have {range_told}."
    return True, f"Shown by {sweep}: points that are as precise have {range_told}."


def _near(ours: float | None, paper: float) -> bool:
    return ours is not None and abs(ours - paper) <= NOTABLE / 100 * abs(paper)
