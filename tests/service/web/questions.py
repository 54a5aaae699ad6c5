"""Questions about whole rounds, with Python's own answers: asked of the page's protocol under node and in a browser.

Choices (pairs, shared profiles, which rows are sent) must be equal. Floats may differ by `CLOSE`: JavaScript rounds a
sum of products once, Python after every step, so that a vector that moved 132 times is off in its last places.
"""

import numpy as np

from federank.federation.rng import USER_FACTORS, normal_rows, words_wrap_around
from federank.methods.fpl.method import compute, home_vector, share
from federank.methods.fpl.settings import FPLSettings, own_triples, recipe_for
from federank.methods.fpl.wire import Broadcast, Private, by_sign
from federank.privacy.ledger import Ledger
from federank.privacy.policy import Policy, shared_profile

CLOSE = {"rtol": 1e-5, "atol": 1e-6}
ITEMS, SEED, USER = 60, 11, 2_000_000_123
HISTORY = np.array([2, 3, 5, 8, 13, 21, 34, 55, 56, 58], dtype=np.int32)
POLICIES = {
    "all": Policy(sharing="all", pi=0.4, basis="history"),
    "all, all": Policy(sharing="all", pi=1.0, basis="history"),
    "all with a budget": Policy(sharing="all", pi=0.5, basis="history", budget=4),
    "fixed-subset": Policy(sharing="fixed-subset", pi=0.3, basis="history"),
    "fixed-subset, all": Policy(sharing="fixed-subset", pi=1.0, basis="shared"),
    "fixed-subset with a budget": Policy(sharing="fixed-subset", pi=0.9, basis="shared", budget=5),
    "fixed-subset, shared": Policy(sharing="fixed-subset", pi=0.3, basis="shared"),
    "fixed-subset with a never-list": Policy(
        sharing="fixed-subset", pi=0.5, basis="shared", never_items=frozenset({2, 3, 5, 8, 40})
    ),
    "randomized-response": Policy(sharing="randomized-response", pi=0.6, item_epsilon=1.5, basis="shared"),
    "randomized-response with a never-list": Policy(
        sharing="randomized-response", pi=0.9, item_epsilon=0.5, basis="shared", never_items=frozenset({13, 21})
    ),
}


def recipe_of(**settings):
    """What `GET /federation` says of a recipe, and the recipe itself."""
    chosen = FPLSettings(**({"factors": 20, "triples": 132, "seed": SEED} | settings))
    names = ("factors", "learning_rate", "user_regulariser", "positive_regulariser", "negative_regulariser")
    told = {name: getattr(chosen, name) for name in (*names, "order", "mask", "initial_scale")}
    recipe = recipe_for(chosen, np.array([len(HISTORY)]), ITEMS, np.ones(1))
    return told | {"triples": int(chosen.triples), "most_triples": chosen.most_triples}, recipe


def broadcasts(rounds, factors=20):
    """Broadcasts of rounds far apart, of a model that drifts."""
    rng = np.random.default_rng(3)
    vectors = rng.normal(0, 0.3, (ITEMS, factors)).astype(np.float32)
    biases = rng.normal(0, 0.3, ITEMS).astype(np.float32)
    for number in range(rounds):
        yield Broadcast(7 + 1000 * number, 3, np.arange(ITEMS, dtype=np.int32), vectors, biases)
        vectors = vectors + rng.normal(0, 0.05, vectors.shape).astype(np.float32)


def plain_broadcast(broadcast):
    return {
        "round": broadcast.round_number,
        "vectors": broadcast.vectors.ravel().tolist(),
        "biases": broadcast.biases.tolist(),
    }


def plain_policy(policy):
    return {
        "sharing": policy.sharing,
        "pi": policy.pi,
        "item_epsilon": policy.item_epsilon,
        "basis": policy.basis,
        "budget": policy.budget,
        "neverItems": sorted(policy.never_items),
    }


def plain_outward(taken):
    return {
        "profile": taken.profile.tolist(),
        "real": taken.real.tolist(),
        "allowed": taken.allowed.tolist(),
        "lifelong": taken.lifelong,
    }


