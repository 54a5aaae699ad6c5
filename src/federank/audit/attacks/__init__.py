"""The attacks by name for each threat model, in the order of a report: the baseline first, the strongest last."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from federank.audit.attacks.absence import absence
from federank.audit.attacks.accumulation import accumulation
from federank.audit.attacks.frequency import frequency
from federank.audit.attacks.fused import fused
from federank.audit.attacks.learned import held_back, learned
from federank.audit.attacks.magnitude import magnitude
from federank.audit.attacks.neighbours import neighbours
from federank.audit.attacks.popularity import popularity
from federank.audit.attacks.sign import sign
from federank.audit.attacks.vector import vector_recovery
from federank.audit.sums.fused import fused_sums
from federank.audit.sums.membership import membership
from federank.audit.sums.vector import sum_vector
from federank.audit.view import Guess

Attack = Callable[[Any], Guess]
"""Sees a View of its threat model, answers with a Guess."""

BASELINE = "popularity"
"""The attack that needs no Update at all: what others gain is measured against it."""

ATTACKS: dict[str, dict[str, Attack]] = {
    "updates": {
        BASELINE: popularity,
        "sign": sign,
        "accumulation": accumulation,
        "frequency": frequency,
        "magnitude": magnitude,
        "absence": absence,
        "vector_recovery": vector_recovery,
        "neighbours": neighbours,
        "learned": learned,
        "held_back": held_back,
        "fused": fused,
    },
    "anonymous": {
        BASELINE: popularity,
        "sign": sign,
        "magnitude": magnitude,
        "vector_recovery": vector_recovery,
        "learned": learned,
        "held_back": held_back,
        "fused": fused,
    },
    "sums": {
        BASELINE: popularity,
        "membership": membership,
        "sum_vector": sum_vector,
        "learned": learned,
        "held_back": held_back,
        "fused": fused_sums,
    },
}
"""What each kind of curious server tries."""
