import json
from dataclasses import replace

import numpy as np
import pytest
from tests.studies.worlds import Here, Silent, carried_out, content, small_data, small_study

from federank.data.loading import load
from federank.data.splits import split_temporal
from federank.errors import BadFile
from federank.evaluation.evaluate import evaluate
from federank.methods.fpl.recommender import FPL
from federank.studies.plan import rungs, within_chance
from federank.studies.results import Results, read_record, record_as_json
from federank.studies.run import run_study


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """The results of a study, to be looked at and not to be added to."""
    folder = tmp_path_factory.mktemp("study")
    return carried_out(small_study(folder), folder / "r")[0]


def test_every_row_of_the_study_has_its_test_runs(done):
    tested = [(line.group, line.swept.get("pi"), line.seed) for line in done.records() if line.task == "test"]
    best = tested[-1][1]
    assert tested == [
        ("Popular", None, 1),
        *[("FPL", pi, seed) for pi in (0.0, 1.0) for seed in (1, 2)],
        *[("FPL, best pi", best, seed) for seed in (1, 2)],
    ]
    assert all(line.status == "done" for line in done.records())


def test_a_test_run_is_what_its_settings_say_trained_on_the_complete_training_part(done, tmp_path):
    line = next(line for line in done.records() if line.task == "test" and line.swept == {"pi": 1.0})
    split = split_temporal(load(small_data(tmp_path)), 0.2)
    model = FPL(**line.settings, epochs=line.epoch, seed=line.seed).fit(split.train)
    found = evaluate(model, split, at=5)
    assert line.metrics["precision@5"] == pytest.approx(found.means["precision@5"])
    assert line.chosen_on == "validation"
    assert line.data_fingerprint == load(small_data(tmp_path)).fingerprint
    kept = done.users(line.id)
    assert kept["precision@5"].to_list() == found.per_user["precision@5"].to_list()
    assert line.bytes.up > 0


def test_the_chosen_values_are_the_best_on_validation_and_never_saw_the_test_part(done, tmp_path):
    split = split_temporal(load(small_data(tmp_path)), 0.2, 0.2).development
    for line in done.records():
        if line.task == "choose":
            assert line.part == "validation"
            model = FPL(**line.settings, epochs=line.epoch, seed=line.seed).fit(split.train)
            assert line.metrics["precision@5"] == pytest.approx(evaluate(model, split, at=5).means["precision@5"])
    for pi in (0.0, 1.0):
        choosing = [one for one in done.records() if one.task == "choose" and one.swept == {"pi": pi}]
        winner = max(choosing, key=lambda one: one.metrics["precision@5"])
        tested = next(one for one in done.records() if one.task == "test" and one.swept == {"pi": pi})
        assert (tested.chosen, tested.epoch) == (winner.chosen, winner.epoch)


@pytest.mark.slow
def test_the_best_of_a_sweep_is_the_best_on_validation(done):
    value = {
        line.swept["pi"]: max(
            one.metrics["precision@5"] for one in done.records() if one.task == "choose" and one.swept == line.swept
        )
        for line in done.records()
        if line.swept
    }
    best = next(line for line in done.records() if line.best)
    assert best.swept["pi"] == max(value, key=lambda pi: (value[pi], -pi))


def test_where_nothing_is_chosen_runs_are_made_in_the_order_of_the_study(tmp_path):
    models = [{"method": method} for method in ("random", "popular", "itemknn")]
    _, heard = carried_out(small_study(tmp_path, model=models), tmp_path / "r")
    made = [(line.group, line.seed) for line, _ in heard.heard]
    assert made == [("random", 1), ("random", 2), ("popular", 1), ("itemknn", 1)]


def test_nothing_is_done_twice(tmp_path):
    study = small_study(tmp_path)
    first, _ = carried_out(study, tmp_path / "r")
    before = (tmp_path / "r" / "runs.jsonl").read_bytes()
    again, heard = carried_out(study, tmp_path / "r")
    assert heard.heard == []
    assert heard.there > 0
    assert (tmp_path / "r" / "runs.jsonl").read_bytes() == before
    assert content(first) == content(again)


def test_a_changed_setting_reruns_only_what_it_touches(tmp_path):
    models = [{"group": "Popular", "method": "popular"}, {"group": "Near", "method": "itemknn", "settings": {"k": 5}}]
    carried_out(small_study(tmp_path, model=models), tmp_path / "r")
    models[1]["settings"]["k"] = 6
    results, heard = carried_out(small_study(tmp_path, model=models), tmp_path / "r")
    assert [line.settings for line, _ in heard.heard] == [{"k": 6}]
    assert [line.settings for line in results.records()] == [{}, {"k": 6}]
    assert len(results.records(every=True)) == 3


