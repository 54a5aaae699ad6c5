"""An attack on updates of any form: who names an item in an update has it."""

import numpy as np

import federank as fr


@fr.attack(on="updates", sees=("updates", "anonymous"))
def named_items(view):
    """Claim the items that a user's last update names."""
    scores = np.zeros(view.strength.shape, dtype=np.float32)
    for row, update in enumerate(view.last):
        scores[row, getattr(update, "items", [])] = 1
    return fr.Guess(scores, scores.sum(axis=1).astype(np.int64))
