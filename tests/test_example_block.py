"""What a researcher types on the first day, line by line: a method of their own and everything around it."""

import polars as pl
import pytest

import federank as fr
from federank import extensions
from tests.methods.extensions.test_registering import Alphabetical
from tests.rated_worlds import two_opinions
from tests.worlds import two_tastes


@pytest.fixture(scope="module")
def split():
    return fr.split_random(two_tastes(), 0.2, validation=0.2)


@pytest.fixture
def _mine():
    class Mine(Alphabetical):
        name = "mine"

    fr.register(Mine)
    yield
    extensions._registered["methods"].pop("mine")


@pytest.mark.usefixtures("_mine")
def test_a_method_of_ones_own(split, tmp_path):
    model = fr.fit("mine", split)
    model.save(tmp_path / "mine", split)
    assert fr.load_model(tmp_path / "mine").recommend(0, 3) == model.recommend(0, 3)


def test_the_search_of_the_block(split):
    found = fr.search("fpl", split, pi=[0.1, 0.3], learning_rate=[0.05, 0.5], epochs=1, factors=2, metric="ndcg@10")
    assert {"pi", "learning_rate"} <= set(found.settings)
    assert len(found.table) == 4


def test_lists_metrics_comparisons_and_audits(split):
    lists = fr.ItemKNN(k=5).fit(split.train).recommend(n=5)
    first = fr.evaluate(lists, split, at=5)
    rows = [(int(user), one.item, one.score) for place, user in enumerate(lists.users) for one in lists.of(place)]
    frame = pl.DataFrame(rows, schema=["user", "item", "score"], orient="row")
    second = fr.evaluate(frame, split, at=5)
    assert first.means == second.means
    [same, *_] = fr.compare(first, second, metrics=["ndcg@5"])
    assert (same.first, same.second, same.difference) == ("first", "second", 0)
    model = fr.Frugal(messages=2, cohorts=2, min_support=1).fit(split.train)
    assert fr.audit_model(model, sees="sums").about["sees"] == "sums"


def test_ratings_and_a_metric_of_ones_own():
    def anything(hits, relevant, n):
        return hits.any(axis=1).astype(float)

    split = fr.split_random(two_opinions(), 0.25)
    pmf = fr.PMF(factors=4, iterations=5).fit(split.train)
    means = fr.evaluate(pmf, split, at=3, metrics=["rmse", anything]).means
    assert means["rmse"] > 0
    assert 0 <= means["anything@3"] <= 1


def test_similar_items_by_title():
    world = two_tastes()
    titles = {item: f"Film {item} (1999)" for item in world.item_ids.tolist()}
    users, items = world.user_ids[world.users], world.item_ids[world.items]
    model = fr.ItemKNN(k=5).fit(fr.Interactions.from_columns(users, items, titles=titles))
    assert model.similar("Film 4 (1999)", n=2)[0].title.endswith("(1999)")


def test_similar_items_candidates_and_new_data(split):
    model = fr.ItemKNN(k=5).fit(split.train)
    assert {one.item % 2 for one in model.similar(4, n=3)} == {0}
    assert {one.item for one in model.recommend(0, n=10, among=[20, 22], without=[22])} <= {20}
    assert len(model.fit_more([(99, 4), (99, 6)]).training) == len(split.train) + 2
