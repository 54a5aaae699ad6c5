"""Malicious clients over HTTP: the attacks of the rehearsal, sent to a server by devices that enrol like everyone
else.
"""

from dataclasses import replace

import numpy as np
import pytest
from tests.service.federations import FACTORS, PATIENT, in_a_loop, serving

from federank.data.interactions import Interactions
from federank.federation.method import Client, UserVector
from federank.methods.fpl.poisoning import POISONING_ATTACKS, PoisoningAttack
from federank.methods.fpl.settings import FPLSettings, recipe_for

ITEMS, HONEST, LIARS, ROUNDS, TRIPLES = 120, 12, 2, 6, 20
TARGET = ITEMS - 1  # in no one's history
WORLD = Interactions.from_columns([0, 1] * (ITEMS // 2), [f"i{number:03d}" for number in range(ITEMS)])
SETTINGS = FPLSettings(factors=FACTORS, triples=TRIPLES, learning_rate=0.1)
ON = {"refuse_implausible": True, "row_quantile": None, "move_quantile": None}
OFF = {"refuse_implausible": False, "row_quantile": 1.0, "move_quantile": 1.0}


def person(user):
    """Someone who likes every other item of one half of the catalogue; a malicious client says to like the target
    alone.
    """
    rng = np.random.default_rng(user)
    profile = np.sort(rng.choice(ITEMS // 2, 20, replace=False) + (ITEMS // 2 - 1) * (user % 2)).astype(np.int32)
    if user >= HONEST:
        profile = np.array([TARGET], dtype=np.int32)
    vector = rng.normal(size=FACTORS).astype(np.float32) / 10
    return Client(SETTINGS.seed, user, 0, profile, state=UserVector(vector))


def honest_update(clients, user, model, number):
    """A client's update; its vector moves."""
    method = SETTINGS.method(ITEMS)
    broadcast = method.records.sent(model.vectors, model.content.tables["biases"])
    result = replace(method, triples=TRIPLES).client_update(replace(clients[user], round=number), broadcast)
    clients[user] = replace(clients[user], state=result.state)
    return result.update


def loud_update(model):
    recipe = recipe_for(SETTINGS, np.array([1]), ITEMS, np.ones(1))
    taste, rng = np.zeros(FACTORS, dtype=np.float32), np.random.default_rng(1)
    biases = model.content.tables["biases"]
    return POISONING_ATTACKS["loud", "push"](
        PoisoningAttack(recipe, model.vectors, biases, TARGET, TRIPLES, LIARS, 100.0, taste, rng)
    )


async def exposure(store, attack, trust):
    """The share of honest people who see the target among their first ten; and what the malicious clients were
    answered.
    """
    people, answers = [person(user) for user in range(HONEST + LIARS)], set()
    target = HONEST + (0 if attack == "loud" and trust is ON else LIARS)
    rounds = {"target": target, "over_selection": 2.0} | PATIENT
    async with serving(store, rounds, trust, data=WORLD, triples=TRIPLES, learning_rate=0.1) as running:
        devices = [await running.device() for _ in people]
        for number in range(ROUNDS):
            model = running.service.latest.model
            for user in reversed(range(len(people))):  # malicious clients are in no hurry, and in time
                lies = attack == "loud" and user >= HONEST
                update = loud_update(model) if lies else honest_update(people, user, model, number)
                answer = await devices[user].take_part(update)
                if user >= HONEST:
                    answers.add(answer.status_code)
            await running.version(number + 1)
        model = running.service.latest.model
    scores = (
        np.stack([device.state.vector for device in people[:HONEST]]) @ model.vectors.T + model.content.tables["biases"]
    )
    for row, device in enumerate(people[:HONEST]):
        scores[row, device.items] = -np.inf
    first_ten = np.argsort(-scores, axis=1)[:, :10]
    return float((first_ten == TARGET).any(axis=1).mean()), answers


@pytest.mark.slow
@pytest.mark.parametrize(("attack", "answered"), [("loud", {422}), ("histories", {201})])
@in_a_loop
async def test_a_pushed_item_is_seen_by_all_without_the_defences_and_by_few_with_them(tmp_path, attack, answered):
    undefended, taken = await exposure(f"sqlite:///{tmp_path / 'off.sqlite'}", attack, OFF)
    defended, answers = await exposure(f"sqlite:///{tmp_path / 'on.sqlite'}", attack, ON)
    assert (undefended, taken) == (1.0, {201})
    assert answers == answered
    assert defended < 0.5
