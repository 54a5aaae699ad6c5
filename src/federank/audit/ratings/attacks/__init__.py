"""The attacks on FedRec by name for each threat model: the baseline first.

They see a view and nothing else: whom they may call is arrays, guess.py and view.py.
"""

from __future__ import annotations

from federank.audit.guess import BASELINE, Attack
from federank.audit.ratings.attacks.named import intersection, popularity, presence, second_rows

RATING_ATTACKS: dict[str, dict[str, Attack]] = {
    "updates": {
        BASELINE: popularity,
        "presence": presence,
        "intersection": intersection,
        "second_rows": second_rows,
    },
    "anonymous": {BASELINE: popularity, "presence": presence, "second_rows": second_rows},
}
"""What each kind of curious server tries."""
