"""Extras: what some figures need of a run beyond its metrics.

Which of them a study needs follows from its figures and tables (`wanted_extras` in plan/wishes.py); what nobody draws
is not computed. All of it goes into the run's line, so everything is small:

    communication   cce, rounds_per_epoch, normalised_freshness: item vectors per epoch, by FPL's formula (2020, 3.2)
    complexity      what a round costs a device and the server, counted, and by the paper's formulas (FedRec 2020, 3.3)
    item_updates    share of the updates that each of the 1,000 most updated items got (FedeRank 2021, Figure 2)
    popularity      share of the recommendations of the 250 most recommended items (`recommended`), beside the share of
                    the feedback of the 250 most popular ones (`feedback`; FedeRank 2021, Figure 3)

Shares are sorted, the largest first: it is the shape of the curve that is looked at, not which item it was.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from federank.arrays import LongVector
from federank.data.splits import Split
from federank.errors import SettingError
from federank.evaluation.metrics.exposure import count_items
from federank.protocol.pairs.communication import communication_cost, conversations, freshness, normalised_freshness
from federank.recommenders.federated_pairs import FederatedPairs
from federank.recommenders.methods.fcf import FCF
from federank.recommenders.methods.ratings import RatingFactors
from federank.recommenders.recommender import Recommender
from federank.studies.plan.wishes import EXTRAS

MOST_UPDATED, MOST_RECOMMENDED = 1_000, 250


def extras(model: Recommender, split: Split, wanted: Collection[str], at: int = 10) -> dict[str, Any]:
    """The wanted extras of a fitted model; those its method cannot have (costs of a centralised one) are left out."""
    unknown = set(wanted) - EXTRAS
    if unknown:
        raise SettingError(f"There is no extra {sorted(unknown)[0]!r}; there are {', '.join(sorted(EXTRAS))}.")
    found: dict[str, Any] = {}
    if isinstance(model, FederatedPairs):
        if "communication" in wanted:
            found |= communication(model)
        if "item_updates" in wanted:
            from federank.studies.run.item_updates import count_item_updates

            found["item_updates"] = largest_shares(count_item_updates(model), MOST_UPDATED)
    if "complexity" in wanted and isinstance(model, RatingFactors | FCF):
        found |= model.complexity()
    if "popularity" in wanted:
        found |= popularity(model, split, at)
    return found


def communication(model: FederatedPairs) -> dict[str, float]:
    """What an epoch costs by the papers' formula, and how fresh it keeps the shared model."""
    data = model.training
    recipe = model.recipe(data)
    # The papers' CCE rounds neither T = X+/|U| nor X+/|U-|; the rounds of an epoch are whole ones, as they are played.
    conversed = conversations(recipe.clients_per_round, len(data) / recipe.clients_per_round)
    triples, pi = (float(np.mean(of_all[recipe.participants])) for of_all in (recipe.triples, recipe.pi))
    if model.pairs().triples == "mean":
        triples = len(data) / data.n_users
    return {
        "cce": communication_cost(conversed, data.n_items, triples, pi),
        "rounds_per_epoch": freshness(recipe.rounds_per_epoch),
        "normalised_freshness": normalised_freshness(recipe.rounds_per_epoch, len(data)),
    }


def popularity(model: Recommender, split: Split, at: int) -> dict[str, list[float]]:
    """How recommendations and feedback spread over items, the most frequent first."""
    users = np.arange(model.training.n_users, dtype=np.int32)
    items = model.recommend_numbers(users, at).items
    counts = count_items(items, model.training.n_items)
    return {
        "recommended": largest_shares(counts, MOST_RECOMMENDED),
        "feedback": largest_shares(split.train.popularity, MOST_RECOMMENDED),
    }


def largest_shares(counts: LongVector, most: int) -> list[float]:
    """What share of the whole the most frequent ones have, the largest first; six digits are enough for a curve."""
    whole = max(1, int(counts.sum()))
    return [float(f"{count / whole:.6g}") for count in np.sort(counts)[::-1][:most]]