def test_a_renamed_row_is_reported_under_its_new_name_without_a_run(tmp_path):
    carried_out(small_study(tmp_path, model=[{"group": "Old", "method": "popular"}]), tmp_path / "r")
    results, heard = carried_out(small_study(tmp_path, model=[{"group": "New", "method": "popular"}]), tmp_path / "r")
    assert heard.heard == []
    assert [line.group for line in results.records()] == ["New"]


def test_a_run_that_two_rows_share_is_done_once_and_reported_twice(tmp_path):
    models = [
        {"group": "Federated", "method": "fpl", "settings": {"pi": 0.5}},
        {"group": "Sweep", "method": "fpl", "sweep": {"pi": [0.5, 1.0]}},
    ]
    study = small_study(tmp_path, model=models, seeds=[1], choose={"best_epoch": False, "epochs": 2})
    results, heard = carried_out(study, tmp_path / "r")
    assert len(heard.heard) == results.count() == 2
    assert [line.group for line in results.records()] == ["Federated", "Sweep", "Sweep"]


def test_a_model_that_diverges_is_recorded_and_the_others_go_on(tmp_path):
    models = [
        {"group": "Wild", "method": "fpl", "settings": {"learning_rate": 1e6}},
        {"group": "Half wild", "method": "fpl", "grid": {"learning_rate": [1e6, 0.05]}},
        {"group": "Popular", "method": "popular"},
    ]
    results, _ = carried_out(small_study(tmp_path, model=models, seeds=[1]), tmp_path / "r")
    status = {(line.group, line.task): line.status for line in results.records()}
    assert status["Wild", "choose"] == status["Wild", "test"] == "failed"
    assert status["Half wild", "test"] == status["Popular", "test"] == "done"
    wild = next(line for line in results.records() if line.task == "test" and line.group == "Wild")
    assert "learning_rate 1e+06" in wild.reason
    half = next(line for line in results.records() if line.task == "test" and line.group == "Half wild")
    assert half.chosen == {"learning_rate": 0.05}
    _, heard = carried_out(small_study(tmp_path, model=models, seeds=[1]), tmp_path / "r")
    assert heard.heard == []  # it would diverge again


def test_patience_stops_a_run_that_gets_no_better(tmp_path):
    study = small_study(
        tmp_path,
        choose={"metric": "precision@5", "epochs": 40, "patience": 2},
        model=[{"group": "FPL", "method": "fpl", "settings": {"factors": 4}}],
    )
    results, _ = carried_out(study, tmp_path / "r")
    line = next(line for line in results.records() if line.task == "choose")
    values = [point.values["precision@5"] for point in line.curve]
    assert len(values) < 40
    assert len(values) == line.epoch + 2
    assert max(values) == values[line.epoch - 1]


def test_choosing_on_test_is_an_error_in_every_line(tmp_path):
    study = small_study(tmp_path, choose={"metric": "precision@5", "epochs": 2, "part": "test"})
    results, _ = carried_out(study, tmp_path / "r")
    assert {line.chosen_on for line in results.records() if line.task == "test"} == {None, "test"}
    assert {line.part for line in results.records()} == {"test"}


def test_ratings_in_folds_have_errors_and_a_curve_of_the_first_fold(tmp_path):
    study = small_study(
        tmp_path,
        split={"way": "folds", "folds": 3},
        choose={"best_epoch": False, "epochs": 4},
        metrics=["mae", "rmse"],
        seeds=[1],
        model=[{"group": "PMF", "method": "pmf", "settings": {"factors": 3}, "curve": True}],
    )
    results, _ = carried_out(study, tmp_path / "r")
    lines = results.records()
    assert [line.fold for line in lines] == [1, 2, 3]
    assert all({"mae", "rmse", "lifetime_messages"} <= set(line.metrics) for line in lines)
    assert not any(name.startswith("precision") for line in lines for name in line.metrics)
    assert [len(line.curve) for line in lines] == [4, 0, 0]
    assert lines[0].curve[-1].values["rmse"] == pytest.approx(lines[0].metrics["rmse"])


def test_a_study_may_be_about_part_of_the_users(tmp_path):
    results, _ = carried_out(
        small_study(tmp_path, filters={"sample": 10}, model=[{"method": "popular"}]), tmp_path / "r"
    )
    assert results.records()[0].metrics["users"] == 10


def test_a_mishap_is_tried_again_at_the_next_start(tmp_path):
    study = small_study(tmp_path, model=[{"group": "Popular", "method": "popular"}])
    results, heard = carried_out(study, tmp_path / "r")
    line = results.records()[0]
    results.append(replace(line, status="failed", transient=True, reason="Its worker was ended."))
    _, heard = carried_out(study, tmp_path / "r")
    assert [told.status for told, _ in heard.heard] == ["done"]


