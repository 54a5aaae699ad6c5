"""Ratings in the browser against Python's: the same samples, Updates, vectors and bytes; the same messages are refused.

Choices must be equal; floats may differ by `CLOSE`, because JavaScript adds up in 64 bits and Python in 32.
"""

from dataclasses import asdict, replace

import numpy as np
import pytest
from tests.service.web.questions import CLOSE

from federank.errors import BadMessage
from federank.federation import wire
from federank.federation.method import Client, ItemGradients, UserVector
from federank.federation.rng import USER_FACTORS, uniform_rows, words_wrap_around
from federank.federation.secure import secure_vector
from federank.methods.fedrec.method import PMF, RatingModel, rating_recipe
from federank.methods.fedrec.reference import virtual_items

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


def model_of(number):
    vectors = np.random.default_rng(number).normal(0.4, 0.5, (ITEMS, FACTORS)).astype(np.float32)
    return RatingModel(vectors, (np.arange(ITEMS) % 2).astype(np.int8), np.array([number], np.int32))


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_rounds_are_the_same(ask, settings):
    chosen = {"factors": FACTORS, "learning_rate": 0.2, "initial_range": 0.5, "first_prediction": "zero"} | settings
    method = PMF(n_items=ITEMS, seed=SEED, **chosen)
    items, ratings = np.array(sorted(STARS), np.int32), np.array([STARS[item] for item in sorted(STARS)], np.float32)
    first = uniform_rows(1, FACTORS, seed=SEED, purpose=USER_FACTORS, span=0.5, first_row=USER)[0]
    client = Client(SEED, USER, 0, items, ratings, UserVector(first))
    broadcasts = [model_of(number) for number in range(3)]
    question = {
        "kind": "ratings",
        "recipe": asdict(method),
        "hidden": {"filling": method.filling, "rho": method.rho, "sampling": method.sampling},
        "items": ITEMS,
        "person": {"seed": SEED, "user": USER, "items": items.tolist(), "ratings": ratings.tolist()},
        "broadcasts": [
            {"round": number, "iteration": number, "vectors": given.vectors.ravel().tolist()}
            for number, given in enumerate(broadcasts)
        ],
    }
    [found] = ask(question)
    for number, (answer, broadcast) in enumerate(zip(found, broadcasts, strict=True)):
        result = method.client_update(replace(client, round=number), broadcast)
        sampled = np.union1d(client.sent_negatives, result.negatives).astype(np.int32)
        client, update = replace(client, state=result.state, sent_negatives=sampled), result.update
        assert answer["items"] == update.items.tolist()
        assert answer["sampled"] == result.negatives.tolist()
        np.testing.assert_allclose(answer["vectors"], update.vectors.ravel(), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(answer["vector"], result.state.vector, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(answer["taste"], method.fold_in(client, broadcast), **CLOSE)
        again = ItemGradients(update.items, np.array(answer["vectors"], np.float32).reshape(-1, FACTORS))
        assert bytes(answer["bytes"]) == wire.encode(again)
        if not len(result.negatives):  # under secure aggregation nothing is virtual, and every item has a row
            assert answer["dense"] == secure_vector(method, 0, again).tolist()


def test_lifetime_samples_of_a_growing_history_are_the_same(ask):
    cases, expected = [], []
    histories = ((4, 1.0, []), (6, 2.0, [1, 7, 30]), (20, 1.0, [0, 1, 2, 3, 59]), (28, 1.0, list(range(30, 50))))
    for size, rho, before in histories:
        profile = np.array(sorted(np.random.default_rng(size).choice(ITEMS, size, replace=False)), np.int32)
        recipe = rating_recipe(PMF(rho=rho, seed=SEED), np.array([size]), ITEMS)
        count = int(recipe.virtual[0])
        with words_wrap_around():
            known = np.array(before, np.int32)
            expected.append(virtual_items(recipe, USER, 5, profile, count, ITEMS, known).tolist())
        draws = {"seed": SEED, "user": USER, "fixed": True, "round": 5}
        told = {"profile": profile.tolist(), "count": count, "items": ITEMS, "sampled": before}
        cases.append({"kind": "virtual"} | told | draws)
    assert ask(*cases) == expected


def test_the_same_broadcasts_are_read_and_refused(ask):
    method, full = PMF(n_items=ITEMS, factors=FACTORS), model_of(2)
    backwards, some = (np.arange(ITEMS, dtype=np.int32)[part] for part in (slice(10, 2, -1), slice(3, 9)))
    broken = (
        (full, None),
        (wire.rows_of(full, some), some),
        (wire.rows_of(full, some[:0]), some[:0]),
        (replace(full, reported=full.reported + 1), None),
        (replace(full, reported=full.reported.astype(np.float32)), None),
        (replace(full, vectors=full.vectors * np.float32("nan")), None),
        (replace(full, vectors=full.vectors[:, :3].copy()), None),
        (replace(full, iteration=np.array([-1], np.int32)), None),
        (wire.rows_of(full, backwards), backwards),
        (wire.rows_of(full, some), None),
    )
    bodies = []
    for record, items in broken:
        named = {} if items is None else {"items": items}
        parts = {name: part for name, part in wire.values(record).items() if part.size}
        bodies.append(wire.encode_parts(parts | named, {"round": 3, "version": 5}))
    known = {"kind": "ratingsDecoded", "factors": FACTORS, "items": ITEMS}
    answers = ask(*(known | {"body": list(body)} for body in bodies))
    for answer, body in zip(answers, bodies, strict=True):
        try:
            message = wire.decode_rows(RatingModel, method, body)
        except BadMessage:
            assert "refused" in answer
            continue
        assert (answer["version"], answer["iteration"]) == (message.version, message.part.iteration[0])
        assert answer["reported"] == message.part.reported.tolist()
        np.testing.assert_array_equal(np.array(answer["vectors"], np.float32), message.part.vectors.ravel())
    assert ["refused" in answer for answer in answers] == [False] * 3 + [True] * 7
