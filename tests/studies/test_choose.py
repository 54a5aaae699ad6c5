"""How a study chooses settings: over complete curves, and by halving."""

import pytest
from tests.studies.worlds import small_study

from federank.errors import SettingError
from federank.studies.plan import plan_study, rungs, within_chance
from federank.studies.results import Point, RunRecord
from federank.studies.run import Choice, NoChoice, best_of_sweep, choose, search_state


def told(case, curves, metric="precision@5"):
    """Lines of a case's choosing runs, with these curves in the order of the candidates."""
    runs = [run for runs in case.candidates for run in runs]
    lines = {}
    for run, curve in zip(runs, curves, strict=True):
        if isinstance(curve, str):
            lines[run.id] = RunRecord(id=run.id, status="failed", reason=curve)
        else:
            points = [Point(epoch, {metric: value}) for epoch, value in enumerate(curve, start=1)]
            lines[run.id] = RunRecord(id=run.id, curve=points, metrics={metric: max(curve)})
    return lambda run: lines[run.id]


@pytest.fixture
def case(tmp_path):
    return plan_study(small_study(tmp_path)).cases[1]


def test_the_best_point_of_all_curves_is_chosen(case):
    found = choose(case, told(case, [[0.1, 0.3, 0.2], [0.2, 0.2, 0.29]]))
    assert found == Choice({"learning_rate": 0.05}, 2, 0.3)


def test_ties_go_to_what_comes_first(case):
    assert choose(case, told(case, [[0.1, 0.3, 0.3], [0.3, 0.1]])) == Choice({"learning_rate": 0.05}, 2, 0.3)


def test_a_failed_combination_is_out(case):
    found = choose(case, told(case, ["It diverged.", [0.01]]))
    assert found == Choice({"learning_rate": 0.5}, 1, 0.01)


def test_where_all_have_failed_the_reason_is_reported(case):
    found = choose(case, told(case, ["It diverged.", "It diverged too."]))
    assert isinstance(found, NoChoice)
    assert "2" in found.reason


def test_several_seeds_choose_by_their_mean(tmp_path):
    study = small_study(tmp_path, choose={"metric": "precision@5", "epochs": 3, "seeds": [1, 2]})
    case = plan_study(study).cases[1]
    found = choose(case, told(case, [[0.9, 0.0], [0.0, 0.4, 0.99], [0.4, 0.5], [0.4, 0.6]]))
    assert found == Choice({"learning_rate": 0.5}, 2, 0.55)  # the third epoch was seen by one seed only


def test_of_errors_the_lowest_is_the_best(tmp_path):
    study = small_study(
        tmp_path,
        choose={"metric": "rmse", "epochs": 3},
        model=[{"method": "pmf", "grid": {"factors": [2, 3]}}],
    )
    case = plan_study(study).cases[0]
    found = choose(case, told(case, [[1.2, 0.9], [0.8, 1.0]], "rmse"))
    assert found == Choice({"factors": 3}, 1, -0.8)


def test_of_a_sweep_the_first_of_the_best_is_taken():
    choices = {4: Choice({}, 1, 0.1), 5: Choice({}, 1, 0.3), 6: Choice({}, 1, 0.3)}
    assert best_of_sweep(choices) == 5


@pytest.fixture
def race(tmp_path):
    """Six combinations that come through two rungs: one epoch for all, three for two of them, nine for the last."""
    rates = [0.01, 0.02, 0.03, 0.04, 0.05, 0.06]
    study = small_study(
        tmp_path,
        choose={"metric": "precision@5", "epochs": 9, "search": "halving"},
        model=[{"method": "fpl", "settings": {"factors": 4}, "grid": {"learning_rate": rates}}],
    )
    case = plan_study(study).cases[0]
    assert [(rung.candidates[0][0].epochs, rung.keep) for rung in case.rungs] == [(1, 2), (3, 1)]
    return case


