"""A way of sharing: at most three items, whatever the history."""


def three_at_most(history, pi, n_items, rng):
    """Three of the history, drawn once for its lifetime."""
    return rng.choice(history, min(3, len(history)), replace=False)
