"""Evaluation as a whole: who is counted, what is refused, what each kind of source gives, and the papers' figures."""

import numpy as np
import polars as pl
import pytest

import federank as fr
from federank.data.interactions import Interactions
from federank.data.splits import Split
from federank.errors import BadFile, BadSplit, DataError, SettingError, UnknownId
from federank.evaluation.evaluate import evaluate
from federank.methods.baselines.popular import MostPopular, Random
from federank.methods.model_folder import load_split
from federank.methods.recommendations import Recommendations

TRAIN = {"ann": "ab", "bob": "ac", "cat": "abcd", "dan": "d"}
TEST = {"ann": "cz", "bob": "b", "cat": "e"}
"""No one has z or e in training; dan has nothing to be tested on; eve, in a variant, has no training."""


def world(train=TRAIN, test=TEST, categories=None):
    rows = [(user, item, part) for part, rows in enumerate((train, test)) for user in rows for item in rows[user]]
    users, items, parts = zip(*rows, strict=True)
    whole = Interactions.from_columns(list(users), list(items), ratings=list(parts), categories=categories)
    return Split(whole.take(whole.ratings == 0), whole.take(whole.ratings == 1))


def lists(**rows):
    """Recommendations written as a string of item ids for each user."""
    ids = sorted({item for row in rows.values() for item in row})
    items = np.full((len(rows), max(map(len, rows.values()))), -1, dtype=np.int32)
    for place, row in enumerate(rows.values()):
        items[place, : len(row)] = [ids.index(item) for item in row]
    text = np.dtypes.StringDType()
    return Recommendations(
        np.array(list(rows), dtype=text), items, np.zeros(items.shape, dtype=np.float32), np.array(ids, dtype=text)
    )


class Oracle:
    """Not one of our recommenders: answers with the lists it was given, in one form or another."""

    def __init__(self, rows, form):
        self.rows, self.form = rows, form

    def recommend(self, users, n):
        assert "dan" not in users, "only users who are tested are asked for"
        rows = {user: list(self.rows.get(user, ""))[:n] for user in users}
        if self.form == "mapping":
            return {user: row for user, row in rows.items() if row}
        if self.form == "pairs":
            return [[(item, 1.0) for item in row] for row in rows.values()]
        if self.form == "recommendations":
            return lists(**rows)
        return list(rows.values())


GIVEN = {"ann": "cd", "bob": "db"}


@pytest.fixture
def sources(tmp_path):
    """The same lists as every kind of source."""
    path = tmp_path / "lists.tsv"
    lists(**GIVEN).write(path)
    forms = ("lists", "mapping", "pairs", "recommendations")
    return {"recommendations": lists(**GIVEN), "file": path, "path as text": str(path)} | {
        f"object answering with {form}": Oracle(GIVEN, form) for form in forms
    }


def test_every_kind_of_source_gets_the_same_figures(sources):
    found = {name: evaluate(source, world(), at=2) for name, source in sources.items()}
    for one in found.values():
        assert one.means == found["recommendations"].means
        assert one.per_user.equals(found["recommendations"].per_user)


def test_means_are_over_users_with_a_test_item_and_one_without_a_list_counts_as_zero():
    found = evaluate(lists(**GIVEN), world(), at=2)
    assert found.per_user["user"].to_list() == ["ann", "bob", "cat"]
    assert found.per_user["precision@2"].to_list() == [0.5, 0.5, 0]
    assert found.means["precision@2"] == pytest.approx(1 / 3)
    assert found.means["recall@2"] == pytest.approx((1 / 2 + 1 + 0) / 3)
    assert found.means["hit_rate@2"] == pytest.approx(2 / 3)
    assert found.means["users"] == 3
    assert found.means["user_coverage"] == pytest.approx(2 / 3)


def test_what_was_left_out_is_reported():
    notes = evaluate(lists(ann="c", bob="db"), world(), at=2).notes
    assert [note.rpartition(": ")[2] for note in notes] == ["1.", "2.", "1 of 3.", "1."]


