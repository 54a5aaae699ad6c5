"""How a run's traffic is told, whatever family it is of: rows and bytes, in all and per round."""

from __future__ import annotations


def traffic(rows: int, size: int, rounds: int) -> dict[str, float]:
    """What went one way in these rounds."""
    return {"rows": rows, "bytes": size, "rows_per_round": rows / rounds, "bytes_per_round": size / rounds}
