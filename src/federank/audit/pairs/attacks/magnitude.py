"""Magnitude: how hard the device still has to pull at an item it sends as liked.

The bias gradient g = 1 / (1 + e^x) of a positive is large while the device's vector does not rank it above what it is
compared with. Real tastes hang together, so the vector learns them and g falls; a decoy stands alone, and its g stays
near or above a half. So of the items that were ever sent as liked, those with small gradients are the likelier to be
real; those that came often are known better.

The latest Update tells g of the rows that are in it. For items sent earlier the recovered vector tells what g would be
against a middling negative.
"""

from __future__ import annotations

import numpy as np

from federank.audit.guess import Guess
from federank.audit.pairs.view import PairsView

_A_HALF = 0.5


def magnitude(view: PairsView) -> Guess:
    """Rank what was ever sent as liked by small gradients; claim those below a half."""
    scores = view.vectors @ view.broadcast.vectors.T + view.broadcast.biases
    slopes = 1 / (1 + np.exp(np.clip(scores - np.median(scores, axis=1, keepdims=True), -30, 30)))
    for row, update in enumerate(view.updates):
        sent = update.biases > 0
        slopes[row, update.items[sent]] = np.minimum(update.biases[sent], 1)
    often = view.times_positive / (1 + view.times_positive.astype(np.float32))
    ranked = np.where(view.times_positive > 0, 1 + (1 - slopes) * often, 0).astype(np.float32)
    named = (view.times_positive > 0) & (slopes < _A_HALF)
    return Guess(ranked, named.sum(axis=1, dtype=np.int64))
