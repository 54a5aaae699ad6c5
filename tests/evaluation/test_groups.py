"""Metrics by user activity and item popularity."""

import numpy as np
import pytest

import federank as fr
from federank.evaluation.groups import activity_groups, group_means, popularity_groups


def test_users_are_cut_at_quartiles():
    assert activity_groups(np.array([1, 2, 3, 4, 5, 6, 7, 80])).tolist() == [1, 1, 2, 2, 3, 3, 4, 4]


def test_equal_users_share_a_group():
    assert len(np.unique(activity_groups(np.array([3, 3, 3, 3, 9])))) == 2


def test_groups_of_items_have_a_quarter_of_the_interactions():
    popularity = np.array([0, 1, 1, 1, 1, 2, 2, 4, 4])
    groups = popularity_groups(popularity)
    assert groups.tolist() == [0, 1, 1, 1, 1, 2, 2, 3, 3]
    assert popularity_groups(np.array([1] * 8 + [8, 8, 8])).tolist() == [1] * 8 + [2] * 3


def test_group_metrics_by_hand():
    train = [(0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2), (3, 0), (3, 1), (3, 2), (3, 3)]
    split = fr.split_given(train, [(0, 1), (1, 3), (2, 3), (3, 4)])
    lists = {0: [1], 1: [2], 2: [3], 3: []}
    found = fr.evaluate(lists, split, at=1)
    users = found.by_group.filter(by="activity")
    assert users["size"].to_list() == [1, 1, 1, 1]
    assert users["recall"].to_list() == [1, 0, 1, 0]
    assert np.average(users["ndcg"], weights=users["size"]) == pytest.approx(found.means["ndcg@1"])
    items = found.by_group.filter(by="popularity")
    assert items.select("least", "most").rows() == [(1, 2), (3, 3), (4, 4)]
    assert items["recall"].to_list() == [0.5, 1, None]  # the item that training lacks is in no group
    assert group_means(found.by_group)["recall@1/popularity-2"] == 1
