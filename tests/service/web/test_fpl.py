"""How many pairs a round learns from is its owner's choice (FedeRank, 2021, section 3.1), as far as is allowed.

The page's device makes the message that Python's does. What is chosen holds for what the server gets, across reloads,
and in a federation that allows less; where no pairs are learnt from, nothing speaks of them.
"""

from dataclasses import replace

import numpy as np
import pytest
from tests.service.web.conftest import PAGE
from tests.service.web.conversing import conversing
from tests.service.web.questions import (
    CLOSE,
    HISTORY,
    ITEMS,
    POLICIES,
    SEED,
    USER,
    broadcasts,
    plain_broadcast,
    plain_outward,
    plain_policy,
    recipe_of,
)
from tests.worlds import decode_update

from federank.federation.client import Model, RoundVector, User
from federank.methods.registry import federated_method
from federank.privacy.ledger import Ledger
from federank.privacy.policy import shared_profile
from federank.service.client.methods import ClientMethod

FACTORS = 3
FEW, USUAL, MOST = 1, 12, 20


@pytest.fixture(scope="module")
def device(node):
    """The page's device under node."""
    with conversing(node, "fpl.mjs", PAGE / "methods" / "registry.js") as ask:
        yield ask


@pytest.mark.parametrize(("spec", "most", "pairs"), [(None, None, 4), (1, None, 1), (9, None, 4), (9, 6, 6)])
@pytest.mark.parametrize("kind", ["all", "fixed-subset, shared", "randomized-response"])
def test_page_sends_and_records_what_python_does(device, kind, spec, most, pairs):
    policy = replace(POLICIES[kind], triples=spec)
    recipe, _ = recipe_of(triples=4, factors=FACTORS, most_triples=most)
    [(number, model)] = broadcasts(1, FACTORS)
    rules = ClientMethod(federated_method("fpl").announced(recipe, ITEMS, secure=False), secure=False)
    taken = shared_profile(policy, SEED, USER, HISTORY, ITEMS)
    nothing = RoundVector(np.zeros(FACTORS, np.float32), None, frozenset())
    person = User(SEED, USER, policy, taken, nothing)
    ledger = Ledger()
    played = rules.play(person, Model(3, {"vectors": model.vectors, "biases": model.biases}), ledger, number)
    expected = decode_update(played.body, FACTORS, ITEMS)

    told = plain_policy(policy) | {"triples": spec}
    owner = {"seed": SEED, "user": USER, **plain_outward(taken)}
    answer = device({"recipe": recipe, "policy": told, "person": owner, "broadcast": plain_broadcast(number, model)})
    found = decode_update(bytes(answer["body"]), FACTORS, ITEMS)
    assert answer["pairs"] == pairs
    assert found.items.tolist() == expected.items.tolist()
    np.testing.assert_allclose(found.vectors, expected.vectors, **CLOSE)
    np.testing.assert_allclose(found.biases, expected.biases, **CLOSE)
    np.testing.assert_allclose(answer["vector"], played.vector.values, **CLOSE)
    assert answer["liked"] == expected.items[expected.biases > 0].tolist()
    assert answer["compared"] == int((expected.biases < 0).sum()) <= pairs
    rows = {row["item"]: row for row in ledger.to_rows()}
    assert {row["item"]: row for row in answer["changed"]} == rows
