"""One fold-in per method: fit, `fr.enrol`, the Python client and the page give a user the same vector.

FPL and FedRec score the users they were trained with by the trained vector, as published. Their fit folds in only
where a policy keeps items out of the rounds (FPL), so that part is compared there.
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from tests.rated_worlds import two_opinions
from tests.service.web.conversing import conversing
from tests.worlds import two_tastes

import federank as fr
from federank.federation.client import History, Model
from federank.methods.fedrec.method import PMF, SVDPlusPlus
from federank.methods.fpl.method import FPL
from federank.methods.frugal.method import Frugal
from federank.service.client.methods import ClientMethod

METHODS = Path(fr.__file__).parent / "service" / "web" / "methods" / "registry.js"
SEED, USER, FACTORS = 7, 0, 4
CLOSE = {"rtol": 1e-4, "atol": 1e-5}
LIKES, STARS = two_tastes(), two_opinions()
NO_BIASES = np.zeros(0, dtype=np.float32)


class Case(NamedTuple):
    """A trained model, and the same federation as its clients see it."""

    trained: fr.Recommender
    method: str
    settings: Any

    @property
    def history(self) -> History:
        data = self.trained.training
        first, last = data.profiles.starts[USER : USER + 2]
        rated = data.ratings is not None
        return History(data.items[first:last], data.ratings[first:last] if rated else NO_BIASES)

    @property
    def model(self) -> Model:
        trained: Any = self.trained
        named = {"vectors": "item_vectors", "biases": "item_biases", "weights": "item_weights"}
        named |= {"implicit_vectors": "implicit_vectors"}
        tables = {
            name: np.ascontiguousarray(getattr(trained, own)) for name, own in named.items() if hasattr(trained, own)
        }
        tables = {name: table for name, table in tables.items() if len(table)}
        if self.method in ("pmf", "svdpp"):
            reported = {"reported": np.ones(len(trained.item_ids), np.int8)}
            return Model(1, tables | reported, {"iteration": np.ones(1, np.int32)})
        overall = {"regulariser": np.array([trained.regulariser])} if self.method == "frugal" else {}
        return Model(1, tables, overall)

    def on_the_client(self):
        return ClientMethod(self.settings, secure=False).home_vector(SEED, USER, self.history, self.model)

    def enrolled(self):
        ids = self.trained.item_ids[self.history.items].tolist()
        ratings = self.history.ratings.tolist()
        return fr.enrol(self.trained, dict(zip(ids, ratings, strict=True)) if ratings else ids).vector

    def on_the_page(self, ask):
        items, ratings = self.history.items.tolist(), self.history.ratings.tolist()
        tables, none = self.model.tables, np.zeros(0)
        weights = tables.get("weights", np.ones(len(self.model.vectors)))
        model = {name: tables.get(name, none).ravel().tolist() for name in ("vectors", "biases")}
        model |= {"weights": weights.tolist(), "regulariser": float(self.model.overall.get("regulariser", [0])[0])}
        who = {"method": self.method, "seed": SEED, "user": USER, "items": items, "ratings": ratings}
        return ask(who | {"recipe": self.settings.public_settings() | {"step": 1.0}, "model": model})


def fpl():
    chosen = {"factors": FACTORS, "seed": SEED, "epochs": 5, "learning_rate": 0.1}
    model = fr.FPL(**chosen, sharing="fixed-subset", pi=0.5, basis="shared").fit(LIKES)
    settings = FPL(n_items=LIKES.n_items, factors=FACTORS, triples=4, learning_rate=0.1)
    return Case(model, "fpl", settings)


def frugal():
    model = fr.Frugal(min_support=1, factors=FACTORS, seed=SEED, pi=0.5, sharing="fixed-subset").fit(LIKES)
    activity = model.settings.user_weight_exponent
    return Case(
        model,
        "frugal",
        Frugal(n_items=LIKES.n_items, factors=FACTORS, uploads_per_client=5, activity=activity),
    )


def pmf():
    model = fr.PMF(factors=FACTORS, seed=SEED, iterations=20, learning_rate=0.05).fit(STARS)
    return Case(model, "pmf", PMF(n_items=STARS.n_items, factors=FACTORS, learning_rate=0.1))


def svdpp():
    model = fr.SVDPlusPlus(factors=FACTORS, seed=SEED, iterations=20, learning_rate=0.05).fit(STARS)
    return Case(
        model,
        "svdpp",
        SVDPlusPlus(n_items=STARS.n_items, factors=FACTORS, learning_rate=0.1),
    )


@pytest.fixture(scope="module", params=[fpl, frugal, pmf, svdpp], ids=lambda make: make.__name__)
def case(request):
    return request.param()


@pytest.fixture(scope="module")
def page(node):
    """The page's methods under node."""
    with conversing(node, "fold_in.mjs", METHODS) as ask:
        yield ask


def test_a_new_user_gets_the_vector_of_a_client(case):
    assert np.abs(case.enrolled()).max() > 0.01
    np.testing.assert_allclose(case.enrolled(), case.on_the_client(), **CLOSE)


@pytest.mark.parametrize("case", [fpl, frugal, pmf], ids=["fpl", "frugal", "pmf"], indirect=True)
def test_the_page_folds_in_as_a_client_does(case, page):
    np.testing.assert_allclose(case.on_the_page(page), case.on_the_client(), **CLOSE)


@pytest.mark.parametrize("case", [fpl, frugal], ids=["fpl", "frugal"], indirect=True)
def test_fit_folds_in_as_a_client_does(case):
    model = case.trained
    np.testing.assert_allclose(
        (model.home_vectors if case.method == "fpl" else model.user_vectors)[USER], case.on_the_client(), **CLOSE
    )


def test_fcf_folds_in_a_new_user_as_fit_does():
    model = fr.FCF(factors=FACTORS, rounds=5, seed=SEED).fit(LIKES)
    history = model.item_ids[LIKES.profiles.of(USER)].tolist()
    np.testing.assert_allclose(fr.enrol(model, history).vector, model.user_vectors[USER], **CLOSE)


@pytest.mark.parametrize("kind", [fr.FPL, fr.PMF, fr.SVDPlusPlus])
def test_users_of_the_training_are_scored_by_the_trained_vector(kind):
    data = LIKES if kind is fr.FPL else STARS
    model = kind(factors=FACTORS, seed=SEED).fit(data)
    biases = model.item_biases if kind is fr.FPL else 0
    taste = model.user_vectors[USER]
    if kind is fr.SVDPlusPlus:
        rated = data.profiles.of(USER)
        taste = taste + model.implicit_vectors[rated].sum(axis=0) / np.sqrt(len(rated))
    expected = model.item_vectors @ taste + biases
    user = model.user_ids[USER]
    found = {entry.item: entry.score for entry in model.recommend(user, n=5)}
    numbers = [int(np.flatnonzero(model.item_ids == item)[0]) for item in found]
    np.testing.assert_allclose(list(found.values()), expected[numbers], rtol=1e-4)
