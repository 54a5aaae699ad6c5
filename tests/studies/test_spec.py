import re

import pytest

from federank.data.splits import Division
from federank.errors import BadFile, SettingError
from federank.studies.documents import changed, find_study, quick, read_change, read_document, saying_what_changed
from federank.studies.spec import as_study, crossed, points, several

SMALL = {"data": ["city"], "model": [{"method": "popular"}]}


def test_a_study_of_two_lines_has_the_papers_habits():
    study = as_study(SMALL, "small")
    assert [data.name for data in study.data] == ["city"]
    assert study.data[0].split == Division(way="temporal", test=0.2, validation=0.2, seed=1)
    assert study.models[0].seeds == (1, 2, 3)
    assert study.choosing(study.data[0], study.models[0]).part == "validation"


@pytest.mark.parametrize(
    ("change", "nearest"),
    [
        ({"sedes": [1]}, "seeds"),
        ({"choose": {"metrik": "ndcg@10"}}, "metric"),
        ({"choose": {"metric": "precison@10"}}, "precision"),
        ({"split": {"wey": "random"}}, "way"),
        ({"filters": {"min_interaction": 20}}, "min_interactions"),
        ({"data": [{"nane": "city"}]}, "name"),
        ({"model": [{"method": "fpl", "setings": {}}]}, "settings"),
        ({"model": [{"method": "fpl", "settings": {"learning_rat": 0.1}}]}, "learning_rate"),
        ({"model": [{"method": "fpl", "grid": {"factor": [1]}}]}, "factors"),
        ({"model": [{"method": "fpl", "sweep": {"pie": [1]}}]}, "pi"),
        ({"model": [{"method": "popluar"}]}, "popular"),
        ({"model": [{"method": "popular", "data": ["citty"]}]}, "city"),
        ({"table": [{"titel": "x"}]}, "title"),
        ({"model": [{"method": "fpl", "audit": {"see": ["updates"]}}]}, "sees"),
        ({"model": [{"method": "fpl", "audit": {"sees": ["update"]}}]}, "updates"),
    ],
)
def test_a_misspelt_key_is_an_error_that_names_the_nearest_known_one(change, nearest):
    with pytest.raises(SettingError, match=f"Did you mean '{nearest}'"):
        as_study(SMALL | change, "small")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"model": []}, "one or more tables are needed"),
        ({"data": "city"}, "a list of names, such as data"),
        ({"data": None}, "data is missing"),
        ({"model": [{"group": "x"}]}, "has no method"),
        ({"seeds": []}, "one or more integers"),
        ({"seeds": [1.5]}, "integer"),
        ({"split": {"way": "sideways"}}, "it can be temporal or"),
        ({"split": {"folds": 5}}, "folds go with"),
        ({"choose": {"part": "train"}}, "it can be validation or test"),
        ({"choose": {"metric": "precision@ten"}}, "cannot be read"),
        ({"model": [{"method": "fpl"}, {"method": "fpl"}]}, "there twice"),
        ({"model": [{"method": "fpl", "settings": {"pi": 1}, "sweep": {"pi": [0, 1]}}]}, "in settings and in sweep"),
        ({"model": [{"method": "fpl", "best": True}]}, "has no sweep"),
        ({"model": [{"method": "fpl", "sweep": {"pi": {"from": 0, "to": 1}}}]}, "from, to and step"),
        ({"model": [{"method": "fpl", "settings": {"seed": 3}}]}, "has no 'seed'"),
        ({"model": [{"method": "bpr", "audit": {}}]}, "cannot be audited, only fpl, federank, frugal, fcf, pmf, svdpp"),
        ({"model": [{"method": "fpl", "audit": {"cohort": 50}}]}, "clients_per_round = 50"),
        ({"model": [{"method": "fpl", "audit": {"sees": []}}]}, "one or more servers are needed"),
        ({"model": [{"method": "fpl", "audit": {"people": 0}}]}, "people"),
        ({"model": [{"method": "pmf", "audit": {"sees": "sums"}}]}, "has no 'sums'"),
        ({"note": [{"text": "Luck.", "shown_by": "a test"}]}, "a table of keys and values is needed"),
        ({"note": [{"text": "Luck.", "shown_by": {}}]}, "is empty; name what shows it"),
        ({"note": [{"text": "Luck.", "shown_by": {"paper": " "}}]}, "paper in shown_by of a .* is ' '; its name"),
        ({"note": [{"text": "Luck.", "shown_by": {"test": 3}}]}, "test in shown_by of a .* is 3; its name is needed"),
    ],
)
def test_what_makes_no_sense_is_refused(change, told):
    with pytest.raises(SettingError, match=told):
        as_study(SMALL | change, "small")


