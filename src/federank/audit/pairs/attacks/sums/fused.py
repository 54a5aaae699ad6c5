"""Fused, where only sums are seen: taste as the prior, membership as the evidence.

If items that somebody sends as liked lie mu standard deviations above the others in the differences of their sums, a
difference of z is r = e^(mu z - mu^2 / 2) times as likely for them. An item that somebody has is sent with probability
pi, one that they do not have with q (0 without decoys), both for life; so the odds that they have it change by

    (1 - pi + pi r) / (1 - q + q r)

How large mu is shows in the differences themselves: with a share s of the catalogue sent their variance is
1 + s (1 - s) mu^2, and 1 if they are nothing but chance.
"""

from __future__ import annotations

import numpy as np

from federank.audit.guess import Guess, claim_typical, standardised
from federank.audit.pairs.view import SumsView

_NEVER_SURE = 0.98
"""Even what is always sent may not have been drawn."""
_FARTHEST = 30.0


def fused_sums(view: SumsView) -> Guess:
    """Add up taste and membership, each for what it is worth."""
    policies = view.policies
    # Where negatives avoid the history, an item that is never sent stands out too: by missing among the negatives.
    pi = np.where(policies.excluding, _NEVER_SURE, np.minimum(policies.liked, _NEVER_SURE))[:, None]
    q = policies.unliked[:, None]
    owned = min(max(view.typical_size / view.differences.shape[1], 1e-6), 0.5)
    share = np.clip(owned * pi + (1 - owned) * q, 1e-6, 0.5)
    beyond_chance = np.maximum(np.var(view.differences, axis=1, keepdims=True) - 1, 0)
    mu = np.sqrt(beyond_chance / (share * (1 - share)))
    r = np.exp(np.clip(mu * view.differences - mu**2 / 2, -_FARTHEST, _FARTHEST))
    evidence = np.log((1 - pi + pi * r) / (1 - q + q * r))
    taste = standardised(view.vectors @ view.broadcast.vectors.T + view.broadcast.biases)
    return claim_typical((taste + evidence).astype(np.float32), view.typical_size)
