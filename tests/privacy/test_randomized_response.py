"""Randomised response: randomized-response alone, right together."""

import math

import numpy as np
import pytest

from federank.privacy.accountant import EPSILON, TRUTH, answered, estimate


def test_an_answer_is_the_truth_three_times_in_four():
    draws = (np.arange(1000) + 0.5) / 1000
    for truth in (True, False):
        assert np.mean([answered(truth, draw) == truth for draw in draws]) == pytest.approx(TRUTH)
    assert math.exp(EPSILON) == pytest.approx(3.0), "and so no answer is worth more than that to anyone who reads it"


def test_many_answers_give_the_share_of_true_yes():
    rng = np.random.default_rng(1)
    truths = rng.random(40_000) < 0.3
    said = [answered(bool(truth), draw) for truth, draw in zip(truths, rng.random(len(truths)), strict=True)]
    found = estimate(len(said), sum(said))
    assert found.share == pytest.approx(truths.mean(), abs=0.02)
    assert found.low < truths.mean() < found.high
    assert found.high - found.low < 0.03


def test_few_answers_have_a_wide_interval_and_none_of_width_zero():
    few, many = estimate(4, 2), estimate(400, 200)
    assert few.high - few.low > 1 > many.high - many.low
    assert estimate(1, 0).high - estimate(1, 0).low > 1
