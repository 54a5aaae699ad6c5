"""The attacks on pair-wise learning by name for each threat model: the baseline first, the strongest last.

They see a view and nothing else: whom they may call is arrays, guess.py, view.py and the protocol's messages.
"""

from __future__ import annotations

from federank.audit.guess import BASELINE, Attack
from federank.audit.pairs.attacks.absence import absence
from federank.audit.pairs.attacks.accumulation import accumulation
from federank.audit.pairs.attacks.frequency import frequency
from federank.audit.pairs.attacks.fused import fused
from federank.audit.pairs.attacks.learned import held_back, learned
from federank.audit.pairs.attacks.magnitude import magnitude
from federank.audit.pairs.attacks.neighbours import neighbours
from federank.audit.pairs.attacks.popularity import popularity
from federank.audit.pairs.attacks.sign import sign
from federank.audit.pairs.attacks.sums.fused import fused_sums
from federank.audit.pairs.attacks.sums.membership import membership
from federank.audit.pairs.attacks.sums.vector import sum_vector
from federank.audit.pairs.attacks.vector import vector_recovery
from federank.audit.pairs.attacks.vector_signs import vector_signs

ATTACKS: dict[str, dict[str, Attack]] = {
    "updates": {
        BASELINE: popularity,
        "sign": sign,
        "vector_signs": vector_signs,
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
        "vector_signs": vector_signs,
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
ATTACKS["outsider"] = ATTACKS["anonymous"]  # the sum of a round is taken for an Update, as it is where one is alone
"""What each kind of curious server tries."""
