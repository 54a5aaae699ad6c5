"""The defences of a running server: on by default, the same function as in a rehearsal of attacks."""

import numpy as np
import pytest
from tests.service.federations import FACTORS, FPL_SERVER, PATIENT, in_a_loop, same_bits, serving

from federank.data.interactions import Interactions
from federank.federation.defences import Rows, defend
from federank.methods.fpl.method import FPLUpdate
from federank.service.server.methods import SERVER_METHODS
from federank.service.server.service import defences_of
from federank.service.server.settings import TrustSettings

DEFENDED = {"refuse_implausible": True, "row_quantile": None, "move_quantile": None}
MANY = Interactions.from_columns([0, 1] * 150, [f"i{number:03d}" for number in range(300)])


def update_of(items, biases, seed=0):
    vectors = np.random.default_rng(seed).normal(size=(len(items), FACTORS)).astype(np.float32)
    return FPLUpdate(np.array(items, np.int32), vectors, np.array(biases, np.float32))


@in_a_loop
async def test_an_update_that_no_client_can_have_sent_is_refused_and_counted(sqlite_store):
    async with serving(sqlite_store, {"target": 1} | PATIENT, DEFENDED) as running:
        device = await running.device()
        ticket = await device.ticket()
        loud = await device.send(ticket, update_of([3], [100.0]))
        assert (loud.status_code, loud.json()["error"]) == (422, "implausible")
        assert (await device.send(ticket, update_of([3, 5], [1.0, -1.0]))).status_code == 201


@in_a_loop
async def test_one_pushed_row_ends_within_the_bounds_of_the_catalogue(sqlite_store):
    rounds = {"target": 1} | PATIENT
    async with serving(sqlite_store, rounds, DEFENDED, data=MANY, triples=150, learning_rate=1.0) as running:
        before = running.service.latest.model
        device = await running.device()
        items = list(range(0, 300, 2))
        update = update_of(items, [50.0, *([-50.0 / 149] * 149)])
        update.vectors[0] = 30.0
        assert (await device.take_part(update)).status_code == 201
        await running.version(1)
        after = running.service.latest.model
        plain = before.vectors.copy(), before.content.tables["biases"].copy()
        plain[0][update.items] += update.vectors
        plain[1][update.items] += update.biases
        expected = defend(FPL_SERVER.defences, Rows(before.vectors, before.content.tables["biases"]), Rows(*plain)).rows
        assert same_bits(after.vectors, expected.vectors)
        assert same_bits(after.content.tables["biases"], expected.biases)
        assert after.content.tables["biases"][0] <= np.quantile(after.content.tables["biases"], 0.85)


def test_an_operator_may_loosen_each_bound():
    class Of:
        served = SERVER_METHODS["fpl"]

    assert defences_of(Of, TrustSettings()) == FPL_SERVER.defences
    assert defences_of(Of, TrustSettings(row_quantile=1.0)) == (1.0, FPL_SERVER.defences.move_quantile)
    with pytest.raises(Exception, match="row_quantile"):
        TrustSettings(row_quantile=0.2)
