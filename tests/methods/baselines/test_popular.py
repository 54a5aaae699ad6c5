"""Scores that know nothing about the person."""

import numpy as np

from federank.methods.baselines.popular import popularity_scores, random_scores


def test_popularity_is_a_share_and_equal_counts_have_equal_scores():
    scores = popularity_scores(np.array([3, 1, 1, 5]))
    np.testing.assert_allclose(scores, [0.3, 0.1, 0.1, 0.5], rtol=1e-6)
    assert scores[1] == scores[2]


def test_a_users_random_scores_do_not_depend_on_who_else_is_asked_about():
    together = random_scores(4, np.arange(5, dtype=np.int32), 50)
    for user in range(5):
        np.testing.assert_array_equal(random_scores(4, np.array([user], dtype=np.int32), 50)[0], together[user])


def test_random_scores_differ_between_users_and_between_seeds():
    one = random_scores(1, np.array([0, 1], dtype=np.int32), 100)
    other = random_scores(2, np.array([0], dtype=np.int32), 100)
    assert not np.array_equal(one[0], one[1])
    assert not np.array_equal(one[0], other[0])
