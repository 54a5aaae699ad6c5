"""Fused, where only sums are seen: taste as the prior, membership as the evidence.

If items that somebody has lie mu standard deviations above the others in the differences of their sums, a difference
of z weighs mu z in logarithms of odds. How large mu is shows in the differences themselves: with a share s of the
catalogue their variance is 1 + s (1 - s) mu^2, and 1 if they are nothing but chance.
"""

from __future__ import annotations

import numpy as np

from federank.audit.view import Guess, SumsView, claim_typical, standardised

_TASTE = 1.0


def fused_sums(view: SumsView) -> Guess:
    """Add up taste and membership, each for what it is worth."""
    share = min(max(view.typical_size / view.differences.shape[1], 1e-6), 0.5)
    beyond_chance = np.maximum(np.var(view.differences, axis=1) - 1, 0)
    mu = np.sqrt(beyond_chance / (share * (1 - share)))[:, None]
    taste = _TASTE * standardised(view.vectors @ view.broadcast.vectors.T + view.broadcast.biases)
    return claim_typical((taste + mu * view.differences).astype(np.float32), view)
