"""What the operator sees of the rounds: reports, dropouts, refusals, bytes, drift, seconds, and when they ended."""

from __future__ import annotations

import math
from typing import Any

from federank.service.server.store.database import Connection


def latest_rounds(connection: Connection, most: int) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """The latest rounds, newest first, at most so many; and how many uploads were ever refused, by reason."""
    rows = connection.all(
        "SELECT r.number, r.version, r.state, r.reports, r.bytes, r.clipped, r.drift, r.seconds, g.granted,"
        " r.ended, r.devices, r.departures"
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
    for number, version, state, reports, size, clipped, drift, seconds, granted, ended, devices, departures in rows:
        if state in ("open", "closed"):
            row = connection.one(
                "SELECT COUNT(*), COALESCE(SUM(size), 0), COALESCE(SUM(clipped), 0) FROM uploads WHERE round = ?",
                number,
            )
            reports, size, clipped = row or (0, 0, 0)
        dropouts = max(0, int(granted or 0) - int(reports)) if state in ("folded", "abandoned") else 0
        shown.append(
            {
                "number": int(number),
                "version": int(version),
                "state": str(state),
                "granted": int(granted or 0),
                "reports": int(reports),
                "dropouts": dropouts,
                "rejected": refused.get(int(number), {}),
                "bytes": int(size),
                "clipped": int(clipped),
                "drift": float(drift) if math.isfinite(drift) else None,
                "seconds": round(float(seconds), 3),
                "ended": None if ended is None else round(float(ended), 3),
                "devices": None if devices is None else int(devices),
                "departures": None if departures is None else int(departures),
            }
        )
    return shown, {str(reason): int(count) for reason, count in totals}
