"""Dividing by the name of a way."""

import numpy as np
import pytest
from tests.worlds import two_tastes

import federank as fr
from federank.data.interactions import Interactions
from federank.data.splits import FOLDS, WAYS, Division, divide, refuse_empty_parts
from federank.errors import SettingError


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
