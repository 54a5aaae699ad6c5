"""Federated evaluation: answers of clients on whether an item that they hold back was among their first ten.

Each answer is randomised on its client (privacy/accountant.py), and counted once for a client and version. A
client is in the table by a word that is another for every version, so its answers are not linked here. Where ratings
are held back an answer is about how far off the prediction is, or about the square of that: MAE and RMSE follow.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from federank.privacy.accountant import MOST_ANSWERS, Estimate, estimate
from federank.service.server.store.database import Connection
from federank.service.server.store.queries import get_value, put_value
from federank.service.server.store.versions import Extend, kept_versions, roll_back
from federank.service.server.store.writer import note_action

WINDOW = 200
"""Answers that make one side of a comparison."""
ENOUGH = 50
"""Answers that make one point of a trend: with fewer, an estimate is mostly chance."""
_JUDGED_FROM = "judged from"  # the version with which the comparison began again


class Judged(NamedTuple):
    """What clients have said about a version."""

    version: int
    answers: int
    yes: int
    squared_answers: int = 0
    squared_yes: int = 0


def keep_hit(connection: Connection, version: int, reporter: bytes, hit: bool, is_squared: bool = False) -> bool:
    """Count an answer, within the caller's transaction; whether it is the client's first about this version."""
    insert = "INSERT INTO hits (version, reporter, hit, squared) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
    return bool(connection.run(insert, version, reporter, int(hit), int(is_squared)))


def keep_answer(
    connection: Connection, client: str, version: int, reporter: bytes, hit: bool, is_squared: bool
) -> bool | None:
    """Count a client's answer, within the caller's transaction: True, False where it has answered about this version
    before, None where it has given all the answers that the protocol allows.
    """
    if connection.one("SELECT 1 FROM hits WHERE version = ? AND reporter = ?", version, reporter) is not None:
        return False
    if not connection.run(
        "UPDATE clients SET answers = answers + 1 WHERE client = ? AND answers < ?", client, MOST_ANSWERS
    ):
        return None
    return keep_hit(connection, version, reporter, hit, is_squared)


def judged_versions(connection: Connection, most: int, since: int = 0) -> list[Judged]:
    """The newest versions that clients have said something about, newest first."""
    rows = connection.all(
        "SELECT version, SUM(1 - squared), SUM((1 - squared) * hit), SUM(squared), SUM(squared * hit) FROM hits"
        " WHERE version >= ? GROUP BY version"
        " ORDER BY version DESC LIMIT ?",
        since,
        most,
    )
    return [Judged(*map(int, row)) for row in rows]


def report_of(judged: Judged, span: float | None = None) -> dict[str, Any]:
    """A version's estimate as the operator reads it; where ratings are judged, `span` is how far the scale reaches.

    A yes is then a rating that was met, rounded at random, so the share that is missing is the mean absolute error, or
    the mean squared error.
    """
    entry: dict[str, Any] = {"version": judged.version, "answers": judged.answers + judged.squared_answers}
    if judged.answers:
        found = _within(estimate(judged.answers, judged.yes))
        entry |= {name: round(value, 4) for name, value in found._asdict().items()}
        if span is not None:
            entry |= _errors("mae", [span * (1 - share) for share in found])
    if judged.squared_answers and span is not None:
        found = _within(estimate(judged.squared_answers, judged.squared_yes))
        entry |= _errors("rmse", [span * math.sqrt(1 - share) for share in found])
    return entry


def _within(found: Estimate) -> Estimate:
    """An estimate as a share: few randomised answers can be outside 0 to 1."""
    return Estimate(*(min(1.0, max(0.0, share)) for share in found))


def _errors(name: str, values: list[float]) -> dict[str, float]:
    """An error and its 95 % interval, from what they are of a share and its own, whose ends change places."""
    error, high, low = (round(max(0.0, value), 4) for value in values)
    return {name: error, f"{name}_low": low, f"{name}_high": high}


class Fall(NamedTuple):
    """The newest versions are worse than those before them."""

    last_good: int  # the last version before the fall
    before: Estimate
    after: Estimate


def fallen(connection: Connection) -> Fall | None:
    """Whether the latest answers are worse than those before, beyond what chance explains: the intervals are apart."""
    judged = judged_versions(connection, 4 * WINDOW, int(get_value(connection, _JUDGED_FROM) or 0))
    windows = pooled(judged, WINDOW)
    if len(windows) < 2:
        return None
    after, before = windows[:2]
    later, earlier = estimate(after.answers, after.yes), estimate(before.answers, before.yes)
    return Fall(before.version, earlier, later) if later.high < earlier.low else None


def pooled(judged: list[Judged], least: int) -> list[Judged]:
    """Neighbouring versions taken together, newest first, so that each group has `least` answers; named by its newest.

    The oldest versions, if they have fewer together, are in no group.
    """
    groups: list[Judged] = []
    nothing = Judged(-1, 0, 0)
    group = nothing
    for version in judged:
        counts = (mine + more for mine, more in zip(group[1:], version[1:], strict=True))
        group = Judged(max(group.version, version.version), *counts)
        if group.answers >= least:
            groups.append(group)
            group = nothing
    return groups


def undo_fall(connection: Connection, extend: Extend) -> dict[str, Any] | None:
    """Go back to the last version before a fall, in one transaction; what was done, if anything was."""
    fall = fallen(connection)
    if fall is None:
        return None
    with connection.transaction():
        known = [entry["version"] for entry in kept_versions(connection) if entry["version"] <= fall.last_good]
        model = roll_back(connection, max(known), extend) if known else None
        if model is None:
            return None
        put_value(connection, _JUDGED_FROM, model.version)
        done = {"to": max(known), "as_version": model.version}
        note_action(connection, "rollback", **done, by="evaluation")
    return done | {"before": round(fall.before.share, 4), "after": round(fall.after.share, 4)}


# What the operator sees of the rounds: reports, dropouts, refusals, bytes, drift, seconds, and when they ended.


def latest_rounds(connection: Connection, most: int) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """The latest rounds, newest first, at most this many; and how many uploads were ever refused, by reason."""
    rows = connection.all(
        "SELECT r.number, r.version, r.state, r.reports, r.bytes, r.clipped, r.drift, r.seconds, g.granted,"
        " r.ended, r.clients, r.departures"
        " FROM rounds r LEFT JOIN grants g ON g.round = r.number ORDER BY r.number DESC LIMIT ?",
        most,
    )
    first = int(rows[-1][0]) if rows else 0
    refused: dict[int, dict[str, int]] = {}
    for number, reason, count in connection.all(
        "SELECT round, reason, count FROM refusals WHERE round >= ? ORDER BY round, reason", first
    ):
        refused.setdefault(int(number), {})[str(reason)] = int(count)
    totals = connection.all("SELECT reason, SUM(count) FROM refusals GROUP BY reason ORDER BY reason")
    shown = []
    for number, version, state, reports, size, clipped, drift, seconds, granted, ended, clients, departures in rows:
        if state in ("open", "closed"):
            row = connection.one(
                "SELECT COUNT(*), COALESCE(SUM(size), 0), COALESCE(SUM(clipped), 0) FROM uploads WHERE round = ?",
                number,
            )
            reports, size, clipped = row or (0, 0, 0)
        dropouts = max(0, int(granted or 0) - int(reports)) if state in ("aggregated", "abandoned") else 0
        counts = {"number": number, "version": version, "granted": granted or 0, "reports": reports}
        counts |= {"dropouts": dropouts, "bytes": size, "clipped": clipped}
        shown.append(
            {name: int(count) for name, count in counts.items()}
            | {"state": str(state), "rejected": refused.get(int(number), {}), "seconds": round(float(seconds), 3)}
            | {"drift": float(drift) if math.isfinite(drift) else None, "clients": clients, "departures": departures}
            | {"ended": None if ended is None else round(float(ended), 3)}
        )
    return shown, {str(reason): int(count) for reason, count in totals}
