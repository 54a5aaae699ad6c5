"""Questions about whole rounds, with Python's own answers: asked of the page's protocol under node and in a browser.

Choices (pairs, shared profiles, which rows are sent) must be equal. Floats may differ by `CLOSE`: JavaScript rounds a
sum of products once, Python after every step, so that a vector that moved 132 times is off in its last places.
"""

from dataclasses import asdict

import numpy as np

from federank.federation.method import Client, UserVector
from federank.federation.rng import USER_FACTORS, normal_rows, words_wrap_around
from federank.methods.fpl.method import FPL, NO_BITS, Draw, FPLModel, Profile, draw_pair
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
    """What `GET /federation` says of the method, and the method itself."""
    method = FPL(n_items=ITEMS, **({"factors": 20, "triples": 132, "seed": SEED} | settings))
    told = asdict(method)
    del told["pi"]
    return told, method


def broadcasts(rounds, factors=20):
    """Broadcasts of rounds far apart, of a model that drifts."""
    rng = np.random.default_rng(3)
    vectors = rng.normal(0, 0.3, (ITEMS, factors)).astype(np.float32)
    biases = rng.normal(0, 0.3, ITEMS).astype(np.float32)
    for number in range(rounds):
        yield 7 + 1000 * number, FPLModel(vectors, biases)
        vectors = vectors + rng.normal(0, 0.05, vectors.shape).astype(np.float32)


def plain_broadcast(round_number, model):
    return {"round": round_number, "vectors": model.vectors.ravel().tolist(), "biases": model.biases.tolist()}


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
    told, method = recipe_of(**settings)
    taken = shared_profile(policy, SEED, USER, HISTORY, ITEMS)
    method = method.chosen(policy, 1.0 if taken.lifelong else policy.pi)
    first = normal_rows(1, method.factors, seed=SEED, purpose=USER_FACTORS, scale=0.1, first_row=USER)[0]
    state, withheld = UserVector(first), taken.profile[~taken.allowed]
    person = {"seed": SEED, "user": USER, "vector": first.tolist(), "pi": policy.pi, **plain_outward(taken)}
    person["wish"] = policy.triples
    sent, expected = list(broadcasts(rounds, method.factors)), []
    for number, model in sent:
        client = Client(SEED, USER, number, taken.profile, state=state, withheld=withheld)
        update, state, *_ = method.client_update(client, model)
        expected.append((pairs_of(method, taken.profile, number), update, state.vector))
    models = [plain_broadcast(*one) for one in sent]
    return {"kind": "rounds", "recipe": told, "person": person, "broadcasts": models}, expected


def pairs_of(method, profile, number):
    """The positives and negatives of a round, in the order in which they are drawn."""
    stretch = Profile(profile, 0, len(profile), NO_BITS, ITEMS)
    with words_wrap_around():
        pairs = [draw_pair(Draw(SEED, USER, number, counter), stretch) for counter in range(method.triples)]
    return [int(profile[position]) for position, *_ in pairs], [int(negative) for _, negative, _ in pairs]


def assert_same_rounds(answer, expected):
    """The same pairs and rows, and floats within CLOSE."""
    for found, (pairs, update, vector) in zip(answer, expected, strict=True):
        assert (found["positives"], found["negatives"]) == pairs
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
        raised = update.biases > 0
        ledger.record(number, now, update.items[raised], update.items[~raised])
        rows = {"items": update.items.tolist(), "biases": update.biases.tolist()}
        rounds.append({"round": number, "outward": plain_outward(now), "update": rows})
    question = {"kind": "ledger", "rounds": rounds}
    answer = {"rows": ledger.to_rows()}
    return question, answer | {"liked": ledger.liked().tolist(), "really_liked": ledger.really_liked().tolist()}


def question_of_home():
    """A home vector and the best items by it: the question, and Python's answer."""
    told, method = recipe_of()
    [(number, model)] = broadcasts(1)
    vector = method.fold_in(Client(SEED, USER, 0, HISTORY), model)
    scores = method.scores(model, vector)
    scores[HISTORY] = -np.inf
    question = {"seed": SEED, "user": USER, "history": HISTORY.tolist(), "n": 10}
    asked = {"kind": "home", "recipe": told, "broadcast": plain_broadcast(number, model), **question}
    return asked, (vector, np.argsort(-scores, kind="stable")[:10].tolist())
