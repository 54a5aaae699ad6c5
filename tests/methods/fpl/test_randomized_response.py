"""Randomized response keeps its epsilon: measured on what the engine lets a server see, with a stated confidence.

Half of a population has item 0 in its history and the other half has not; all else is alike. Whatever a server sees of
a device over a full run must be at most e^epsilon times as likely with the item as without it, and the other way
round. For a list of things it could look at, both probabilities are enclosed (Clopper and Pearson, 1934) so tightly
that all bounds hold together with a confidence of 99.9 %; even the worst of the enclosed values must keep the
guarantee.
"""

import math

import numpy as np
import pytest
import scipy
from tests.worlds import federation

from federank.data.interactions import Interactions
from federank.methods.fpl.communication import replay
from federank.methods.fpl.kernels import BOTH

PEOPLE, ITEMS, ROUNDS, TRIPLES = 60_000, 16, 12, 4
CONFIDENCE = 0.999


def population():
    """Even people have items 0 to 4, odd people items 1 to 4; a last person makes the catalogue complete."""
    rows = [(user, item) for user in range(PEOPLE) for item in range(user % 2, 5)]
    rows += [(PEOPLE, item) for item in range(0, ITEMS, 2)] + [(PEOPLE + 1, item) for item in range(1, ITEMS, 2)]
    return Interactions.from_columns([u for u, _ in rows], [i for _, i in rows])


def seen(established):
    """How often a server sees each item of each device as liked and as compared with: people x items, twice."""
    liked, compared = (np.zeros((PEOPLE + 2, ITEMS), dtype=np.int32) for _ in range(2))
    for pairs in replay(established.recipe, established.histories, ITEMS, range(ROUNDS)):
        arrived = pairs.arrives == BOTH
        np.add.at(liked, (pairs.users[arrived], pairs.positives[arrived]), 1)
        np.add.at(compared, (pairs.users, pairs.negatives), 1)
    return liked[:PEOPLE], compared[:PEOPLE]


def events(liked, compared):
    """Things that a server could look at, each true or false of every device."""
    yield "item 0 was seen as liked", liked[:, 0] > 0
    yield "item 0 was never seen as liked", liked[:, 0] == 0
    yield "item 0 was compared with", compared[:, 0] > 0
    yield "item 0 was seen as liked often", liked[:, 0] >= 9
    yield "item 0 is liked most", liked.argmax(axis=1) == 0
    yield "item 0 never came at all", (liked[:, 0] + compared[:, 0]) == 0
    for count in range(2, 9):
        yield f"{count} items were seen as liked", (liked > 0).sum(axis=1) == count
    for other in (1, 4, 5, 15):
        yield f"items 0 and {other} were seen as liked", (liked[:, 0] > 0) & (liked[:, other] > 0)
        yield f"item 0 was seen as liked, {other} was not", (liked[:, 0] > 0) & (liked[:, other] == 0)


def enclosed(happened, error):
    """A range that holds an event's probability, but for this chance of error."""
    n, k = len(happened), int(happened.sum())
    low = scipy.stats.beta.ppf(error / 2, k, n - k + 1) if k else 0.0
    return low, scipy.stats.beta.ppf(1 - error / 2, k + 1, n - k) if k < n else 1.0


@pytest.mark.slow
@pytest.mark.parametrize(("pi", "epsilon"), [(0.5, 1.0), (0.8, 2.0), (0.4, 0.7)])
def test_nothing_seen_of_an_item_is_more_than_e_to_the_epsilon_times_as_likely_if_it_is_liked(pi, epsilon):
    established = federation(
        population(),
        pi=pi,
        sharing="randomized-response",
        item_epsilon=epsilon,
        clients_per_round="all",
        triples=TRIPLES,
    )
    looked_at = list(events(*seen(established)))
    likely = [(name, happened) for name, happened in looked_at if happened.mean() > 0.1]
    assert len(likely) >= 9
    for name, happened in likely:
        error = (1 - CONFIDENCE) / (2 * len(likely))
        with_item, without = enclosed(happened[::2], error), enclosed(happened[1::2], error)
        ratio = max(with_item[1] / without[0], without[1] / with_item[0])
        assert ratio < math.exp(epsilon), f"{name}: {ratio:.3f} times as likely"


@pytest.mark.slow
def test_without_deniability_the_same_measure_finds_the_leak():
    # The measure can fail: with fixed-subset sharing, who is seen with item 0 has it, for sure.
    established = federation(population(), pi=0.5, sharing="fixed-subset", clients_per_round="all", triples=TRIPLES)
    happened = dict(events(*seen(established)))["item 0 was seen as liked"]
    assert happened[::2].mean() > 0.4
    assert not happened[1::2].any()


@pytest.mark.slow
def test_from_the_complete_history_decoys_would_not_be_randomized_response():
    # Why randomized response insists on the shared basis: negatives that avoid the history betray it. The engine
    # is handed the history to draw negatives from, and what is compared with item 0 tells who has it.
    data = population()
    settings = {"sharing": "fixed-subset", "basis": "history", "clients_per_round": "all", "triples": TRIPLES}
    established = federation(data, pi=0.5, **settings)
    compared = dict(events(*seen(established)))["item 0 was compared with"]
    assert compared[1::2].mean() > 0.5
    assert not compared[::2].any()