def test_data_may_be_names_beside_tables():
    study = as_study(SMALL | {"data": ["a", {"name": "b", "source": "c.csv", "choose": {"epochs": 3}}]}, "small")
    assert [(data.name, data.source) for data in study.data] == [("a", "a"), ("b", "c.csv")]
    assert [study.choosing(data, study.models[0]).epochs for data in study.data] == [None, 3]


def test_one_seed_needs_no_list():
    study = as_study(SMALL | {"seeds": 4, "choose": {"seeds": 5}}, "small")
    assert study.models[0].seeds == (4,)
    assert study.choosing(study.data[0], study.models[0]).seeds == (5,)


def test_two_models_may_share_a_label_on_different_data():
    models = [
        {"group": "HF", "method": "pmf", "data": [name], "settings": {"rho": rho}} for name, rho in (("a", 1), ("b", 2))
    ]
    study = as_study({"data": ["a", "b"], "model": models}, "small")
    assert [model.settings["rho"] for model in study.models] == [1, 2]


def test_a_file_that_is_not_toml_or_not_there_is_an_error(tmp_path):
    (tmp_path / "bad.toml").write_text("title = \n")
    with pytest.raises(BadFile, match="not TOML"):
        read_document(tmp_path / "bad.toml")
    with pytest.raises(BadFile, match="cannot be read"):
        read_document(tmp_path / "nowhere.toml")


