"""Search: the best on validation is chosen, the test part is not used, values that cannot be fitted are skipped."""

import numpy as np
import pytest
from tests.squares_worlds import some_people

import federank as fr
from federank.data.splits import split_random
from federank.errors import SettingError
from federank.methods.registry import METHODS, recommender_class

SPLIT = split_random(some_people(), test=0.2, validation=0.2)


def tune(split=SPLIT, **values):
    return fr.search(fr.Frugal, split, strategy="coordinate", metric="precision@10", **{"min_support": 1} | values)


def test_coordinate_search_returns_the_best_trial():
    trials = []
    result = tune(
        messages=2,
        encoding="float32",
        factors=[2, 4, 8],
        shrinkage=[0.5, 0.9],
        tried=lambda values, value: trials.append((dict(values), value)),
    )
    assert result.best == max(value for _, value in trials) >= result.first
    assert (result.chosen, result.best) in trials
    assert len(result.table) == len(trials) == len({tuple(values.items()) for values, _ in trials})
    again = fr.Frugal(**result.settings).fit(SPLIT.train)
    assert fr.evaluate(again, SPLIT.development, at=10).means["precision@10"] == pytest.approx(result.best)


def test_search_ignores_the_test_part():
    emptied = fr.split_given(SPLIT.train, SPLIT.test.take(np.arange(1)), SPLIT.validation)
    one, two = (tune(split, messages=1, factors=[2, 4]) for split in (SPLIT, emptied))
    assert one.as_dict() == two.as_dict()


def test_defaults_that_cannot_be_fitted_are_an_error():
    with pytest.raises(SettingError, match="31"):
        tune(factors=31, shrinkage=[0.9])


def test_searched_settings_are_settings_of_the_method():
    searched = [kind for kind in map(recommender_class, METHODS) if kind.searched]
    assert fr.Frugal in searched
    for kind in searched:
        for setting, values in kind.searched.items():
            for value in values:
                kind(**{setting: value})
