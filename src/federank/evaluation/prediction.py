"""How far a model's predicted ratings are off, on what it has not seen; and figures over folds.

Every rating of the test part counts, also where the model had nothing to predict from: such predictions are its
stated fallbacks (recommenders/predicting.py), and are counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from federank.checks import instance
from federank.data.interactions import Interactions
from federank.errors import DataError
from federank.evaluation.metrics.rating import mae, rmse
from federank.recommenders.predicting import PredictsRatings


class PredictionErrors(NamedTuple):
    """What a test on ratings found."""

    mae: float
    rmse: float
    ratings: int
    unrated_items: int
    unknown_users: int

    @property
    def notes(self) -> list[str]:
        """Sentences on predictions that were fallbacks, where there were any."""
        content = {
            f"Test ratings of items never rated in training, predicted as the user's mean: {self.unrated_items:,}.": (
                self.unrated_items
            ),
            f"Test ratings of users without any in training, predicted as the mean of all: {self.unknown_users:,}.": (
                self.unknown_users
            ),
        }
        return [sentence for sentence, count in content.items() if count]


def prediction_errors(model: PredictsRatings, test: Interactions) -> PredictionErrors:
    """MAE and RMSE of a model on the ratings of a test part."""
    instance("model", model, PredictsRatings, "a model that predicts ratings, such as fr.PMF,")
    instance("test", test, Interactions, "the test part of a split")
    if test.ratings is None:
        raise DataError(f"{test.name} has no ratings to compare predictions with.")
    found = model.predict_all(test.user_ids[test.users], test.item_ids[test.items])
    scale = (model.settings.lowest, model.settings.highest)
    return PredictionErrors(
        mae(found.values, test.ratings, scale),
        rmse(found.values, test.ratings, scale),
        len(test),
        found.unrated_items,
        found.unknown_users,
    )


def over_folds(figures: Sequence[dict[str, float]]) -> dict[str, float]:
    """The mean of every figure over the folds, and as `name_std` its deviation, of the folds as a population."""
    names = [name for name in figures[0] if all(name in fold for fold in figures)]
    means = {name: float(np.mean([fold[name] for fold in figures])) for name in names}
    return means | {f"{name}_std": float(np.std([fold[name] for fold in figures])) for name in names}
