"""Entries of messages: what clients, servers and the page send, and secure sums."""

import json
import shutil
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np
from safetensors.numpy import load

import federank as fr
from federank.federation.client import Model, RoundVector, User
from federank.federation.rng import HELPER, SERVER, TRIPLE, words, words_wrap_around
from federank.federation.secure import simulated_noise
from federank.methods.frugal.method import Frugal
from federank.methods.frugal.private_messages import directions_of, one_message
from federank.methods.frugal.private_plan import planned
from federank.methods.frugal.private_server import (
    PrivateModel,
    fold_of_cohort,
    received_from,
    values_of,
)
from federank.methods.frugal.records import FrugalModel
from federank.methods.registry import federated_method
from federank.privacy.accountant import mu_for
from federank.privacy.ledger import Ledger
from federank.privacy.policy import Policy, shared_profile
from federank.secagg import exchange as answer
from federank.secagg import keys as identities
from federank.secagg import ring as masks
from federank.secagg import ring as rounding
from federank.secagg import upload
from federank.secagg.proof.parameters import Parameters
from federank.service.client.methods import ClientMethod
from tests.golden.models import PAIRS, RATINGS, city
from tests.secagg import worlds as rounds_of_sums
from tests.service.web.conversing import conversing

PAGE = Path(fr.__file__).parent / "service" / "web"
ITEMS, FACTORS, SEED, USER, ROUND = 60, 6, 11, 2_000_000_123, 1007
HISTORY = np.array([2, 3, 5, 8, 13, 21, 34, 55, 56, 58], dtype=np.int32)
STARS = np.array([5, 1, 4, 3, 5, 2, 4, 3, 1, 5], dtype=np.float32)
POLICIES = {
    "all": Policy(sharing="all", pi=0.5, basis="history"),
    "fixed-subset": Policy(sharing="fixed-subset", pi=0.5, basis="shared"),
    "fixed-subset, budget and never-list": Policy(
        sharing="fixed-subset", pi=0.9, basis="shared", budget=4, never_items=frozenset({2, 3})
    ),
    "randomized-response": Policy(sharing="randomized-response", pi=0.6, item_epsilon=1.5, basis="shared"),
}
ALL = Policy(sharing="fixed-subset", pi=1.0, basis="shared")
PAIRS_ROUND = {name: PAIRS[name] for name in PAIRS if name.endswith(("regulariser", "rate", "order", "scale"))}
PAIRS_ROUND |= {"factors": FACTORS, "triples": 9, "most_triples": 9}
SQUARES_ROUND = {
    "factors": FACTORS,
    "messages": 3,
    "alpha": 0.0,
    "unobserved_weight": 1.0,
    "activity": 0.3,
    "clip": 0.8,
}
RATINGS_ROUND = {name: RATINGS[name] for name in ("learning_rate", "decay", "regulariser", "initial_range")}
RATINGS_ROUND |= {name: RATINGS[name] for name in ("item_gradients", "filling_start", "local_training")}
RATINGS_ROUND |= {
    "first_prediction": "zero",
    "factors": FACTORS,
    "t_predict": 0,
    "t_local": 3,
    "lowest": 1.0,
    "highest": 5.0,
    "step": 1.0,
}
VIRTUAL = {"average": {"filling": "average", "rho": 1.5}, "hybrid": {"filling": "hybrid", "rho": 1.5}}


def numbers(purpose, *shape):
    """Fixed numbers between -0.5 and 0.5, as 32-bit floats."""
    drawn = np.random.PCG64(purpose).random_raw(int(np.prod(shape)))
    return ((drawn >> 40) * 2.0**-24 - 0.5).astype(np.float32).reshape(shape)


def model_of(method):
    """The model version that a round begins with."""
    vectors, biases = numbers(1, ITEMS, FACTORS), numbers(2, ITEMS)
    if method == "fpl":
        return Model(3, {"vectors": vectors, "biases": biases})
    if method == "frugal":
        weights = numbers(3, ITEMS) + np.float32(0.6)
        return Model(3, {"vectors": vectors, "weights": weights}, {"regulariser": np.array([1.7])})
    tables = {"vectors": vectors, "reported": np.ones(ITEMS, np.int8)}
    tables |= {"implicit_vectors": numbers(4, ITEMS, FACTORS)} if method == "svdpp" else {}
    return Model(3, tables, {"iteration": np.array([4], np.int32)})


def sent(method, recipe, policy):
    """The parts of the message that a Python client sends in its first round."""
    known = ClientMethod(federated_method(method).announced(recipe, ITEMS, secure=False), secure=False)
    taken = shared_profile(policy, SEED, USER, HISTORY, ITEMS)
    nothing = RoundVector(np.zeros(FACTORS, np.float32), None, frozenset())
    ratings = STARS[np.isin(HISTORY, taken.profile)]
    person = User(SEED, USER, policy, taken, nothing, None, ratings)
    played = known.play(person, model_of(method), Ledger(), ROUND)
    vector = {} if method == "frugal" else {"own vector": played.vector.values}
    return parts_of(method, played.body) | vector


