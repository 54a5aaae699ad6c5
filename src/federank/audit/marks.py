"""Marks of all attacks side by side: means over people, the gain over popularity, and which attack is the best.

The gain is counted from the popularity attacker's AUC, or from 0.5 where that is higher: with few positives among many
negatives the public biases can point the wrong way, and an attack should get no credit for that. Each gain has the 95 %
interval of a mean over people, from their own differences (`_low`, `_high`).
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
    all_joined: dict[str, Marks] = {}
    for name, parts in marks.items():
        joined = Marks(*(np.concatenate(column) for column in zip(*parts, strict=True)))
        all_joined[name] = joined
        means = {mark: _mean(values) for mark, values in joined._asdict().items()}
        # An attack that claims nothing about anybody is right about nothing.
        found[name] = means | {"precision": means["precision"] or 0.0}
    for mark, gain in (("auc", "gain"), ("auc_held_back", "gain_held_back")):
        known = found[BASELINE][mark]
        for name, means in found.items():
            value = means[mark]
            means[gain] = None if value is None or known is None else value - max(known, 0.5)
            own, others = getattr(all_joined[name], mark), getattr(all_joined[BASELINE], mark)
            room = None if known is None else _half_interval(own - others if known > 0.5 else own)
            middle = means[gain]
            means[f"{gain}_low"] = None if middle is None or room is None else middle - room
            means[f"{gain}_high"] = None if middle is None or room is None else middle + room
    return found


def best_of(attacks: Means) -> dict[str, Any]:
    """The headline: the attack with the best order of all, and the one with the best order of what was held back."""
    best: dict[str, Any] = {}
    for mark, gain in (("auc", "gain"), ("auc_held_back", "gain_held_back")):
        judged = {name: means[mark] for name, means in attacks.items() if means[mark] is not None and name != BASELINE}
        name = max(judged, key=lambda attack: judged[attack] or 0.0) if judged else None
        best |= {f"by_{mark}": name, mark: judged.get(name or "")}
        best |= {part: attacks[name][part] if name else None for part in (gain, f"{gain}_low", f"{gain}_high")}
    return best


def _mean(values: NDArray[np.float64]) -> float | None:
    judged = values[~np.isnan(values)]
    return float(judged.mean()) if len(judged) else None


def _half_interval(values: NDArray[np.float64]) -> float | None:
    """Half the width of the 95 % interval of a mean over people; unknown for fewer than two."""
    judged = values[~np.isnan(values)]
    return float(1.96 * judged.std(ddof=1) / np.sqrt(len(judged))) if len(judged) > 1 else None
