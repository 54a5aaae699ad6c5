"""The attacks by name, in the order of a report: the baseline first, the strongest last."""

from __future__ import annotations

from collections.abc import Callable

from federank.audit.attacks.absence import absence
from federank.audit.attacks.accumulation import accumulation
from federank.audit.attacks.frequency import frequency
from federank.audit.attacks.fused import fused
from federank.audit.attacks.popularity import popularity
from federank.audit.attacks.sign import sign
from federank.audit.attacks.vector import vector_recovery
from federank.audit.view import Guess, View

BASELINE = "popularity"
"""The attack that needs no Update at all: what others gain is measured against it."""

ATTACKS: dict[str, Callable[[View], Guess]] = {
    BASELINE: popularity,
    "sign": sign,
    "accumulation": accumulation,
    "frequency": frequency,
    "absence": absence,
    "vector_recovery": vector_recovery,
    "fused": fused,
}
