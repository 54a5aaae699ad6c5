"""Successive halving: which combinations are tried for how long."""

import pytest
from tests.studies.worlds import small_study

from federank.errors import SettingError
from federank.studies.plan import plan_study, rungs, within_chance

HALVING = {"metric": "precision@5", "epochs": 9, "search": "halving"}


def test_a_third_goes_on_to_three_times_the_epochs_until_one_is_left():
    assert rungs(3, 20) == [(2, 1)]
    assert rungs(9, 20) == [(2, 3), (6, 1)]
    assert rungs(36, 50) == [(5, 12), (15, 4), (45, 2)]


def test_where_there_is_nothing_to_halve_nothing_is_tried_first():
    assert rungs(1, 20) == []
    assert rungs(9, 1) == []


def test_a_plan_knows_how_many_runs_halving_takes(tmp_path):
    plan = plan_study(small_study(tmp_path, choose=HALVING))
    case = plan.cases[1]
    assert [(rung.candidates[0][0].epochs, rung.keep) for rung in case.rungs] == [(1, 1)]
    assert [run.epochs for run in case.expected] == [1, 1, 9]  # two short ones, and one to the end
    assert plan.count == 1 + 2 * (3 + 2)


def test_the_runs_that_go_to_the_end_are_those_of_the_complete_grid(tmp_path):
    halved, whole = (
        plan_study(small_study(tmp_path, choose=HALVING | {"search": search})).cases[1]
        for search in ("halving", "grid")
    )
    assert halved.candidates == whole.candidates  # so that what one has found, the other need not do again
    assert whole.rungs == ()


def test_an_unknown_search_is_refused(tmp_path):
    with pytest.raises(SettingError):
        small_study(tmp_path, choose={"search": "guess"})


def test_what_is_behind_by_chance_alone_goes_on():
    # BPR-MF on Amazon after two epochs: the rate .05 wins in the end, and .005 never comes near.
    assert within_chance(0.00540, 0.00480, 18_350)
    assert not within_chance(0.00540, 0.00038, 18_350)
    assert within_chance(-1.00, -1.01, 100)
    assert not within_chance(-1.00, -1.05, 100)
