"""A search: what is best on validation is found, the test part is never looked at, what cannot be is passed over."""

import numpy as np
import pytest
from tests.squares_worlds import some_people

import federank as fr
from federank.data.splits import split_random
from federank.errors import SettingError
from federank.evaluation.search import search

SPLIT = split_random(some_people(), test=0.2, validation=0.2)


def test_what_is_found_is_the_best_of_what_was_tried():
    heard = []
    found = search(
        fr.Frugal,
        {"messages": 2, "broadcast": "float32"},
        SPLIT.development,
        {"factors": (2, 4, 8), "shrinkage": (0.5, 0.9)},
        tried=lambda values, value: heard.append((dict(values), value)),
    )
    assert found.best == max(value for _, value in heard) >= found.usual
    assert (found.settings, found.best) in heard
    assert found.tried == len(heard) == len({tuple(values.items()) for values, _ in heard})
    again = fr.Frugal(messages=2, broadcast="float32", **found.settings).fit(SPLIT.train)
    assert fr.evaluate(again, SPLIT.development, at=10).means["precision@10"] == pytest.approx(found.best)


def test_a_search_does_not_see_the_test_part():
    other = split_random(some_people(), test=0.2, validation=0.2)
    emptied = fr.split_given(other.train, other.test.take(np.arange(1)), other.validation)
    one, two = (
        search(fr.Frugal, {"messages": 1}, split.development, {"factors": (2, 4)}) for split in (SPLIT, emptied)
    )
    assert one == two


def test_values_that_cannot_be_are_passed_over():
    found = search(fr.Frugal, {"messages": 1}, SPLIT.development, {"factors": (4, 1000)})
    assert found.settings["factors"] != 1000


def test_settings_that_cannot_be_learnt_with_are_an_error_and_no_search():
    with pytest.raises(SettingError, match="factors is 31"):
        search(fr.Frugal, {"factors": 31}, SPLIT.development, {"shrinkage": (0.9,)})


def test_a_search_for_what_is_given_already_is_refused():
    with pytest.raises(SettingError):
        search(fr.Frugal, {"factors": 3}, SPLIT.development, {"factors": (2, 4)})


def test_every_method_that_can_be_searched_names_settings_that_it_has():
    for loss in ("squares", "pairs"):
        model = fr.Frugal(loss=loss)
        for setting, values in type(model).searched.items():
            for value in values:
                fr.Frugal(loss=loss, **{setting: value})
