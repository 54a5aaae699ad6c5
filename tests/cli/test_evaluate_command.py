"""`federank evaluate` and `federank compare`, as a user meets them."""

import json

import polars as pl
import pytest
from tests.cli.program import program as run

import federank as fr
from federank.methods.baselines.popular import MostPopular, Random


@pytest.fixture(scope="module")
def split():
    return fr.split_temporal(fr.city(people=80, places=90, checkins=2_000), test=0.2, validation=0.2)


@pytest.fixture(scope="module")
def models(split, tmp_path_factory):
    """A folder with two trained models, `popular` and `random`."""
    folder = tmp_path_factory.mktemp("runs")
    MostPopular().fit(split.train).save(folder / "popular", split)
    Random().fit(split.train).save(folder / "random", split)
    return folder


def test_the_json_has_the_figures_that_python_gives(models, split):
    code, out, _ = run("evaluate", models / "popular", "--at", "10", "--json")
    told = json.loads(out)
    expected = fr.evaluate(MostPopular().fit(split.train), split, at=10)
    assert code == 0
    wanted = {"precision@10", "recall@10", "f1@10", "ndcg@10", "item_coverage@10", "gini_diversity@10", "users"}
    assert wanted <= told.keys()
    assert {name: told[name] for name in expected.means} == pytest.approx(expected.means)
    assert told["notes"] == list(expected.notes)


def test_a_file_of_recommendations_gets_the_figures_of_the_model_that_made_it(models, split, tmp_path):
    MostPopular().fit(split.train).recommend(n=10).write(tmp_path / "lists.tsv")
    _, of_model, _ = run("evaluate", models / "popular", "--json")
    code, of_file, _ = run(
        "evaluate", "--recommendations", tmp_path / "lists.tsv", "--split", models / "popular", "--json"
    )
    assert code == 0
    assert json.loads(of_file) == json.loads(of_model)


def test_a_folder_of_split_files_serves_as_the_split(tmp_path):
    assert run("data", "split", "city", "--temporal", "0.2", "--out", tmp_path / "split")[0] == 0
    whole = fr.split_temporal(fr.city(), test=0.2)
    model = MostPopular().fit(whole.train)
    model.recommend(n=10).write(tmp_path / "lists.tsv")
    code, out, _ = run("evaluate", "--recommendations", tmp_path / "lists.tsv", "--split", tmp_path / "split", "--json")
    assert code == 0
    assert json.loads(out)["ndcg@10"] == pytest.approx(fr.evaluate(model, whole).means["ndcg@10"])


def test_categories_can_come_from_a_file_and_what_it_misses_is_reported(models, split, tmp_path):
    ids = split.train.item_ids.tolist()
    rows = [f"{item}\t{'old' if place % 2 else 'new'}\n" for place, item in enumerate(ids[:-3])]
    (tmp_path / "kinds.tsv").write_text("".join(rows) + "99999\told\n")
    code, out, _ = run("evaluate", models / "popular", "--categories", tmp_path / "kinds.tsv", "--json")
    told = json.loads(out)
    assert code == 0
    assert {name for name in told if name.startswith("bias@")} == {"bias@10/new", "bias@10/old"}
    assert any(note.startswith("Training items without a category") for note in told["notes"])
    assert any(note.endswith("kinds.tsv that the data do not have, left out: 1.") for note in told["notes"])