def parts_of(method, body):
    """The parts of a message by names of our own: those on the wire may change."""
    names = {
        "fpl": {"items": "items", "vectors": "vectors", "biases": "biases"},
        "frugal": {"strengths": "residuals", "vector": "own vector", "scale": "weight"},
    }
    ratings = {"items": "items", "vectors": "vectors"}
    implicit = {"implicit_items": "implicit items", "implicit_vectors": "implicit vectors"}
    names |= {"pmf": ratings, "svdpp": ratings | implicit}
    parts = load(bytes(body))
    return {names[method][name]: part for name, part in parts.items()}


def with_filling(filling):
    """The policy of a client that hides its ratings among virtual ones."""
    return replace(ALL, sampling="fixed", **VIRTUAL[filling])


def draws():
    """Random words, and the items that each policy lets out."""
    with words_wrap_around():
        drawn = [words(SEED, USER, TRIPLE, ROUND, counter) for counter in range(50)]
    profiles = {name: shared_profile(policy, SEED, USER, HISTORY, ITEMS) for name, policy in POLICIES.items()}
    values = {"words": np.array(drawn, dtype=np.uint32)}
    for name, taken in profiles.items():
        values |= {f"{name}: profile": taken.profile, f"{name}: allowed": taken.allowed}
    return values


def frugal_broadcast():
    """Item vectors as bytes with a scale per row."""
    method = Frugal(n_items=ITEMS, min_support=1, factors=FACTORS, seed=SEED, encoding="int8")
    known = model_of("frugal")
    model = FrugalModel(known.tables["vectors"], known.tables["weights"], np.array([1.7]))
    body = method.write(model, np.arange(ITEMS, dtype=np.int32), round_number=ROUND, version=ROUND)
    parts = load(body)
    return {name: parts[name] for name in ("codes", "scales", "weights")}


KEYS = {"round": bytes([3]) * 32, "sender": bytes([5]) * 32}
LENGTH = 200
SECRETS = upload.Secrets(bytes(range(16)), bytes(range(32, 64)), bytes(range(64, 80)))
PROOF_SEED = bytes(range(96, 128))


