import pytest
from tests.studies.worlds import small_data, small_study

from federank.errors import BadSplit, DataError, SettingError
from federank.studies.plan import case_seconds, plan_study, run_that_tests
from federank.studies.results import RunRecord
from federank.studies.spec import as_study


def identities(study):
    runs = [run for case in plan_study(study).cases for runs in case.candidates for run in runs]
    tests = [run_that_tests(case, case.fixed, None, case.seeds[0]) for case in plan_study(study).cases]
    return [run.id for run in runs + tests]


def test_a_plan_has_a_case_for_every_point_and_a_candidate_for_every_combination(tmp_path):
    popular, at_0, at_1 = plan_study(small_study(tmp_path)).cases
    assert popular.candidates == ()
    assert popular.seeds == (1,)  # the same for every seed, so that one is enough
    assert [case.swept for case in (at_0, at_1)] == [{"pi": 0.0}, {"pi": 1.0}]
    assert [[run.chosen for run in runs] for runs in at_1.candidates] == [[{"learning_rate": r}] for r in (0.05, 0.5)]
    assert at_1.seeds == (1, 2)
    assert plan_study(small_study(tmp_path)).count == 1 + 2 * (2 + 2)


def test_a_run_that_two_rows_share_counts_once(tmp_path):
    models = [{"group": group, "method": "popular"} for group in ("One", "Other")]
    assert plan_study(small_study(tmp_path, model=models)).count == 1


def test_the_same_study_has_the_same_runs(tmp_path):
    assert identities(small_study(tmp_path)) == identities(small_study(tmp_path))
    assert len(set(identities(small_study(tmp_path)))) == len(identities(small_study(tmp_path)))


def test_a_label_is_not_part_of_what_a_run_is(tmp_path):
    renamed = [{"group": "P", "method": "popular"}]
    named = [{"group": "Q", "method": "popular"}]
    assert identities(small_study(tmp_path, model=renamed)) == identities(small_study(tmp_path, model=named))


@pytest.mark.parametrize(
    "change",
    [
        {"filters": {"min_interactions": 5}},
        {"split": {"test": 0.3}},
        {"at": [4]},
        {"metrics": ["precision"]},
        {"model": [{"group": "Popular", "method": "itemknn"}]},
        {"model": [{"group": "Popular", "method": "itemknn", "settings": {"k": 7}}]},
        {"model": [{"group": "Popular", "method": "random"}]},
        {"model": [{"group": "Popular", "method": "random", "seeds": [5]}]},
    ],
)
def test_whatever_a_result_depends_on_makes_another_run(tmp_path, change):
    plain = small_study(tmp_path, model=[{"group": "Popular", "method": "popular"}])
    assert not set(identities(plain)) & set(
        identities(small_study(tmp_path, **({"model": [{"method": "popular"}]} | change)))
    )


def test_who_watches_a_run_is_part_of_what_it_is(tmp_path):
    audits = [{}, {"sees": "updates"}, {"sees": ["updates"], "people": 5}, {"sees": ["updates", "anonymous"]}]
    models = [{"method": "fpl", "audit": audit} for audit in audits] + [{"method": "fpl"}]
    never_chosen = {"best_epoch": False, "epochs": 3}
    ids = [identities(small_study(tmp_path, model=[model], choose=never_chosen))[0] for model in models]
    assert ids[0] == ids[1]  # updates are seen where nothing is said
    assert len(set(ids)) == 4


def test_an_audit_that_its_settings_make_impossible_is_refused_before_anything_is_run(tmp_path):
    noisy = {"clip": 1.0, "noise": 1.0, "clients_per_round": 5}
    for method, settings, sees, told in (
        ("fpl", {}, "sums", "a round has one client"),
        ("fpl", noisy, "updates", "links noisy uploads"),
        ("pmf", {"federated": False}, "updates", "without a federation"),
    ):
        model = [{"method": method, "settings": settings, "audit": {"sees": [sees]}}]
        with pytest.raises(SettingError, match=told):
            plan_study(small_study(tmp_path, model=model))


def test_patience_is_part_of_a_choosing_run_and_not_of_the_test(tmp_path):
    model = [{"group": "FPL", "method": "fpl"}]
    plain = identities(small_study(tmp_path, model=model))
    patient = identities(
        small_study(tmp_path, model=model, choose={"metric": "precision@5", "epochs": 3, "patience": 1})
    )
    assert plain[0] != patient[0]
    assert plain[1] == patient[1]


