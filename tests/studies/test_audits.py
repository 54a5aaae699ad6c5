"""Audits in a study: what an honest-but-curious server finds becomes part of a run's line."""

import pytest
from tests.studies.worlds import carried_out, small_study

from federank.audit.audit import audit_model
from federank.errors import SettingError
from federank.methods.registry import audited_names, recommender_class
from federank.studies.plan import part_of, plan_study, run_that_tests
from federank.studies.spec import read_audit

ONCE = {"seeds": [1], "choose": {"best_epoch": False, "epochs": 2}}
STICKY = {"factors": 4, "sharing": "fixed-subset", "pi": 0.5}


def line_of(folder, model, name="results", **changes):
    study = small_study(folder, model=[model], **(ONCE | changes))
    [line] = carried_out(study, folder / name)[0].records()
    assert line.status == "done", line.reason
    return line, study


def test_a_watched_run_tells_what_the_audit_of_its_model_finds(tmp_path):
    model = {"method": "fpl", "settings": STICKY, "audit": {"sees": ["updates", "anonymous"], "people": 9}}
    line, study = line_of(tmp_path, model)
    [case] = plan_study(study).cases
    run = run_that_tests(case, {}, None, 1)
    trained = recommender_class("fpl")(**run.all_settings()).fit(part_of(run.data, None, "test").train)
    for sees in ("updates", "anonymous"):
        [found], about = audit_model(trained, sees=sees, people=9)
        told = {name.partition(":")[2]: value for name, value in line.metrics.items() if name.startswith(sees)}
        assert told == {
            "disclosed_share": found.disclosed_share,
            "popularity": found.attacks["popularity"]["auc"],
            "auc": found.best["auc"],
            "gain": found.best["gain"],
            "gain_low": found.best["gain_low"],
            "gain_high": found.best["gain_high"],
            "popularity_held_back": found.attacks["popularity"]["auc_held_back"],
            "auc_held_back": found.best["auc_held_back"],
            "gain_held_back": found.best["gain_held_back"],
            "gain_held_back_low": found.best["gain_held_back_low"],
            "gain_held_back_high": found.best["gain_held_back_high"],
        }
        assert line.extra[f"{sees}:attack_held_back"] == found.best["by_auc_held_back"]
        assert line.extra[f"{sees}:people_attacked"] == about["people_attacked"] == 9
        assert line.extra[f"{sees}:marks"]["fused/auc"] == found.attacks["fused"]["auc"]


def test_being_watched_changes_nothing_about_a_run_but_its_id(tmp_path):
    model = {"method": "fpl", "settings": STICKY}
    plain, _ = line_of(tmp_path, model, "plain")
    watched, _ = line_of(tmp_path, model | {"audit": {"people": 5}}, "watched")
    assert watched.id != plain.id
    assert {name: watched.metrics[name] for name in plain.metrics} == plain.metrics
    assert not any(":" in name for name in plain.metrics)


def test_sums_are_over_the_clients_of_a_round_and_a_figure_of_noise_is_kept(tmp_path):
    settings = STICKY | {"clients_per_round": 10, "clip": 1.0, "noise": 2.0, "noise_on": "sums"}
    line, _ = line_of(tmp_path, {"method": "fpl", "settings": settings, "audit": {"sees": "sums"}})
    assert line.extra["sums:cohort"] == 10
    assert line.metrics["sums:disclosed_share"] == pytest.approx(0.5, abs=0.1)
    assert line.metrics["noise_epsilon"] > 1


def test_runs_that_learn_ratings_can_be_watched_too(tmp_path):
    model = {"method": "pmf", "settings": {"factors": 3, "rho": 1}, "audit": {"sees": ["updates"]}}
    line, _ = line_of(tmp_path, model, metrics=["rmse"])
    assert line.metrics["updates:gain_held_back"] is None  # everything they learn is sent
    assert 0 <= line.metrics["updates:auc"] <= 1


def test_only_methods_that_send_something_can_be_audited_in_a_study():
    for method in audited_names():
        assert read_audit({}, "Any", method) is not None
    with pytest.raises(SettingError):
        read_audit({}, "Any", "popular")
