"""How far predicted ratings are off, and how far a federated method is from its centralised twin.

Predictions are clipped to the declared range of ratings, at test time only. MD and STDR compare one figure (MAE or
RMSE) over the folds of a federated and an unfederated run (Lin et al., FedRec, 2020): the difference of the means,
and the sum of the deviations, both in per cent of the unfederated mean. A federated method is as good as its twin
when MD is small against STDR. Deviations are those of the folds as a population.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from federank.arrays import RealVector
from federank.errors import DataError, SettingError

Values = Sequence[float] | NDArray[Any]


def mae(predicted: Values, true: Values, scale: tuple[float, float] | None = None) -> float:
    """The mean absolute error; `scale` is the range of ratings that predictions are clipped to."""
    return float(np.abs(_errors(predicted, true, scale)).mean())


def rmse(predicted: Values, true: Values, scale: tuple[float, float] | None = None) -> float:
    """The root of the mean squared error; `scale` is the range of ratings that predictions are clipped to."""
    return float(np.sqrt(np.square(_errors(predicted, true, scale)).mean()))


def mean_difference(federated: Values, unfederated: Values) -> float:
    """MD: how far the means over folds lie apart, in per cent of the unfederated mean."""
    ours, theirs = _folds(federated), _folds(unfederated)
    return float(abs(ours.mean() - theirs.mean()) / theirs.mean() * 100)


def standard_deviation_range(federated: Values, unfederated: Values) -> float:
    """STDR, the standard deviation range: the two deviations together, in per cent of the unfederated mean."""
    ours, theirs = _folds(federated), _folds(unfederated)
    return float((ours.std() + theirs.std()) / theirs.mean() * 100)


def _errors(predicted: Values, true: Values, scale: tuple[float, float] | None) -> RealVector:
    guesses, truths = np.asarray(predicted, dtype=np.float64), np.asarray(true, dtype=np.float64)
    if guesses.shape != truths.shape or guesses.ndim != 1:
        raise DataError(f"There are {guesses.size} predictions for {truths.size} ratings; one for each is needed.")
    if not truths.size:
        raise DataError("There are no ratings to predict; a test part with ratings is needed.")
    if np.isnan(guesses).any():
        raise DataError(f"{int(np.isnan(guesses).sum()):,} predictions are not numbers; every rating needs one.")
    if scale is not None:
        low, high = scale
        if not low < high:
            raise SettingError(f"The scale of ratings is {low:g} to {high:g}; the lower end must come first.")
        guesses = np.clip(guesses, low, high)
    return guesses - truths


def _folds(values: Values) -> RealVector:
    folds = np.asarray(values, dtype=np.float64)
    if not folds.size:
        raise DataError("There are no folds to compare; give the error of each fold.")
    return folds
