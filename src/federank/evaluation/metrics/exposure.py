"""What the lists show of the catalogue: how many items, how evenly, how well known.

Three functions see the lists of everybody together, as `counts`: how often each item of the catalogue is
recommended, items that never are included. The catalogue is the whole data set's, before the split, as in the
papers (41,488 items on Amazon Digital Music).

    item_coverage   how many different items are recommended
    gini            the papers' form, 1 - Gini: higher is more even (Elliot prints it too, over the training items)
    gini_standard   the Gini coefficient itself: lower is more even (RecBole, LensKit)

Three see each user's list; places that a list does not fill are left out, and a user without a list has no value:

    novelty         the mean of 1 - (users who have the item in training) / (users of training): EPC, the expected
                    popularity complement (Vargas and Castells, 2011), without discount and without relevance
    popularity      the mean number of training users of the list's items: its mean over users is ARP
    popularity_lift by how much the lists are more popular than the profiles (Abdollahpouri et al., 2019):
                    (lists - profiles) / profiles, each a mean over users of means over items
"""

from __future__ import annotations

import numpy as np

from federank.arrays import IntMatrix, IntVector, LongVector, RealVector
from federank.data.interactions import Profiles
from federank.data.statistics.statistics import gini as corrected_gini


def count_items(items: IntMatrix | IntVector, n_items: int) -> LongVector:
    """How often each item of a catalogue of `n_items` is in the lists."""
    return np.bincount(items[items >= 0], minlength=n_items).astype(np.int64)


def item_coverage(counts: LongVector) -> int:
    """How many different items are recommended to anybody."""
    return int(np.count_nonzero(counts))


def gini(counts: LongVector) -> float:
    """The papers' form: 1 where all items are recommended equally often, 0 where one item is all there is."""
    # G = 1 - sum over k = 1..n of (2k - n - 1) c_k / ((n - 1) sum c), c ascending
    return 1 - corrected_gini(counts) if counts.any() else 0.0


def gini_standard(counts: LongVector) -> float:
    """The Gini coefficient: 0 where all items are recommended equally often, (n - 1) / n where one item is all."""
    n = len(counts)
    return (1 - gini(counts)) * (n - 1) / n if counts.any() else 0.0


def popularity(items: IntMatrix, training_counts: LongVector) -> RealVector:
    """The mean number of training users of each list's items; not a number where a list is empty."""
    held = items >= 0
    return _means(np.where(held, training_counts[items], 0).sum(axis=1), held.sum(axis=1))


def novelty(items: IntMatrix, training_counts: LongVector, n_users: int) -> RealVector:
    """The mean share of training users who do not have a list's item; not a number where a list is empty."""
    return 1 - popularity(items, training_counts) / n_users


def profile_popularity(profiles: Profiles, training_counts: LongVector) -> RealVector:
    """The mean number of training users of the items that each user has; not a number where there are none."""
    running = np.concatenate(([0], np.cumsum(training_counts[profiles.items])))
    return _means(np.diff(running[profiles.starts]), profiles.sizes)


def popularity_lift(of_lists: RealVector, of_profiles: RealVector) -> float:
    """By how much lists are more popular than their users' profiles, over users who have both."""
    both = ~(np.isnan(of_lists) | np.isnan(of_profiles))
    if not both.any():
        return 0.0
    before = float(of_profiles[both].mean())
    return (float(of_lists[both].mean()) - before) / before


def _means(totals: LongVector, sizes: LongVector) -> RealVector:
    means: RealVector = np.divide(totals, sizes, out=np.full(len(totals), np.nan), where=sizes > 0)
    return means