def test_bias_is_reported_for_groups_of_users_from_a_file(models, split, tmp_path):
    ids = split.train.user_ids.tolist()
    rows = [f"{user}\t{'odd' if place % 2 else 'even'}\n" for place, user in enumerate(ids)]
    (tmp_path / "groups.tsv").write_text("".join(rows) + "nobody\todd\n")
    code, out, _ = run("evaluate", models / "popular", "--groups", tmp_path / "groups.tsv")
    assert code == 0
    assert "Group: even" in out
    assert "groups.tsv" in out.replace("\n", "")
    _, out, _ = run("evaluate", models / "popular", "--groups", tmp_path / "groups.tsv", "--json")
    told = json.loads(out)
    assert {row["group"] for row in told["bias_of_groups"]} == {"all users", "even", "odd"}
    assert not any("odd" in name for name in told)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [("1\ta\n1\tb\n", "Line 2 of"), ("1\ta\n", "users have no group"), ("1 a\n", "other than two columns")],
)
def test_a_file_of_groups_that_does_not_fit_is_refused(models, tmp_path, content, sentence):
    (tmp_path / "groups.tsv").write_text(content)
    code, _, err = run("evaluate", models / "popular", "--groups", tmp_path / "groups.tsv")
    assert code == 2
    assert sentence in err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("evaluate",), "Say what to judge"),
        (("evaluate", "{runs}/popular", "--recommendations", "x.tsv"), "one of them"),
        (("evaluate", "--recommendations", "x.tsv"), "add --split DIR"),
        (("evaluate", "--recommendations", "x.tsv", "--split", "{runs}/popular"), "There is no file x.tsv"),
        (("evaluate", "{runs}/nothing"), "is not a model"),
        (("evaluate", "{runs}/popular", "--at", "ten"), "--at is 'ten'"),
        (("evaluate", "{runs}/popular", "--at", "0"), "at least 1"),
        (("evaluate", "{runs}/popular", "--at", "5000"), "items to recommend; ask for fewer"),
        (("evaluate", "{runs}/popular", "--per-user", "users.doc"), "end the name in .parquet, .csv, .tsv or .json"),
        (("compare", "{runs}/popular"), "two or more different models"),
        (("compare", "{runs}/popular", "{runs}/popular"), "two or more different models"),
        (("compare", "{runs}/popular", "{runs}/random", "--metrics", "nice"), "No metric is called 'nice'"),
        (
            ("compare", "{runs}/popular", "{runs}/random", "--metrics", "gini_diversity"),
            "have no 'gini_diversity@10' to compare",
        ),
    ],
)
def test_mistakes_end_with_exit_code_2(models, words, sentence):
    code, out, err = run(*(word.format(runs=models) for word in words))
    assert code == 2
    assert out == ""
    assert sentence in err
    assert err.count("\n") == 1


def test_compare_as_json_has_every_test(models):
    code, out, _ = run("compare", models / "popular", models / "random", "--at", "5", "--json")
    told = json.loads(out)
    assert code == 0
    assert [one["metric"] for one in told] == ["precision@5", "recall@5", "ndcg@5"]
    assert told[0]["first"] == str(models / "popular")
    assert told[0]["difference"] == pytest.approx(told[0]["first_mean"] - told[0]["second_mean"])
    assert {"t_test_holm", "wilcoxon_holm", "effect_size", "low", "high", "users"} <= told[0].keys()


def test_models_of_different_splits_are_not_compared(models, tmp_path):
    other = fr.split_temporal(fr.city(people=80, places=90, checkins=2_000), test=0.3)
    MostPopular().fit(other.train).save(tmp_path / "other", other)
    code, _, _err = run("compare", models / "popular", tmp_path / "other")
    assert code == 2


def test_validation_can_be_judged_by(models, split):
    _, out, _ = run("evaluate", models / "popular", "--part", "validation", "--json")
    expected = fr.evaluate(MostPopular().fit(split.train), split.development, at=10).means
    assert json.loads(out)["ndcg@10"] == pytest.approx(expected["ndcg@10"])


def test_values_of_users_are_written(models, tmp_path):
    code, out, _ = run("evaluate", models / "popular", "--per-user", tmp_path / "users.parquet")
    table = pl.read_parquet(tmp_path / "users.parquet")
    assert code == 0
    assert "users.parquet" in out
    assert {"user", "precision@10", "ndcg@10"} <= set(table.columns)