def finished(stage, values):
    """Lines of these combinations of a stage, each with its best value, or with the reason of its failure."""
    lines = {}
    for number, value in values.items():
        run = stage[number][0]
        if isinstance(value, str):
            lines[run.id] = RunRecord(id=run.id, status="failed", reason=value)
        else:
            lines[run.id] = RunRecord(
                id=run.id, curve=[Point(1, {"precision@5": value})], metrics={"precision@5": value}
            )
    return lines


def test_who_is_behind_in_a_rung_is_tried_no_further(race):
    first, second = (rung.candidates for rung in race.rungs)
    lines = {}
    assert search_state(race, lambda run: lines.get(run.id)).runs == [runs[0] for runs in first]
    lines |= finished(first, {0: 0.1, 1: 0.7, 2: 0.2, 3: 0.9, 4: 0.1, 5: 0.3})
    assert search_state(race, lambda run: lines.get(run.id)).runs[6:] == [second[3][0], second[1][0]]
    lines |= finished(second, {3: 0.5, 1: 0.9})
    last = search_state(race, lambda run: lines.get(run.id))
    assert last.runs[8:] == [race.candidates[1][0]]
    assert last.last is None
    lines |= finished(race.candidates, {1: 0.95})
    assert choose(race, lambda run: lines.get(run.id)) == Choice({"learning_rate": 0.02}, 1, 0.95)


def test_where_the_leader_diverges_later_the_next_takes_its_turn(race):
    first, second = (rung.candidates for rung in race.rungs)
    lines = finished(first, {0: 0.1, 1: "It diverged.", 2: 0.2, 3: 0.9, 4: 0.1, 5: 0.7})
    lines |= finished(second, {3: 0.9, 5: 0.5})
    lines |= finished(race.candidates, {3: "It diverged."})
    waiting = search_state(race, lambda run: lines.get(run.id))
    assert waiting.runs[-1] == race.candidates[5][0]
    lines |= finished(race.candidates, {5: 0.55})
    assert choose(race, lambda run: lines.get(run.id)) == Choice({"learning_rate": 0.06}, 1, 0.55)


def test_where_all_fail_in_the_first_rung_there_is_no_choice(race):
    lines = finished(race.rungs[0].candidates, dict.fromkeys(range(6), "It diverged."))
    found = choose(race, lambda run: lines.get(run.id))
    assert isinstance(found, NoChoice)
    assert "6" in found.reason


def test_who_is_behind_by_chance_alone_is_tried_on(race):
    first, second = (rung.candidates for rung in race.rungs)
    lines = finished(first, {0: 0.1, 1: 0.85, 2: 0.8, 3: 0.9, 4: 0.1, 5: 0.3})  # 30 people, 5 places each
    assert search_state(race, lambda run: lines.get(run.id)).runs[6:] == [second[n][0] for n in (3, 1, 2)]


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


def test_a_larger_grid_is_sampled_and_a_smaller_one_tried_completely(tmp_path):
    chosen = {
        trials: [
            runs[0].chosen for runs in plan_study(small_study(tmp_path, choose={"trials": trials})).cases[1].candidates
        ]
        for trials in (1, 2, 100)
    }
    assert len(chosen[1]) == 1
    assert chosen[1][0] in chosen[100]
    assert chosen[2] == chosen[100]
    assert len(chosen[100]) == 2


def test_an_unknown_search_is_refused(tmp_path):
    with pytest.raises(SettingError):
        small_study(tmp_path, choose={"search": "guess"})


def test_what_is_behind_by_chance_alone_goes_on():
    # BPR-MF on Amazon after two epochs: the rate .05 wins in the end, and .005 never comes near.
    assert within_chance(0.00540, 0.00480, 18_350)
    assert not within_chance(0.00540, 0.00038, 18_350)
    assert within_chance(-1.00, -1.01, 100)
    assert not within_chance(-1.00, -1.05, 100)
