"""Whose lists can be judged: dictionaries and frames too; and metrics and means of one's own choice."""

from functools import cache

import pandas
import polars as pl
import pytest
from tests.worlds import two_tastes

import federank as fr
from federank.errors import DataError, SettingError

SPLIT = fr.split_random(two_tastes(), 0.25)


@cache
def model():
    return fr.ItemKNN(k=5).fit(SPLIT.train)


@cache
def table():
    return model().recommend(n=5).table()


def lists():
    return {user: rows["item"].to_list() for (user,), rows in table().group_by("user", maintain_order=True)}


@pytest.mark.parametrize(
    "source",
    [
        lists,
        lambda: {str(user): [(item, 1.0) for item in items] for user, items in lists().items()},
        table,
        lambda: table().drop("score"),
        lambda: table().sample(fraction=1.0, shuffle=True, seed=3).with_columns(pl.col("score")),
        lambda: pandas.DataFrame({name: table()[name].to_list() for name in table().columns}),
    ],
    ids=["lists by user", "text ids and scores", "Polars", "in their order", "in any order", "pandas"],
)
def test_lists_in_any_form_are_judged_alike(source):
    wanted = fr.evaluate(model(), SPLIT, at=5).means
    found = fr.evaluate(source(), SPLIT, at=5).means
    assert found["hit_rate@5"] == wanted["hit_rate@5"]
    assert found["item_coverage@5"] == wanted["item_coverage@5"]
    assert found["precision@5"] == pytest.approx(wanted["precision@5"])


@pytest.mark.parametrize(
    ("source", "fact"),
    [
        ({0: "tea"}, "user 0.*'tea'"),
        (pl.DataFrame({"who": [1], "item": [2]}), None),
        (pl.DataFrame({"user": [0, 0], "item": [2, 2], "score": [1, 2]}), None),
        (pl.DataFrame({"user": [0], "item": [2], "score": ["high"]}), None),
        (pl.DataFrame({"user": [0, None], "item": [2, 3]}), "row 2"),
    ],
    ids=["text for a list", "no user column", "an item twice", "a score of text", "no user in a row"],
)
def test_malformed_lists_are_refused(source, fact):
    with pytest.raises(DataError, match=fact):
        fr.evaluate(source, SPLIT, at=5)


def test_a_metric_of_ones_own_is_a_function():
    def first_place(hits, relevant, n):
        assert len(relevant) == len(hits)
        return hits[:, 0] / n

    found = fr.evaluate(model(), SPLIT, at=(2, 4), metrics=["ndcg", first_place])
    assert found.means["first_place@2"] == pytest.approx(2 * found.means["first_place@4"])
    assert found.per_user["first_place@2"].mean() == pytest.approx(found.means["first_place@2"])
    assert "precision@2" not in found.means


@pytest.mark.parametrize(
    ("metrics", "fact"),
    [([lambda *_: 1.0], "<lambda>"), (["nddcg"], "'ndcg'"), ("ndcg", "'ndcg'")],
    ids=["a function without a name", "a mistyped name", "text for a list"],
)
def test_unknown_metrics_are_refused(metrics, fact):
    with pytest.raises(SettingError, match=fact):
        fr.evaluate(model(), SPLIT, metrics=metrics)


def test_a_metric_needs_a_value_for_every_user():
    def lazy(hits, relevant, n):
        return 0.5

    with pytest.raises(SettingError):
        fr.evaluate(model(), SPLIT, metrics=[lazy])


def test_means_may_be_over_those_who_got_something():
    tested = sorted(set(SPLIT.test.user_ids[SPLIT.test.users].tolist()))
    by_user = lists()
    half = {user: by_user[user] for user in tested[: len(tested) // 2]}
    all_users, covered = (fr.evaluate(half, SPLIT, at=5, over=over) for over in ("all", "covered"))
    share = len(half) / len(tested)
    assert all_users.means["user_coverage"] == covered.means["user_coverage"] == pytest.approx(share)
    assert covered.means["users"] == len(half)
    assert covered.means["precision@5"] * share == pytest.approx(all_users.means["precision@5"])
    assert covered.means["item_coverage@5"] == all_users.means["item_coverage@5"]
    assert str(len(half)) in covered.notes[0]
    with pytest.raises(SettingError, match="'some'"):
        fr.evaluate(half, SPLIT, over="some")