def question_of_outward(policy, sent=()):
    """A policy's shared profile: the question, and Python's answer."""
    expected = shared_profile(policy, SEED, USER, HISTORY, ITEMS, np.array(sent, dtype=np.int32))
    question = {"seed": SEED, "user": USER, "history": HISTORY.tolist(), "items": ITEMS, "sent": list(sent)}
    return {"kind": "outward", "policy": plain_policy(policy), **question}, plain_outward(expected)


def question_of_rounds(policy, rounds=2, **settings):
    """Some rounds of one device: the question, and what Python's reference makes of them."""
    told, recipe = recipe_of(**settings)
    triples = own_triples(FPLSettings(triples=told["triples"], most_triples=told["most_triples"]), policy.triples)
    taken = shared_profile(policy, SEED, USER, HISTORY, ITEMS)
    first = normal_rows(1, recipe.factors, seed=SEED, purpose=USER_FACTORS, scale=0.1, first_row=USER)[0]
    device = Private(USER, first, taken.profile, policy.pi, taken.allowed, triples, taken.lifelong)
    person = {"seed": SEED, "user": USER, "vector": first.tolist(), "pi": policy.pi, **plain_outward(taken)}
    person["wish"] = policy.triples
    sent, expected = list(broadcasts(rounds, recipe.factors)), []
    with words_wrap_around():
        for broadcast in sent:
            gradients = compute(recipe, device, broadcast)
            expected.append((gradients, share(recipe, device, broadcast.round_number, gradients), device.vector))
    question = {"kind": "rounds", "recipe": told, "person": person, "broadcasts": list(map(plain_broadcast, sent))}
    return question, expected


def assert_same_rounds(answer, expected):
    """The same pairs and rows, and floats within CLOSE."""
    for found, (gradients, update, vector) in zip(answer, expected, strict=True):
        assert found["positives"] == gradients.positives.tolist()
        assert found["negatives"] == gradients.negatives.tolist()
        assert found["update"]["items"] == update.items.tolist()
        np.testing.assert_allclose(found["update"]["vectors"], update.vectors.ravel(), **CLOSE)
        np.testing.assert_allclose(found["update"]["biases"], update.biases, **CLOSE)
        np.testing.assert_allclose(found["vector"], vector, **CLOSE)


def question_of_ledger(policy):
    """What a ledger holds after some rounds: the question, and Python's answer."""
    taken, ledger, rounds = shared_profile(policy, SEED, USER, HISTORY, ITEMS), Ledger(), []
    _, expected = question_of_rounds(policy, rounds=4, triples=9)
    for number, (_, update, _) in enumerate(expected):
        # In the last two rounds what was real is a decoy and the other way round, as after a change of mind.
        now = taken if number < 2 else taken._replace(real=~taken.real)
        ledger.record(number, now, *by_sign(update))
        rows = {"items": update.items.tolist(), "biases": update.biases.tolist()}
        rounds.append({"round": number, "outward": plain_outward(now), "update": rows})
    question = {"kind": "ledger", "rounds": rounds, "history": HISTORY.tolist()}
    answer = {"rows": ledger.to_rows(), "disclosed": ledger.disclosed(HISTORY)}
    return question, answer | {"liked": ledger.liked().tolist(), "really_liked": ledger.really_liked().tolist()}


def question_of_home():
    """A home vector and the best items by it: the question, and Python's answer."""
    told, recipe = recipe_of()
    [broadcast] = broadcasts(1)
    vector = home_vector(recipe, SEED, USER, HISTORY, broadcast)
    scores = broadcast.vectors @ vector + broadcast.biases
    scores[HISTORY] = -np.inf
    question = {"seed": SEED, "user": USER, "history": HISTORY.tolist(), "n": 10}
    asked = {"kind": "home", "recipe": told, "broadcast": plain_broadcast(broadcast), **question}
    return asked, (vector, np.argsort(-scores, kind="stable")[:10].tolist())
