"""Squares in the browser against Python's: the same model and profile give the same vector, numbers and bytes.

Blocks and bytes must be equal, sums of products to the last places of a double; what is solved and sent may differ by
`CLOSE`, because Python solves by another elimination and adds up its scores in 32 bits.
"""

import numpy as np
import pytest
from safetensors.numpy import load
from tests.service.web.questions import CLOSE
from tests.squares_worlds import encode_update, lone_method, read_broadcast, read_update, update_of

from federank._numerics.topn import gram_matrix
from federank.errors import BadMessage
from federank.federation.wire import encode_parts
from federank.methods.frugal.objective import Objective
from federank.methods.frugal.protocol import FrugalUpdate, dense
from federank.methods.frugal.records import FrugalModel

ITEMS, FACTORS = 90, 12
PROFILE = np.array([0, 3, 4, 17, 40, 41, 77, 89], dtype=np.int32)
SETTINGS = {
    "as it comes": {},
    "surer of what is liked": {"alpha": 3.0, "damping": 0.5},
    "nothing learnt from what is not there": {"alpha": 1.0, "unobserved_weight": 0.0},
    "clipped": {"clip": 0.4},
    "a fixed regulariser": {"regulariser": 2.0},
    "as they are": {"encoding": "float32"},
    "no one weighs less": {"activity": 0.0, "popularity": 0.0},
}


def recipe_of(**settings):
    return lone_method(ITEMS, factors=FACTORS, seed=5, min_support=1, **settings)


def model_of(method):
    rng = np.random.default_rng(8)
    vectors = rng.normal(0, 0.3, (ITEMS, FACTORS)).astype(np.float32)
    weights = rng.uniform(0.2, 1, ITEMS).astype(np.float32) if method.popularity else np.ones(ITEMS, np.float32)
    return FrugalModel(vectors, weights, np.array([1.7]))


def body_of(method, items=range(ITEMS)):
    rows = np.array(items, dtype=np.int32)
    return method.write(model_of(method), rows, round_number=4, version=4)


def broadcast_of(method, items=range(ITEMS)):
    return read_broadcast(body_of(method, items), FACTORS, ITEMS)


def plain_model(broadcast):
    vectors, weights = broadcast.vectors.ravel().tolist(), broadcast.weights.tolist()
    return {"vectors": vectors, "weights": weights, "regulariser": broadcast.regulariser}


def plain_objective(objective):
    return {"liked": float(objective.liked), "unobserved": float(objective.unobserved)}