def test_a_folder_of_another_study_is_refused(tmp_path):
    carried_out(small_study(tmp_path), tmp_path / "r")
    with pytest.raises(BadFile, match="'Small'"):
        run_study(small_study(tmp_path, title="Other"), tmp_path / "r", Here(), Silent())


def test_data_that_changes_under_a_study_fails_its_runs(tmp_path):
    from federank.studies.plan import plan_study, run_that_tests
    from federank.studies.task import execute

    case = plan_study(small_study(tmp_path)).cases[0]
    found = execute(replace(run_that_tests(case, {}, None, 1), fingerprint="0" * 32))
    assert found.record.status == "failed"
    assert found.record.reason


def test_lines_are_json_without_anything_that_is_no_number(done):
    for line in done.records():
        text = json.dumps(record_as_json(line), allow_nan=False)
        assert read_record(json.loads(text)) == line
        assert np.isfinite([value for value in line.metrics.values() if value is not None]).all()


def test_the_study_is_kept_as_it_was_run(tmp_path):
    from federank.studies.documents import read_document
    from federank.studies.plan import plan_study
    from federank.studies.spec import as_study

    study = small_study(tmp_path)
    carried_out(study, tmp_path / "r")
    kept = as_study(read_document(tmp_path / "r" / "study.toml"), "study")
    assert [case.candidates for case in plan_study(kept).cases] == [case.candidates for case in plan_study(study).cases]
    assert Results.open(tmp_path / "r").count() == plan_study(study).count


def test_halving_follows_the_curves_of_the_complete_grid_and_goes_on_where_it_was_stopped(tmp_path):
    grid = {"learning_rate": [0.02, 0.1, 0.3], "factors": [2, 4]}
    models = [{"group": "FPL", "method": "fpl", "grid": grid}]
    choose = {"metric": "precision@5", "epochs": 12}
    whole, _ = carried_out(small_study(tmp_path, model=models, choose=choose, seeds=[1]), tmp_path / "whole")
    halving = small_study(tmp_path, model=models, choose=choose | {"search": "halving"}, seeds=[1])
    found, _ = carried_out(halving, tmp_path / "halving")
    left = {str(line.chosen): line for line in whole.records() if line.task == "choose"}
    runs = len(left)
    for epochs, keep in rungs(6, 12):
        by_now = {
            name: max(point.values["precision@5"] for point in line.curve[:epochs]) for name, line in left.items()
        }
        near = sum(within_chance(max(by_now.values()), value, 30 * 5) for value in by_now.values())
        left = {name: left[name] for name in sorted(by_now, key=lambda name: -by_now[name])[: max(keep, near)]}
        runs += len(left)
    expected = max(left.values(), key=lambda line: line.metrics["precision@5"])
    [tested] = [line for line in found.records() if line.task == "test"]
    assert tested.epoch == expected.epoch
    assert left[str(tested.chosen)].metrics == expected.metrics  # of equals, the one that is written first
    assert sum(line.task == "choose" for line in found.records()) == runs
    again, heard = carried_out(halving, tmp_path / "halving")
    assert heard.heard == []
    assert content(again) == content(found)


def test_traffic_of_pairs_is_counted_for_the_first_seed_unless_a_table_compares_it(tmp_path):
    model = [{"group": "FPL", "method": "fpl", "settings": {"factors": 2}}]
    plain = {"best_epoch": False, "epochs": 1}
    once, _ = carried_out(small_study(tmp_path, model=model, choose=plain), tmp_path / "once")
    assert [line.bytes is not None for line in once.records()] == [True, False]
    table = [{"metrics": ["lifetime_messages"]}]
    compared, _ = carried_out(small_study(tmp_path, model=model, choose=plain, table=table), tmp_path / "compared")
    assert [line.bytes is not None for line in compared.records()] == [True, True]
    assert [line.id for line in compared.records()] == [line.id for line in once.records()]


def test_means_can_be_over_those_who_got_a_list(tmp_path):
    rows = ["user,item,time"]
    rows += [f"{person},{item},{item}" for person in range(8) for item in range(person % 3, 9)]
    rows += [f"99,{item},{item}" for item in range(100, 110)]  # someone who shares nothing with anyone
    path = tmp_path / "strangers.csv"
    path.write_text("\n".join(rows) + "\n")
    document = {"data": [{"name": "visits", "source": str(path)}], "choose": {"best_epoch": False}}
    models = [{"group": over, "method": "itemknn", "over": over} for over in ("all", "covered")]
    results, _ = carried_out(small_study(tmp_path, **document, model=models), tmp_path / "r")
    all_users, covered = (line.metrics for line in results.records())
    assert covered["user_coverage"] == all_users["user_coverage"] < 1
    assert covered["precision@5"] == pytest.approx(all_users["precision@5"] / all_users["user_coverage"])
