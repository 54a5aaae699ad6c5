"""A federation that is started with its defaults learns: every method that can be served, plain and secure.

Ratings must be predicted better than by every user's own mean, from the third round on and for 200 rounds. The first
model need not: its fold-in is regularized, so it predicts 3n / (3n + 0.5) of the mean of n ratings from 1 to 5. With
1,000 clients its error is .9101, and that of the means .9096. A round of 20 is 2% of an iteration, so SVD++, which has
half the learning rate of PMF, is below the means after two. Frugal must recommend better than popularity, and FPL,
which is slow, better than its first model. The clients are 150 and 1,000 synthetic users who rated some of 592 films;
under secure aggregation, whose sums are the same, 150.
"""

from functools import cache

import httpx
import numpy as np
import pytest
from tests.rated_worlds import rated_films
from tests.service.federations import Served
from tests.service.in_process import established
from tests.service.simulated_clients.worlds import fetched, written

import federank as fr
from federank._numerics.topn import top_n
from federank.data.splits import split_random
from federank.evaluation.evaluate import evaluate
from federank.evaluation.metrics import rmse
from federank.methods.recommendations import Recommendations
from federank.service.simulated_clients.methods import Plan
from federank.service.simulated_clients.processes import Rehearsal, accuracy, rehearse

pytestmark = pytest.mark.slow

ROUNDS, CHECKED_EVERY = 200, 10
FIRST_CHECKED = 3
CASES = [(150, False), (1000, False), (150, True)]  # clients, secure aggregation
RATINGS = ("pmf", "svdpp")
UNLIMITED = ("client-rate", "address-rate", "enrolment-rate", "range-rate", "address-connections", "every")


@cache
def world(clients):
    """Rated films, and a split of everyone's ratings."""
    data = rated_films(clients)
    return data, split_random(data)


def error_of_means(split):
    """The RMSE of predicting every user's own mean."""
    train, test = split.train, split.test
    means = np.bincount(train.users, train.ratings) / np.bincount(train.users)
    of_user = dict(zip(train.user_ids.tolist(), means.tolist(), strict=True))
    return rmse([of_user[user] for user in test.user_ids[test.users].tolist()], test.ratings)


def precision_of_popularity(split):
    return evaluate(fr.MostPopular().fit(split.train), split, metrics=("precision",)).means["precision@10"]


def precision(federation, split):
    scores = federation.devices.scores(federation.model(), federation.devices.vectors()).astype(np.float32)
    all_users = np.arange(len(scores), dtype=np.int32)
    items, best = top_n(scores, all_users, federation.devices.profiles, 10)
    ids = np.array(federation.ids, dtype=np.dtypes.StringDType())
    listed = Recommendations(split.train.user_ids, items, best, ids)
    return evaluate(listed, split, metrics=("precision",)).means["precision@10"]


def measured(federation, measure):
    """A measure after rounds 3 to 10 and after every tenth; until round 200, or until every client has sent all."""
    values = {}
    for number in range(1, ROUNDS + 1):
        if not federation.play_round():
            break
        if FIRST_CHECKED <= number <= CHECKED_EVERY or number % CHECKED_EVERY == 0:
            values[number] = measure()
    return values


@pytest.mark.parametrize(("clients", "secure"), CASES)
@pytest.mark.parametrize("method", RATINGS)
def test_ratings_are_predicted_better_than_by_means(tmp_path, helper, method, secure, clients):
    data, split = world(clients)
    with established(tmp_path, method, data, split.train, helper.origin if secure else None) as federation:

        def error():
            return federation.devices.errors(federation.model(), split, federation.ids)["rmse"]

        errors = measured(federation, error)
        assert federation.rejected == 0
    # With 150 clients every one has sent its 50 uploads of a lifetime after about 147 rounds of 50.
    assert max(errors) == ROUNDS if clients > 150 or not secure else max(errors) >= 140
    baseline = error_of_means(split)
    assert all(value < baseline for value in errors.values()), errors


@pytest.mark.parametrize(("clients", "secure"), CASES)
def test_frugal_recommends_better_than_popularity(tmp_path, helper, secure, clients):
    data, split = world(clients)
    with established(tmp_path, "frugal", data, split.train, helper.origin if secure else None) as federation:
        while federation.shared.round_number < ROUNDS and federation.play_round():
            pass
        assert federation.rejected == 0
        assert precision(federation, split) > precision_of_popularity(split)


@pytest.mark.parametrize("clients", [150, 1000])
def test_fpl_recommends_better_than_its_first_model(tmp_path, clients):
    data, split = world(clients)
    with established(tmp_path, "fpl", data, split.train) as federation:
        first = precision(federation, split)
        values = measured(federation, lambda: float(np.abs(federation.model().vectors).max()))
        assert federation.rejected == 0
        assert max(values.values()) < 10
        assert precision(federation, split) > first


def served(folder, data, method, *flags):
    """`federank serve` with its defaults; only limits that one machine with many clients would meet are lifted."""
    path = written(data, folder, "ratings.csv")
    lifted = [part for name in UNLIMITED for part in (f"--{name}", "0")]
    store = f"sqlite:///{folder / 'federation.sqlite'}"
    return Served(store, "--data", str(path), "--method", method, *lifted, *flags, folder=folder)


@pytest.mark.parametrize("method", [*RATINGS, "frugal", "fpl"])
def test_a_method_learns_over_http(tmp_path, method):
    data, split = world(150)
    with served(tmp_path, data, method) as server:
        report, status = played(server, split, {"frugal": 30, "fpl": 120}.get(method, 60))
    assert status["aggregates_rejected"] == 0
    if method in RATINGS:
        assert report["rmse"] < error_of_means(split)
    elif method == "frugal":
        assert report["precision@10"] > precision_of_popularity(split)
    else:
        by_chance = len(split.test) / len(split.train.user_ids) / data.n_items
        assert report["precision@10"] > 1.5 * by_chance


def test_ratings_are_learnt_over_http_and_secure_aggregation(tmp_path, helper):
    data, split = world(150)
    with served(tmp_path, data, "pmf", "--helper", helper.origin, "--no-invited-only") as server:
        report, status = played(server, split, 5)
    assert (status["version"], status["aggregates_rejected"]) == (5, 0)
    assert report["rmse"] < error_of_means(split)


def played(server, split, rounds):
    """How good a federation is after simulated clients have taken part over HTTP, and its status."""
    rehearsal = Rehearsal(plan=Plan(address=server.address), data=split.train, rounds=rounds, seed=1, specs={})
    result = rehearse(rehearsal)
    federation, model = fetched(server.address)
    status = httpx.get(f"{server.address}/api/v1/status").json()
    return accuracy(rehearsal, federation, model, result.vectors, split), status
