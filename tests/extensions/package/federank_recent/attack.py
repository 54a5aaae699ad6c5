"""An attack on messages of any form: anyone who names an item in a message has it."""

import numpy as np

import federank as fr


@fr.attack(on="steps", sees=("updates", "anonymous"))
def named_items(view):
    """Claim the items that a person's last message names."""
    scores = np.zeros(view.strength.shape, dtype=np.float32)
    for row, message in enumerate(view.last):
        scores[row, message.get("items", [])] = 1
    return fr.Guess(scores, scores.sum(axis=1).astype(np.int64))
