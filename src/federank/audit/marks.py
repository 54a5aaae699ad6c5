"""Marks of all attacks side by side: means over people, the gain over popularity, and which attack is the best.

The gain is counted from the popularity attacker's AUC, or from 0.5 where that is higher: with few positives among many
negatives the public biases can point the wrong way, and an attack should get no credit for that.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from federank.audit.guess import BASELINE
from federank.audit.scoring import Marks

Means = dict[str, dict[str, float | None]]


def means_of(marks: dict[str, list[Marks]]) -> Means:
    """Each attack's mean marks, and by how much its order is better than popularity's, or chance's if that is worse."""
    found: Means = {}
    for name, parts in marks.items():
        joined = Marks(*(np.concatenate(column) for column in zip(*parts, strict=True)))
        means = {mark: _mean(values) for mark, values in joined._asdict().items()}
        # An attack that claims nothing about anybody is right about nothing.
        found[name] = means | {"precision": means["precision"] or 0.0}
    for mark, gain in (("auc", "gain"), ("auc_held_back", "gain_held_back")):
        known = found[BASELINE][mark]
        for means in found.values():
            value = means[mark]
            means[gain] = None if value is None or known is None else value - max(known, 0.5)
    return found


def best_of(attacks: Means) -> dict[str, Any]:
    """The headline: the attack with the best order of all, and the one with the best order of what was held back."""
    best: dict[str, Any] = {}
    for mark, gain in (("auc", "gain"), ("auc_held_back", "gain_held_back")):
        judged = {name: means[mark] for name, means in attacks.items() if means[mark] is not None and name != BASELINE}
        name = max(judged, key=lambda attack: judged[attack] or 0.0) if judged else None
        best |= {f"by_{mark}": name, mark: judged.get(name or ""), gain: attacks[name][gain] if name else None}
    return best


def _mean(values: NDArray[np.float64]) -> float | None:
    judged = values[~np.isnan(values)]
    return float(judged.mean()) if len(judged) else None