def test_items_that_training_never_shows_may_be_recommended_and_are_reported():
    found = evaluate(lists(ann="zc", bob="z", cat="e"), world(), at=2)
    assert found.per_user["recall@2"].to_list() == [1, 0, 1]
    assert found.notes[-1].endswith(": 3.")


def test_users_without_a_test_item_do_not_count_in_exposure_either():
    alone = evaluate(lists(**GIVEN), world(), at=2)
    with_dan = evaluate(lists(**GIVEN, dan="ab"), world(), at=2)
    assert with_dan.means == alone.means


def test_a_user_whom_training_does_not_know_is_tested_and_has_no_list():
    split = world(TRAIN, TEST | {"eve": "a"})
    found = evaluate(MostPopular().fit(split.train), split, at=2)
    assert found.per_user["user"].to_list() == ["ann", "bob", "cat", "eve"]
    # cat already has all that training shows.
    assert found.per_user["recommended"].to_list() == [2, 2, 0, 0]
    assert found.means["user_coverage"] == 0.5


def test_exposure_counts_the_complete_catalogue_before_the_split():
    found = evaluate(lists(**GIVEN), world(), at=2)
    # Of a, b, c, d, e, z: c once, d twice, b once.
    assert found.means["item_coverage@2"] == 3
    assert found.means["item_coverage_share@2"] == pytest.approx(3 / 6)
    assert found.means["gini_diversity@2"] == pytest.approx(1 - (-5 * 0 - 3 * 0 - 0 + 1 + 3 + 5 * 2) / (5 * 4))
    assert found.means["gini@2"] == pytest.approx((1 + 3 + 5 * 2) / (6 * 4))


def test_novelty_is_a_share_of_those_who_are_in_training():
    with_eve = world(test=TEST | {"eve": "a"})  # eve has nothing in training
    found = evaluate(lists(ann="c", bob="b", cat="", eve="d"), with_eve, at=1)
    # b, c and d have two users each, of the four in training; eve, the fifth, is not one of them.
    assert found.per_user["epc@1"].to_list() == pytest.approx([0.5, 0.5, None, 0.5])
    assert found.means["epc@1"] == pytest.approx(0.5)


def test_popularity_is_that_of_training():
    found = evaluate(lists(ann="c", bob="b", cat=""), world(), at=1)
    # In training, b and c have two users each, of four.
    assert found.means["arp@1"] == 2
    assert found.means["epc@1"] == pytest.approx(1 - 2 / 4)
    assert found.per_user["arp@1"].to_list() == [2, 2, None]
    profiles = [np.mean([3, 2]), np.mean([3, 2])]  # ann: a, b; bob: a, c
    assert found.means["popularity_lift@1"] == pytest.approx((2 - np.mean(profiles)) / np.mean(profiles))


def test_several_lengths_in_one_pass_are_each_what_they_are_alone():
    split = fr.split_temporal(fr.city(people=60, places=80, checkins=1_500), test=0.3)
    model = MostPopular().fit(split.train)
    together = evaluate(model, split, at=(10, 3))
    assert together.at == (3, 10)
    for n in (3, 10):
        alone = evaluate(model, split, at=n).means
        assert {name: together.means[name] for name in alone} == alone


def test_only_the_metrics_asked_for_are_reported():
    found = evaluate(lists(**GIVEN), world(), at=2, metrics=["ndcg", "gini_diversity"])
    assert found.means.keys() == {"ndcg@2", "gini_diversity@2", "users", "user_coverage"}
    assert found.per_user.columns == ["user", "test_items", "recommended", "ndcg@2"]


def test_validation_is_judged_in_the_place_of_the_test():
    data = fr.city(people=60, places=80, checkins=1_500)
    split = fr.split_temporal(data, test=0.2, validation=0.2)
    model = MostPopular().fit(split.train)
    assert evaluate(model, split, part="validation").means == evaluate(model, split.development).means
    assert evaluate(model, split, part="validation").means != evaluate(model, split).means


def test_a_model_numbers_items_otherwise_than_the_split_and_is_matched_by_id():
    # Training never shows a, so that the model's item 0 is the split's item 1.
    split = world({"ann": "bc", "bob": "b", "cat": "cd"}, {"bob": "c", "cat": "a"})
    model = MostPopular().fit(split.train)
    assert model.item_ids[0] != split.train.item_ids[0]
    assert evaluate(model, split, at=1).per_user["precision@1"].to_list() == [1, 0]


