"""The vector in a sum: taste, as far as the sums of a person's rounds differ from the others.

The rows of negatives in a sum add up to -G p over its devices. So the rounds of one person, compared with all others,
give that person's own vector with noise. The noise is known (pairs/sums/observer.py): what chance explains is taken
off, and where nothing is left, everybody is taken to be like the mean of all.
"""

from __future__ import annotations

from federank.audit.guess import Guess, claim_typical
from federank.audit.pairs.view import SumsView


def sum_vector(view: SumsView) -> Guess:
    """Rank the catalogue with the vector that differences of sums give."""
    return claim_typical(view.vectors @ view.broadcast.vectors.T + view.broadcast.biases, view.typical_size)
