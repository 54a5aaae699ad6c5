"""Splits: the papers' hold-out, its ties, and what no split may do."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.worlds import two_tastes

import federank as fr
from federank.data.interactions import Interactions
from federank.data.loading import load
from federank.data.splits import (
    FOLDS,
    WAYS,
    Division,
    Split,
    divide,
    refuse_empty_parts,
    split_folds,
    split_given,
    split_leave_last_out,
    split_random,
    split_strong,
    split_temporal,
    split_temporal_global,
)
from federank.errors import BadSplit, DataError, FedeRankError, SettingError


def history(pairs, times=None):
    users, items = zip(*pairs, strict=True)
    return Interactions.from_columns(np.array(users), np.array(items), times=times)


@st.composite
def histories(draw):
    pairs = draw(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 9)), min_size=2, unique=True))
    times = draw(st.lists(st.integers(0, 5), min_size=len(pairs), max_size=len(pairs)))
    return history(pairs, times)


def named_pairs(part):
    return set(zip(part.user_ids[part.users].tolist(), part.item_ids[part.items].tolist(), strict=True))


def pairs_of(part):
    return set(zip(part.users.tolist(), part.items.tolist(), strict=True))


SPLITTERS = {
    "temporal": lambda data: split_temporal(data, test=0.4, validation=0.3),
    "leave-last-out": lambda data: split_leave_last_out(data, validation=True),
    "random": lambda data: split_random(data, test=0.4, validation=0.3, seed=3),
    "fold": lambda data: split_folds(data, folds=2, seed=3)[0],
}


@pytest.mark.parametrize("way", SPLITTERS)
@given(data=histories())
def test_every_interaction_lands_in_exactly_one_part(way, data):
    split = SPLITTERS[way](data)
    parts = [split.train, split.test, *([split.validation] if split.validation is not None else [])]
    assert sum(len(part) for part in parts) == len(data)
    assert set.union(*(pairs_of(part) for part in parts)) == pairs_of(data)


@pytest.mark.slow
@given(data=histories(), share=st.floats(0, 0.99))
def test_each_user_gives_the_floor_of_their_share(data, share):
    split = split_temporal(data, test=share)
    np.testing.assert_array_equal(split.test.profiles.sizes, np.floor(share * data.profiles.sizes))


@pytest.mark.slow
@given(data=histories())
def test_no_user_is_tested_on_something_older_than_what_was_learnt(data):
    split = split_temporal(data, test=0.5)
    for user in range(data.n_users):
        learnt = split.train.times[split.train.users == user]
        tested = split.test.times[split.test.users == user]
        assert not len(tested) or learnt.max() <= tested.min()


def test_of_one_moment_the_first_item_is_held_out_first():
    split = split_temporal(history([(0, 10), (0, 20), (0, 30), (0, 40), (0, 50)], times=[7] * 5), test=0.4)
    assert split.test.item_ids[split.test.items].tolist() == [10, 20]


def test_validation_is_cut_from_the_newest_of_training():
    split = split_temporal(history([(0, item) for item in range(10)], times=range(10)), test=0.2, validation=0.25)
    assert split.test.times.tolist() == [8, 9]
    assert split.validation.times.tolist() == [6, 7]


def test_one_moment_divides_every_user_in_the_global_form():
    data = history([(user, item) for user in range(3) for item in range(4)], times=list(range(12)))
    split = split_temporal_global(data, test=0.25, validation=0.25)
    assert (
        split.train.times.max() < split.validation.times.min() <= split.validation.times.max() < split.test.times.min()
    )
    assert len(split.test) == 3


def test_interactions_of_the_dividing_moment_stay_together():
    split = split_temporal_global(history([(0, 0), (0, 1), (1, 0), (1, 1)], times=[1, 5, 5, 5]), test=0.25)
    assert len(split.test) == 3


def test_a_user_with_one_interaction_keeps_it_for_training():
    split = split_leave_last_out(history([(0, 0), (1, 0), (1, 1)], times=[1, 2, 3]))
    assert split.train.users.tolist() == [0, 1]


def test_folds_are_disjoint_and_cover_everything_and_follow_the_seed():
    data = history([(user, item) for user in range(5) for item in range(5)])
    folds = split_folds(data, folds=5, seed=1)
    assert set.union(*(pairs_of(fold.test) for fold in folds)) == pairs_of(data)
    assert sum(len(fold.test) for fold in folds) == len(data)
    again = split_folds(data, folds=5, seed=1)
    other = split_folds(data, folds=5, seed=2)
    assert pairs_of(folds[0].test) == pairs_of(again[0].test) != pairs_of(other[0].test)


def test_a_split_whose_parts_overlap_is_refused():
    data = history([(0, 0), (0, 1), (1, 0)])
    with pytest.raises(BadSplit, match="2"):
        Split(data, data.take([0, 2]))
    with pytest.raises(BadSplit):
        Split(data.take([0]), data.take([1]), data.take([1, 2]))


def test_parts_that_number_differently_are_matched_by_their_ids():
    train = pl.DataFrame({"user": ["ann", "bob", "bob"], "item": [7, 7, 3], "rating": [1.0, 2.0, 3.0]})
    split = split_given(train, [("ann", 3), ("ann", 9)])
    assert split.train.user_ids.tolist() == split.test.user_ids.tolist() == ["ann", "bob"]
    assert split.train.item_ids.tolist() == split.test.item_ids.tolist() == [3, 7, 9]
    assert named_pairs(split.train) == {("ann", 7), ("bob", 7), ("bob", 3)}
    assert named_pairs(split.test) == {("ann", 3), ("ann", 9)}
    assert split.train.ratings.tolist() == [1.0, 3.0, 2.0]
    assert split.unseen_items.tolist() == [2]
    assert split_given(load([(1, 5), (2, 5)]), history([(9, 9)])).test.n_users == 3
    with pytest.raises(BadSplit):
        split_given(train, [("ann", 7)])


def test_ids_that_are_text_in_one_part_and_numbers_in_the_other_are_the_same():
    split = split_given([(1, 5), (2, 6), (10, 5)], [("10", "6"), ("2", "5")])
    assert named_pairs(split.test) == {("10", "6"), ("2", "5")}
    assert named_pairs(split.train) == {("1", "5"), ("2", "6"), ("10", "5")}


def test_a_split_knows_the_items_that_training_never_shows():
    split = split_temporal(history([(0, 1), (0, 2), (0, 3), (0, 4), (0, 5)], times=[1, 2, 3, 4, 5]), test=0.2)
    assert split.train.item_ids[split.unseen_items].tolist() == [5]


def test_settings_are_chosen_on_validation_never_on_test():
    split = split_temporal(history([(0, item) for item in range(10)], times=range(10)), test=0.2, validation=0.25)
    assert pairs_of(split.development.test) == pairs_of(split.validation)
    with pytest.raises(BadSplit):
        _ = split_temporal(history([(0, 1), (0, 2)], times=[1, 2])).development


@pytest.mark.parametrize("share", [-0.1, 1.0, float("nan")])
def test_a_share_outside_its_range_is_refused(share):
    with pytest.raises(SettingError, match=r"0.*1"):
        split_temporal(history([(0, 1)], times=[1]), test=share)


def test_what_has_no_times_cannot_be_split_by_time():
    with pytest.raises(DataError):
        split_temporal(history([(0, 1), (0, 2)]))


@pytest.mark.parametrize(
    ("name", "rows", "catalogue"),
    [
        ("amazon-digital-music", 61_408, 34_526),
        ("ml-1m", 802_553, 3_666),
        ("foursquare-italy", 54_088, 25_498),
    ],
)
def test_the_papers_training_parts_come_out_to_the_row(real_data, monkeypatch, name, rows, catalogue):
    from federank.data.loading import load

    monkeypatch.setenv("FEDERANK_DATA", str(real_data))
    split = split_temporal(load(name).keep_users(min_interactions=20))
    assert len(split.train) == rows
    assert np.count_nonzero(split.train.popularity) == catalogue


def test_strong_split_holds_out_users():
    data = history([(user, item) for user in range(10) for item in range(user, user + 5)])
    split = split_strong(data, 0.2, validation_users=2, fold_in=0.6)
    trained, tested = set(split.train.users.tolist()), set(split.test.users.tolist())
    assert (len(trained), len(tested), len(set(split.validation.users.tolist()))) == (6, 2, 2)
    assert not trained & tested
    known = set(split.fold_in.users.tolist())
    assert known == tested | set(split.validation.users.tolist())
    assert np.bincount(split.fold_in.users).max() == 3
    assert np.bincount(split.test.users).max() == 2
    assert split.development.fold_in is split.fold_in


def test_strong_split_by_ids():
    data = history([(user, item) for user in range(4) for item in range(5)])
    split = split_strong(data, [1, 3])
    assert set(split.test.users.tolist()) == {1, 3}
    assert len(split.test) == 2


@pytest.mark.parametrize("held_out", [0, 4, 1.0, -1, [7], "1", True])
def test_strong_split_refuses(held_out):
    data = history([(user, item) for user in range(4) for item in range(5)])
    with pytest.raises(FedeRankError):
        split_strong(data, held_out)


def test_strong_split_leaves_out_short_histories():
    data = history([(0, 0), (1, 0), (1, 1), (1, 2), (1, 3), (1, 4)])
    assert not len(split_strong(data, [0]).test)


def test_a_fold_in_part_may_not_overlap_the_test():
    data = history([(0, 0), (1, 1)])
    with pytest.raises(BadSplit):
        Split(data.take([0]), data.take([1]), fold_in=data.take([1]))


def test_given_parts_as_adjacency_lists(tmp_path):
    (tmp_path / "train.txt").write_text("0 1 2 3\n1 2\n2 5 5 6 7\n")
    (tmp_path / "test.txt").write_text("0 4 5\n3 1 2\n")
    split = split_given(tmp_path / "train.txt", tmp_path / "test.txt")
    assert named_pairs(split.test) == {(0, 4), (0, 5), (3, 1), (3, 2)}
    assert len(split.train) == 7
    assert split.train.repeats_left_out == 1
    assert split.test.ratings is None


@pytest.fixture
def data():
    tastes = two_tastes()
    return Interactions.from_columns(tastes.users, tastes.items, times=np.arange(len(tastes)))


@pytest.mark.parametrize(
    ("division", "same"),
    [
        (Division(), lambda data: fr.split_temporal(data, 0.2)),
        (Division(test=0.3, validation=0.2), lambda data: fr.split_temporal(data, 0.3, 0.2)),
        (Division(way="global-temporal", test=0.3), lambda data: fr.split_temporal_global(data, 0.3)),
        (Division(way="leave-last-out"), lambda data: fr.split_leave_last_out(data)),
        (
            Division(way="leave-last-out", validation=1),
            lambda data: fr.split_leave_last_out(data, validation=True),
        ),
        (Division(way="random", test=0.4, seed=7), lambda data: fr.split_random(data, 0.4, seed=7)),
        (Division(way="folds", folds=3, seed=2), lambda data: fr.split_folds(data, 3, 2)),
    ],
)
def test_a_way_by_its_name_is_the_function_of_that_name(data, division, same):
    wanted = same(data)
    wanted = wanted if isinstance(wanted, list) else [wanted]
    found = divide(data, division)
    for one, other in zip(found, wanted, strict=True):
        assert one.how == other.how
        assert one.train.fingerprint == other.train.fingerprint
        assert one.test.fingerprint == other.test.fingerprint
        assert (one.validation is None) == (other.validation is None)


def test_every_way_can_be_asked_for(data):
    for way in WAYS:
        assert len(divide(data, Division(way=way))) == 1
    assert len(divide(data, Division(way=FOLDS, folds=4))) == 4


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"way": "sideways"}, "The way of a split is 'sideways'; it can be temporal or global-temporal or"),
        ({"way": "folds"}, "folds is None; an integer, 2 or more, is needed"),
        ({"way": "random", "folds": 5}, "folds go with way = .folds.; the way of this split is 'random'"),
    ],
)
def test_what_cannot_be_is_refused(asked, sentence):
    with pytest.raises(SettingError, match=sentence):
        Division(**asked)


def test_a_part_that_would_be_empty_is_refused(data):
    division = Division(test=0.2, validation=0.01)
    with pytest.raises(SettingError):
        refuse_empty_parts(divide(data, division), division)
    refuse_empty_parts(divide(data, Division()), Division())


def test_in_mirrored_time_the_oldest_are_held_out(data):
    [forward], [backward] = divide(data, Division(test=0.2)), divide(data, Division(test=0.2, mirrored=True))
    times = dict(zip(zip(data.users, data.items, strict=True), data.times, strict=True))
    for split, held_out in ((forward, max), (backward, min)):
        for user in range(data.n_users):
            own = [time for (whose, _), time in times.items() if whose == user]
            mine = split.test.users == user
            assert times[user, split.test.items[mine][0]] in sorted(own, reverse=held_out is max)[: mine.sum()]
            assert held_out(own) in [times[user, item] for item in split.test.items[mine]]
    assert backward.how.endswith("time mirrored")


def test_mirrored_time_is_part_of_what_a_division_is_and_the_usual_one_says_nothing_of_it():
    assert Division(mirrored=True).as_dict() == Division().as_dict() | {"mirrored": True}
    assert "mirrored" not in Division().as_dict()
    with pytest.raises(SettingError, match="about time"):
        Division(way="random", mirrored=True)