def test_a_range_has_both_ends_and_no_dust():
    assert several({"from": 0, "to": 1, "step": 0.1}, "pi") == (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
    assert several({"from": 10, "to": 30, "step": 10}, "k") == (10, 20, 30)
    assert all(isinstance(k, int) for k in several({"from": 10, "to": 30, "step": 10}, "k"))


@pytest.mark.parametrize("wrong", [{"from": 0, "to": 1, "step": 0}, {"from": 1, "to": 0, "step": 1}, [], [[1]]])
def test_a_range_that_leads_nowhere_is_refused(wrong):
    with pytest.raises(SettingError):
        several(wrong, "pi")


def test_lists_are_crossed():
    assert crossed({"a": (1, 2), "b": ("x", "y")}) == [
        {"a": 1, "b": "x"},
        {"a": 1, "b": "y"},
        {"a": 2, "b": "x"},
        {"a": 2, "b": "y"},
    ]
    assert crossed({}) == [{}]


def test_points_of_a_sweep_may_bring_settings_along():
    told = [{"rho": 1, "t_predict": 10}, {"rho": 2, "t_predict": 5}]
    assert points(told, "HF") == [({"rho": 1}, {"t_predict": 10}), ({"rho": 2}, {"t_predict": 5})]
    with pytest.raises(SettingError):
        points([{"rho": 1}, {"t_predict": 5}], "HF")


def test_a_change_reaches_one_entry_by_its_name_or_all_of_them():
    study = {"data": ["a", "b"], "model": [{"group": "T = 1", "method": "fpl"}, {"group": "P", "method": "popular"}]}
    one = changed(study, read_change('model."T = 1".settings.factors=50'))
    assert one["model"] == [{"group": "T = 1", "method": "fpl", "settings": {"factors": 50}}, study["model"][1]]
    everyone = changed(study, read_change("data.all.split.test=0.1"))
    assert everyone["data"] == [{"name": name, "split": {"test": 0.1}} for name in "ab"]
    assert study["data"] == ["a", "b"]


def test_a_change_of_something_that_is_not_there_names_the_nearest():
    with pytest.raises(SettingError, match="'ml-1m'"):
        changed({"data": ["ml-1m"]}, read_change("data.ml-1n.split.test=0.1"))
    with pytest.raises(SettingError):
        read_change("nothing")


def test_a_word_as_a_value_needs_no_quotation_marks():
    assert read_change("choose.metric=ndcg@10") == {"choose": {"metric": "ndcg@10"}}
    assert read_change("choose.epochs=5") == {"choose": {"epochs": 5}}


def test_a_study_that_the_command_line_has_changed_says_so():
    study = {"description": "Ten pi.", "data": ["a"]}
    changes = [read_change("seeds=[1]"), read_change("data.a.filters.sample=100"), read_change("data.b.skip=true")]
    told = saying_what_changed(study, changes)["description"]
    assert told == "Changed on the command line: seeds = [1]; data.a.filters.sample = 100.\n\nTen pi."
    assert saying_what_changed(study, changes[-1:]) == study  # what is left out shows by itself
    dated = saying_what_changed(study, [read_change("split.before=2020-01-01")])["description"]
    assert dated.startswith('Changed on the command line: split.before = "2020-01-01".')


def test_the_quick_form_is_laid_over_the_rest():
    told = quick({"title": "Table 2", "seeds": [1, 2, 3], "quick": {"seeds": [1]}})
    assert told["title"] == "Table 2 (quick form)"
    assert told["seeds"] == [1]
    assert told["description"].startswith("A quick form")
    assert "Changed: seeds = [1]." in told["description"]
    with pytest.raises(SettingError):
        quick({"seeds": [1]})


def test_a_quick_form_says_what_it_runs_and_compares_nothing_with_the_paper():
    whole = {
        "description": "Ten pi on 6,040 people.",
        "data": ["ml-1m", "city"],
        "model": [
            {"group": "FPL", "method": "fpl", "sweep": {"pi": [0.0, 0.1, 1.0]}},
            {"group": "VAE", "method": "vae"},
        ],
        "paper": [{"group": "FPL", "metrics": {"precision@10": 0.1}}],
        "note": [{"text": "Their filter differs."}],
        "quick": {
            "data": {"all": {"filters": {"sample": 150}}, "ml-1m": {"skip": True}},
            "model": {"FPL": {"sweep": {"pi": [0.0, 1.0]}}, "VAE": {"skip": True}},
        },
    }
    small = quick(whole)
    assert "paper" not in small
    assert "note" not in small
    assert "150" in small["description"]
    assert {"ml-1m", "VAE"} <= set(re.findall(r"[\w-]+", small["description"]))
    assert small["description"].endswith("The full study, which this is not: Ten pi on 6,040 people.")


def test_paths_in_a_study_are_relative_to_it(tmp_path, monkeypatch):
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    (there / "visits.csv").write_text("user,item\n1,2\n")
    (there / "people.toml").write_text("")
    (there / "mine.toml").write_text(
        'data = ["visits.csv", "ml-100k"]\n'
        'model = [{ method = "fpl", settings = { policies = "people.toml", pi = "0.3" } }]\n'
    )
    monkeypatch.chdir(here)
    name, document = find_study("../there/mine.toml")
    first, second = as_study(document, name).data
    assert (first.name, first.source) == ("visits.csv", "../there/visits.csv")
    assert (second.name, second.source) == ("ml-100k", "ml-100k")
    assert document["model"][0]["settings"] == {"policies": "../there/people.toml", "pi": "0.3"}
    monkeypatch.chdir(there)
    assert find_study("mine.toml")[1]["data"] == ["visits.csv", "ml-100k"]