def test_long_text_ids_are_matched_too():
    users, items = ("a-user-with-a-long-name-{}".format, "an-item-with-a-long-name-{}".format)
    data = Interactions.from_columns(
        [users(u) for u in range(20) for _ in range(5)],
        [items((u + 3 * k) % 20) for u in range(20) for k in range(5)],
        times=[k for _ in range(20) for k in range(5)],
    )
    split = fr.split_leave_last_out(data)
    assert evaluate(Random().fit(split.train), split, at=5).means["user_coverage"] == 1


def test_a_model_that_learnt_from_the_test_part_is_refused():
    split = world()
    everything = Interactions.from_columns(
        [u for rows in (TRAIN, TEST) for u in rows for _ in rows[u]],
        [i for rows in (TRAIN, TEST) for u in rows for i in rows[u]],
    )
    with pytest.raises(BadSplit, match=r"4.*4"):
        evaluate(MostPopular().fit(everything), split, at=2)


@pytest.mark.parametrize(
    ("source", "error", "words"),
    [
        (lists(ann="ccd"), DataError, "Item c is twice in the list of user ann"),
        (lists(ann="ca"), DataError, "item a for user ann.*leave out what a user already has"),
        (lists(ann="cy"), UnknownId, "Of the 2 items in the recommendations, 1 cannot be found"),
        (lists(ann="c", zoe="c"), UnknownId, "Of the 2 users in the recommendations, 1 cannot be found"),
        (42, SettingError, "A int cannot be evaluated"),
        (Oracle({}, "lists").rows, DataError, "The dictionary of recommendations is empty"),
    ],
)
def test_lists_that_make_no_sense_are_refused(source, error, words):
    with pytest.raises(error, match=words):
        evaluate(source, world(), at=2)


def test_two_lists_for_one_user_are_refused():
    twice = Recommendations(
        np.array(["ann", "ann"], dtype=np.dtypes.StringDType()),
        np.array([[0], [0]], dtype=np.int32),
        np.zeros((2, 1), dtype=np.float32),
        np.array(["c"], dtype=np.dtypes.StringDType()),
    )
    with pytest.raises(DataError, match="two lists"):
        evaluate(twice, world(), at=1)


def test_a_score_that_is_no_number_is_refused():
    odd = lists(ann="c")
    odd.scores[0, 0] = np.nan
    with pytest.raises(DataError):
        evaluate(odd, world(), at=1)


def test_an_object_that_answers_with_the_wrong_number_of_lists_is_refused():
    class Forgetful:
        def recommend(self, users, n):
            return [["c"] * n] if users else []

    with pytest.raises(DataError, match="3"):
        evaluate(Forgetful(), world(), at=1)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"at": 5}, "only 4 items to recommend"),
        ({"at": 0}, "at least 1"),
        ({"at": ()}, "at least 1"),
        ({"at": 2, "metrics": ["precison"]}, "Did you mean 'precision'"),
    ],
)
def test_settings_out_of_range_are_refused(how, words):
    with pytest.raises(SettingError, match=words):
        evaluate(lists(**GIVEN), world(), **how)


def test_a_split_without_anything_to_test_on_is_refused():
    split = world()
    with pytest.raises(BadSplit):
        evaluate(lists(**GIVEN), Split(split.train, split.test.take([])), at=2)


def test_validation_that_is_not_there_is_refused():
    with pytest.raises(BadSplit):
        evaluate(lists(**GIVEN), world(), at=2, part="validation")


def test_an_unknown_id_in_a_file_is_refused_with_its_line(tmp_path):
    path = tmp_path / "lists.tsv"
    path.write_text("ann\tc\t2\nbob\td\t1\nann\tnowhere\t1\n")
    with pytest.raises(BadFile, match=r"3.*lists\.tsv.*'nowhere'"):
        evaluate(path, world(), at=2)