def test_the_budget_of_the_study_is_every_methods_own_unless_it_says_otherwise(tmp_path):
    models = [
        {"method": "fpl"},
        {"method": "fcf"},
        {"group": "long", "method": "fcf", "settings": {"rounds": 9}},
        {"method": "popular"},
    ]
    cases = plan_study(small_study(tmp_path, model=models)).cases
    assert [case.candidates[0][0].epochs for case in cases[:3]] == [3, 3, 9]
    assert cases[0].candidates[0][0].all_settings()["epochs"] == 3
    assert cases[3].candidates == ()


def test_a_known_set_that_is_not_installed_is_an_error_and_left_out(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDERANK_DATA", str(tmp_path))
    data = [{"name": "visits", "source": small_data(tmp_path)}, {"name": "librarything"}]
    plan = plan_study(small_study(tmp_path, data=data))
    assert {case.data.name for case in plan.cases} == {"visits"}
    assert "LibraryThing" in plan.notes[0]
    with pytest.raises(DataError):
        plan_study(small_study(tmp_path, data=["librarything"]))


@pytest.mark.parametrize(
    ("split", "told"),
    [
        ({"test": 1.0}, "test is 1.0"),
        ({"test": 0.01}, "nothing to test on"),
        ({"test": "much"}, "test is 'much'"),
        ({"way": "random", "seed": "mine"}, "seed is 'mine'; an integer"),
        ({"way": "folds", "folds": 5}, "without a validation part"),
        ({"validation": 0}, "without a validation part"),
    ],
)
def test_an_impossible_split_is_an_error_before_anything_is_run(tmp_path, split, told):
    with pytest.raises((BadSplit, DataError, SettingError), match=told):
        plan_study(small_study(tmp_path, split=split))


def test_choosing_on_test_needs_no_validation_part_and_is_recorded(tmp_path):
    study = small_study(
        tmp_path, split={"validation": 0}, choose={"metric": "precision@5", "epochs": 2, "part": "test"}
    )
    case = plan_study(study).cases[1]
    assert case.candidates[0][0].part == "test"
    assert run_that_tests(case, {"learning_rate": 0.05}, 1, 1).chosen_on == "test"


def test_a_setting_out_of_its_range_is_refused_before_anything_is_run(tmp_path):
    with pytest.raises(SettingError, match="pi is 3"):
        plan_study(small_study(tmp_path, model=[{"method": "fpl", "settings": {"pi": 3}}]))


def test_folds_are_cases_of_one_row(tmp_path):
    study = small_study(
        tmp_path,
        split={"way": "folds", "folds": 3},
        choose={"best_epoch": False, "epochs": 2},
        model=[{"method": "pmf", "settings": {"factors": 3}}],
        metrics=["mae", "rmse"],
    )
    cases = plan_study(study).cases
    assert [case.fold for case in cases] == [1, 2, 3]
    assert len({run_that_tests(case, {}, None, 1).id for case in cases}) == 3


def test_an_estimate_learns_from_runs_that_are_there(tmp_path):
    case = plan_study(small_study(tmp_path)).cases[1]
    known = [
        RunRecord(id=task, model="fpl", data="visits", seconds=60.0, epoch=3, task=task) for task in ("choose", "test")
    ]
    assert case_seconds(case, []) is None
    assert case_seconds(case, known) == pytest.approx(4 * 60)


def test_every_packaged_study_can_be_read_and_planned_on_its_quick_form():
    from federank.studies.documents import packaged, quick

    assert {"federank-table2", "fpl-table2", "fpl-table3", "fedrec-table2", "fedrec-cost"} <= set(packaged())
    for name, document in packaged().items():
        study, small = as_study(document, name), as_study(quick(document), name)
        assert len(small.models) <= len(study.models)
        rows = {model.group for model in study.models} | {
            f"{model.group}, best pi" for model in study.models if model.best
        }
        names = {data.name for data in study.data}
        for paper in document.get("paper", []):
            for kind, known in (("group", rows), ("data", names)):
                named = paper[kind] if isinstance(paper[kind], list) else [paper[kind]]
                assert set(named) <= known or "benchmark" in document, paper  # a benchmark has others' rows too
        for kind in ("table", "figure"):
            for told in document.get(kind, []):
                assert set(told.get("groups", [])) | set(told.get("baselines", [])) <= rows, told
