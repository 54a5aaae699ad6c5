"""Ratings in the browser against Python's: the same samples, Updates, vectors and bytes; the same messages are refused.

Choices must be equal; floats may differ by `CLOSE`, because JavaScript adds up in 64 bits and Python in 32.
"""

from dataclasses import asdict

import numpy as np
import pytest
from tests.service.web.questions import CLOSE

from federank.errors import BadMessage
from federank.federation.rng import words_wrap_around
from federank.methods.fedrec.client import first_vector
from federank.methods.fedrec.method import (
    FOLD_IN_REGULARIZATION,
    beside_of,
    compute_ratings,
    share_ratings,
    solved_taste,
    virtual_items,
)
from federank.methods.fedrec.settings import RatingFederationSettings, SVDPlusPlusFederationSettings, rating_recipe
from federank.methods.fedrec.wire import (
    RatingBroadcast,
    RatingPrivate,
    RatingRows,
    RatingUpdate,
    decode_rating_rows,
    dense_gradients,
    encode_rating_message,
    encode_rating_rows,
)

ITEMS, FACTORS, SEED, USER = 60, 5, 11, 2_000_000_123
STARS = {2: 5, 3: 1, 8: 4, 21: 3, 34: 5, 55: 2, 58: 4}
HYBRID = {"filling": "hybrid", "rho": 1.5, "t_predict": 0, "t_local": 4}
SETTINGS = {
    "nothing virtual": {"filling": "none", "rho": 0.0},
    "averages": {"filling": "average", "rho": 2.0},
    "predictions": HYBRID,
    "predictions, fresh": HYBRID | {"sampling": "fresh"},
    "local passes on the vector itself": HYBRID | {"local_training": "own"},
    "after the step": {"item_gradients": "after", "filling": "average", "rho": 1.0},
    "more than there are": {"filling": "average", "rho": 50.0},
}
KINDS = {"pmf": RatingFederationSettings, "svdpp": SVDPlusPlusFederationSettings}


def model_of(number, implicit):
    rng = np.random.default_rng(number)
    V, W = (rng.normal(0.4, 0.5, (ITEMS, FACTORS)).astype(np.float32) for _ in range(2))
    return RatingBroadcast(number, V, W if implicit else W[:0], number)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_rounds_are_the_same(ask, kind, settings):
    chosen = KINDS[kind](factors=FACTORS, learning_rate=0.2, initial_range=0.5, seed=SEED, **settings)
    items, ratings = np.array(sorted(STARS), np.int32), np.array([STARS[item] for item in sorted(STARS)], np.float32)
    recipe = rating_recipe(chosen, np.array([len(items)]), ITEMS)
    vector = first_vector(chosen, SEED, USER)
    device = RatingPrivate(USER, vector, items, ratings, ratings.mean(), int(recipe.virtual[0]), 0)
    broadcasts = [model_of(number, chosen.implicit) for number in range(3)]
    [found] = ask(
        {
            "kind": "ratings",
            "recipe": asdict(chosen),
            "hidden": {"filling": chosen.filling, "rho": chosen.rho, "sampling": chosen.sampling},
            "items": ITEMS,
            "implicit": chosen.implicit,
            "person": {"seed": SEED, "user": USER, "items": items.tolist(), "ratings": ratings.tolist()},
            "broadcasts": [
                {
                    "round": given.round_number,
                    "iteration": given.iteration,
                    "vectors": given.vectors.ravel().tolist(),
                    "implicit_vectors": given.implicit_vectors.ravel().tolist(),
                }
                for given in broadcasts
            ],
        }
    )
    for answer, broadcast in zip(found, broadcasts, strict=True):
        with words_wrap_around():
            gradients = compute_ratings(recipe, device, broadcast)
        device.sampled = np.union1d(device.sampled, gradients.items[len(items) :]).astype(np.int32)
        update = share_ratings(gradients)
        assert answer["items"] == update.items.tolist()
        assert answer["implicit_items"] == update.implicit_items.tolist()
        assert answer["sampled"] == gradients.items[len(items) :].tolist()
        np.testing.assert_allclose(answer["vectors"], update.vectors.ravel(), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(answer["implicit_vectors"], update.implicit_vectors.ravel(), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(answer["vector"], device.vector, rtol=1e-4, atol=1e-5)
        rows = broadcast.implicit_vectors[items] if chosen.implicit else broadcast.implicit_vectors
        taste = solved_taste(broadcast.vectors[items], ratings, beside_of(rows, FACTORS), FOLD_IN_REGULARIZATION)
        np.testing.assert_allclose(answer["taste"], taste, **CLOSE)
        theirs = [np.array(answer[name], np.float32).reshape(-1, FACTORS) for name in ("vectors", "implicit_vectors")]
        again = RatingUpdate(update.items, theirs[0], update.implicit_items, theirs[1])
        assert bytes(answer["bytes"]) == encode_rating_message(again)
        if not recipe.virtual[0]:  # where messages are sums nothing is virtual, and every item has a row
            assert answer["dense"] == dense_gradients(again, ITEMS, implicit=chosen.implicit).tolist()


def test_samples_for_life_are_the_same_when_a_history_grows(ask):
    cases, expected = [], []
    for size, rho, before in (
        (4, 1.0, []),
        (6, 2.0, [1, 7, 30]),
        (20, 1.0, [0, 1, 2, 3, 59]),
        (28, 1.0, list(range(30, 50))),
    ):
        profile = np.array(sorted(np.random.default_rng(size).choice(ITEMS, size, replace=False)), np.int32)
        recipe = rating_recipe(RatingFederationSettings(rho=rho, seed=SEED), np.array([size]), ITEMS)
        count = int(recipe.virtual[0])
        with words_wrap_around():
            known = np.array(before, np.int32)
            expected.append(virtual_items(recipe, USER, 5, profile, count, ITEMS, known).tolist())
        draws = {"seed": SEED, "user": USER, "fixed": True, "round": 5}
        cases.append(
            {"kind": "virtual", "profile": profile.tolist(), "count": count, "items": ITEMS, "sampled": before} | draws
        )
    assert ask(*cases) == expected


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_broadcasts_are_read_and_refused(ask, kind):
    implicit = kind == "svdpp"
    _, V, W, _ = model_of(0, implicit)
    whole = RatingRows(3, 5, 2, np.arange(ITEMS, dtype=np.int32), V, (np.arange(ITEMS) % 2).astype(np.int8), W)
    broken = (
        whole,
        whole._replace(heard=whole.heard + 1),
        whole._replace(heard=whole.heard.astype(np.float32)),
        whole._replace(vectors=V * np.float32("nan")),
        whole._replace(items=whole.items[::-1].copy()),
        whole._replace(vectors=V[:, :3].copy()),
        whole._replace(implicit_vectors=V[:0] if implicit else V),
    )
    bodies = [encode_rating_rows(rows) for rows in broken]
    answers = ask(
        *(
            {"kind": "ratingsDecoded", "body": list(body), "factors": FACTORS, "items": ITEMS, "implicit": implicit}
            for body in bodies
        )
    )
    for answer, body in zip(answers, bodies, strict=True):
        try:
            rows = decode_rating_rows(body, FACTORS, ITEMS, implicit=implicit)
        except BadMessage:
            assert "refused" in answer
            continue
        assert (answer["version"], answer["iteration"]) == (rows.version, rows.iteration)
        assert answer["heard"] == rows.heard.tolist()
        np.testing.assert_array_equal(np.array(answer["vectors"], np.float32), rows.vectors.ravel())
    assert sum("refused" in answer for answer in answers) == len(broken) - 1