def test_bias_of_categories_is_reported_where_items_have_them():
    kinds = {"a": ["Bar"], "b": ["Bar"], "c": ["Park"], "d": ["Park"], "e": ["Park"], "z": ["Bar"]}
    found = evaluate(lists(**GIVEN), world(categories=kinds), at=2)
    # Training: 5 of 9 interactions and 2 of 4 items are bars. Lists: 1 of 4.
    assert found.means["bias@2/Nightlife Spot"] == pytest.approx((1 / 4) / (2 / 4))
    before = (5 / 9) / (2 / 4)
    assert found.means["bias_disparity@2/Nightlife Spot"] == pytest.approx((0.5 - before) / before)
    assert found.bias["category"].to_list() == ["Nightlife Spot", "Outdoors & Recreation"]


def test_items_without_category_are_counted():
    found = evaluate(lists(**GIVEN), world(categories={"a": ["Drama"], "b": ["Drama"]}), at=2)
    assert any(note.endswith(": 2.") for note in found.notes)


@pytest.mark.parametrize("name", ["users.parquet", "users.tsv"])
def test_the_table_of_users_is_written_and_read_back(tmp_path, name):
    found = evaluate(lists(**GIVEN), world(), at=2)
    found.write_per_user(tmp_path / name)
    read = pl.read_parquet if name.endswith("parquet") else lambda path: pl.read_csv(path, separator="\t")
    assert read(tmp_path / name).equals(found.per_user)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_table_of_users_of_another_kind_is_refused_and_nothing_written(tmp_path):
    with pytest.raises(SettingError):
        evaluate(lists(**GIVEN), world(), at=2).write_per_user(tmp_path / "users.xlsx")
    assert not list(tmp_path.iterdir())


def papers_split(real_data, name, monkeypatch):
    monkeypatch.setenv("FEDERANK_DATA", str(real_data))
    return fr.split_temporal(fr.load(name).keep_users(min_interactions=20), test=0.2)


def test_most_popular_on_amazon_has_the_papers_figures_to_five_decimals(real_data, monkeypatch):
    split = papers_split(real_data, "amazon-digital-music", monkeypatch)
    means = evaluate(MostPopular().fit(split.train), split, at=10).means
    figures = {name: round(means[f"{name}@10"], 5) for name in ("precision", "recall", "gini_diversity")}
    assert figures == {"precision": 0.00469, "recall": 0.00603, "gini_diversity": 0.00023}
    assert means["item_coverage@10"] == 24
    assert means["users"] == 1835


def test_held_out_users_are_tested_from_their_fold_in():
    pairs = [(user, item) for user in range(12) for item in range(6) if (user + item) % 2]
    split = fr.split_strong(fr.load(pairs), 3, validation_users=2, fold_in=0.4)
    for model in (fr.EASE(), fr.ItemKNN(), fr.MostPopular(), fr.IALS(factors=2, iterations=2)):
        found = fr.evaluate(model.fit(split.train), split, at=1)
        assert found.means["users"] == 3
        assert found.means["user_coverage"] == 1
    assert fr.evaluate(fr.EASE().fit(split.train), split, at=1).means["recall@1"] == 1
    assert fr.evaluate(fr.EASE().fit(split.train), split, at=1, part="validation").means["users"] == 2
    with pytest.raises(SettingError):
        fr.evaluate(fr.Random().fit(split.train), split, at=1)
    with pytest.raises(SettingError):
        fr.evaluate(fr.EASE().fit(split.train), split, at=1, negatives=1)


def test_a_model_keeps_its_strong_split(tmp_path):
    pairs = [(user, item) for user in range(12) for item in range(6) if (user + item) % 2]
    split = fr.split_strong(fr.load(pairs), 3, fold_in=0.4)
    fr.EASE().fit(split.train).save(tmp_path / "model", split)
    kept = load_split(tmp_path / "model")
    assert kept.fold_in.fingerprint == split.fold_in.fingerprint


def test_notes_count_unknown_users_and_items():
    split = fr.split_given([(0, 0), (0, 1), (1, 0), (1, 2)], [(0, 2), (0, 9), (5, 0)])
    notes = " ".join(fr.evaluate(fr.MostPopular().fit(split.train), split, at=1).notes)
    assert "training data" in notes
    assert "not in training" in notes