def question_of(recipe, broadcast):
    """One device's message: the question, and what Python makes of it."""
    expected = update_of(recipe, broadcast, PROFILE)
    question = {
        "kind": "squares",
        "objective": plain_objective(recipe.objective),
        "model": plain_model(broadcast),
        "profile": PROFILE.tolist(),
        "weighing": {"activity": recipe.activity, "clip": recipe.clip or 0.0},
    }
    return question, expected


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_a_message_is_the_same(ask, settings):
    recipe = recipe_of(**settings)
    broadcast = broadcast_of(recipe)
    question, expected = question_of(recipe, broadcast)
    [found] = ask(question)
    gram = gram_matrix(np.ascontiguousarray(broadcast.vectors), broadcast.weights)
    np.testing.assert_allclose(found["gram"], gram.ravel(), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(found["vector"], expected.vector, **CLOSE)
    np.testing.assert_allclose(found["strengths"], expected.strengths, **CLOSE)
    assert found["scale"] == pytest.approx(expected.scale[0], rel=1e-6)
    written = dense(expected)
    np.testing.assert_allclose(found["pulls"], written.residuals.ravel(), **CLOSE)
    np.testing.assert_allclose(found["squares"], written.squares.ravel(), **CLOSE)


def test_an_update_is_written_in_pythons_bytes(ask):
    recipe = recipe_of()
    question, _ = question_of(recipe, broadcast_of(recipe))
    [found] = ask(question)
    strengths, vector = (np.array(found[name], dtype=np.float32) for name in ("strengths", "vector"))
    mine = encode_update(FrugalUpdate.of(strengths, vector, np.float32(found["scale"])))
    assert bytes(found["bytes"]) == mine
    read_update(mine, FACTORS, ITEMS)


@pytest.mark.parametrize("broadcast", ["int8", "float32"])
@pytest.mark.parametrize("items", [range(ITEMS), [2, 3, 50]])
def test_a_broadcast_is_read_as_python_wrote_it(ask, broadcast, items):
    body = body_of(recipe_of(encoding=broadcast), items)
    sent = read_broadcast(body, FACTORS, ITEMS)
    [read] = ask({"kind": "squaresDecoded", "body": list(body), "factors": FACTORS, "items": ITEMS})
    assert (read["roundNumber"], read["version"], read["regulariser"]) == (4, sent.version, 1.7)
    assert read["items"] == sent.items.tolist() == list(items)
    np.testing.assert_array_equal(np.float32(read["weights"]), sent.weights)
    np.testing.assert_array_equal(np.float32(read["vectors"]), sent.vectors.ravel())


def spoilt():
    """Broadcasts with one thing wrong, and the code of each."""
    whole = body_of(recipe_of())
    codes, plain = load(whole), load(body_of(recipe_of(encoding="float32")))
    low = codes["codes"].copy()
    low[3, 3] = -128
    wrong = {
        "a level below the lowest": (codes | {"codes": low}, "wire.codes"),
        "a negative scale": (codes | {"scales": -codes["scales"]}, "wire.scales"),
        "an infinite scale": (codes | {"scales": codes["scales"] * np.float32(np.inf)}, "wire.finite"),
        "too few codes": (codes | {"codes": codes["codes"][:-1]}, "wire.shape"),
        "a negative weight": (codes | {"weights": -codes["weights"]}, "wire.weights"),
        "a negative regulariser": (codes | {"regulariser": np.array([-1.0])}, "wire.regulariser"),
        "no regulariser": (codes | {"regulariser": np.array([np.nan])}, "wire.regulariser"),
        "items that do not ascend": (plain | {"items": np.array([2, 1, 0], np.int32)}, "wire.items"),
        "not a number in a vector": (plain | {"vectors": plain["vectors"] * np.float32(np.nan)}, "wire.finite"),
        "another number of factors": (plain | {"vectors": plain["vectors"][:, :-1].copy()}, "wire.shape"),
    }
    bodies = {name: (encode_parts(parts, {"round": 4, "version": 4}), words) for name, (parts, words) in wrong.items()}
    return bodies | {
        "codes without scales": (whole.replace(b'"scales"', b'"vector"', 1), "wire.parts"),
        "vectors beside scales": (whole.replace(b'"codes"', b'"coles"', 1), "wire.parts"),
        "cut": (whole[:-1], "wire.outside"),
    }


def test_malformed_broadcasts_are_refused_in_both_languages(ask):
    cases = spoilt()
    asked = [
        {"kind": "squaresDecoded", "body": list(body), "factors": FACTORS, "items": ITEMS} for body, _ in cases.values()
    ]
    for (name, (body, code)), read in zip(cases.items(), ask(*asked), strict=True):
        assert read == {"refused": code}, name
        with pytest.raises(BadMessage):
            read_broadcast(body, FACTORS, ITEMS)


def test_equations_without_a_solution_are_refused(ask):
    model = {"vectors": [0.0] * (ITEMS * FACTORS), "weights": [1.0] * ITEMS, "regulariser": 0.0}
    objective = plain_objective(Objective(np.float32(1), np.float32(1)))
    [told] = ask({"kind": "unsolvable", "objective": objective, "model": model, "profile": PROFILE.tolist()})
    assert told == "detail.unsolvable"