def randomness(purpose):
    """Fixed bytes in the place of the operating system's."""
    return lambda count: np.random.PCG64(purpose).random_raw(count // 8 + 1).astype("<u8").tobytes()[:count]


def sealing(public, info, content):
    """Seal with a known sender's key."""
    return rounds_of_sums.sealed_with(KEYS["sender"], public, info, content)[0]


def terms():
    """The round's terms."""
    return rounds_of_sums.offer(key=KEYS["round"], length=LENGTH)[0]


def message():
    """A message in integers, from values that are longer than the clip."""
    return rounding.round_message(numbers(5, LENGTH), 2.5, upload.rounding_chances(LENGTH, randomness(6)))


def secure_sum():
    """A sum of ten messages with both servers' noise, from masked shares; no statement's text is in it."""
    context = [bytes([number]) * 32 for number in range(10)]
    hidden = [masks.mask(bytes([number + 50]) * 32, context[number], LENGTH) for number in range(10)]
    shares = [rounding.in_ring(message() + number) - mask for number, mask in enumerate(hidden)]
    total = np.sum([*shares, *hidden], axis=0, dtype=np.uint32)
    noise = answer.draw_noise(300, LENGTH, randomness(8))
    opened = rounding.centred(answer.with_noise(total, noise))
    return {"message": message(), "masks": np.array(hidden), "shares": np.array(shares), "noise": noise, "sum": opened}


def private_messages():
    """Frugal's messages under noise, stage by stage."""
    model, chances = model_of("frugal"), upload.rounding_chances(ITEMS * (FACTORS - 1), randomness(9))
    known = directions_of(model.vectors, model.tables["weights"])
    return {
        "stage 0": one_message(0, ITEMS, HISTORY, None, chances[:ITEMS]),
        "stage 1": one_message(1, ITEMS, HISTORY, known, chances),
    }


def private_cohorts():
    """Frugal's model under noise after two cohorts of two stages each, as a server makes it."""
    profiles, n_items, stages = city().profiles, city().n_items, 2
    plan = planned(mu_for(8.0, 1e-6), stages, 60, n_items, FACTORS)
    zeros, none = np.zeros(n_items), np.zeros((n_items, 0))
    start = np.zeros((n_items, FACTORS), np.float32), np.ones(n_items, np.float32)
    model = PrivateModel(*start, zeros, zeros, none, none, received_from(none))
    for number in range(2 * stages):
        cohort, stage = divmod(number, stages)
        columns = FACTORS - 1 if stage else 1
        chances = upload.rounding_chances(n_items * columns, randomness(20 + number))
        known = directions_of(model.vectors, model.weights) if stage else None
        people = range(cohort, city().n_users, 2)
        total = np.sum([one_message(stage, n_items, profiles.of(user), known, chances) for user in people], axis=0)
        noisy = rounding.in_ring(total)
        for server in (SERVER, HELPER):
            noise = simulated_noise(SEED, stage, plan.deviations[stage], len(total), server)
            noisy = noisy + rounding.in_ring(noise)
        values = values_of(noisy, columns)
        sums = values if stage else values + model.summed[:, None]  # of both cohorts' first rounds
        model = fold_of_cohort(plan, SEED, 0.9, number, model, model.vectors, sums, rounds=cohort + 1)
    return {
        "products": model.vectors @ model.vectors.T,
        "weights": model.weights,
        "popularity": model.popularity,
    }


def sums_upload():
    """An upload as bytes; the digest of the round's terms is in it, and so are the names of their fields."""
    whole = upload.make_upload(terms(), message(), SECRETS, sealing)
    return {"upload": upload.encode_upload(whole)}


def checked_upload():
    """The same with a proof of its norm."""
    whole = upload.make_checked_upload(Parameters(64), terms(), message(), SECRETS, PROOF_SEED, sealing)
    return {"upload": upload.encode_upload(whole)}


@cache
def node():
    """The program that runs the page's JavaScript; nothing where it is missing."""
    return shutil.which("node") or shutil.which("nodejs")


def asked(program, question):
    """What the page's JavaScript answers."""
    with conversing(node(), program, PAGE) as ask:
        return ask([question])[0]


def page_pairs(kind):
    """The message of the page's FPL client."""
    policy, model = POLICIES[kind], model_of("fpl")
    taken, first = shared_profile(policy, SEED, USER, HISTORY, ITEMS), numbers(10, FACTORS)
    person = {"seed": SEED, "user": USER, "vector": first.tolist(), "pi": policy.pi, "wish": None}
    person |= {name: getattr(taken, name).tolist() for name in ("profile", "real", "allowed")}
    broadcast = {"round": ROUND, "vectors": model.vectors.ravel().tolist(), "biases": model.tables["biases"].tolist()}
    question = {"kind": "rounds", "recipe": PAIRS_ROUND, "person": person | {"lifelong": taken.lifelong}}
    [found] = asked("answers.mjs", question | {"broadcasts": [broadcast]})
    parts = {name: np.array(found["update"][name], np.float32) for name in ("vectors", "biases")}
    return parts | {"items": found["update"]["items"], "own vector": np.array(found["vector"], np.float32)}


def page_squares():
    """The message of the page's Frugal client."""
    model = model_of("frugal")
    told = {"vectors": model.vectors.ravel().tolist(), "weights": model.tables["weights"].tolist(), "regulariser": 1.7}
    question = {"kind": "squares", "objective": {"liked": 1.0, "unobserved": 1.0}, "model": told}
    question |= {"weighing": {"activity": 0.3, "clip": 0.8}, "profile": HISTORY.tolist()}
    return parts_of("frugal", asked("answers.mjs", question)["bytes"])


def page_ratings(filling):
    """The message of the page's PMF client."""
    broadcast = {"round": ROUND, "iteration": 4, "vectors": model_of("pmf").vectors.ravel().tolist()}
    person = {"seed": SEED, "user": USER, "items": HISTORY.tolist(), "ratings": STARS.tolist()}
    question = {"kind": "ratings", "recipe": RATINGS_ROUND, "hidden": VIRTUAL[filling] | {"sampling": "fixed"}}
    question |= {"items": ITEMS, "person": person, "broadcasts": [broadcast]}
    [found] = asked("answers.mjs", question)
    return parts_of("pmf", found["bytes"]) | {"own vector": np.array(found["vector"], np.float32)}


def page_sums(kind):
    """The page's upload of a secure sum, as bytes."""
    secrets = {"id": SECRETS.id.hex(), "seed": SECRETS.seed.hex(), "blind": SECRETS.blind.hex()}
    own = {"privateKey": KEYS["sender"].hex(), "publicKey": identities.public_key_of(KEYS["sender"]).hex()}
    question = {"kind": kind, "offer": json.loads(terms().to_bytes()), "message": message().tolist()}
    question |= {"secrets": secrets, "ephemeral": own, "projections": 64, "proofSeed": PROOF_SEED.hex()}
    return {"upload": bytes.fromhex(asked("secagg.mjs", question))}


ENTRIES = (
    {"draws and shared profiles": draws}
    | {f"client, FPL: {name}": partial(sent, "fpl", PAIRS_ROUND, policy) for name, policy in POLICIES.items()}
    | {"client, Frugal": partial(sent, "frugal", SQUARES_ROUND, ALL), "server, Frugal": frugal_broadcast}
    | {
        f"client, {method}: {filling}": partial(sent, method, RATINGS_ROUND, with_filling(filling))
        for method in ("pmf", "svdpp")
        for filling in VIRTUAL
    }
    | {"secure sum": secure_sum, "secure sum: private messages": private_messages}
    | {
        "server, Frugal: private cohorts": private_cohorts,
        "secure sum: upload": sums_upload,
        "secure sum: upload with proof": checked_upload,
    }
)
PAGE_ENTRIES = (
    {f"page, FPL: {name}": partial(page_pairs, name) for name in POLICIES}
    | {"page, Frugal": page_squares}
    | {f"page, pmf: {filling}": partial(page_ratings, filling) for filling in VIRTUAL}
    | {"page, secure sum: upload": partial(page_sums, "upload")}
    | {"page, secure sum: upload with proof": partial(page_sums, "checked")}
)
