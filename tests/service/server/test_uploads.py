"""FPL's uploads: what is shortened, implausible and added to a round's sum, and the bounds on the model."""

from types import SimpleNamespace

import numpy as np
import pytest
from tests.service.federations import FACTORS, FPL_SERVER, ITEMS, ONE, refusal, same_bits, serving, some_update

from federank.data.interactions import Interactions
from federank.errors import BadMessage, SettingError
from federank.federation.defences import Rows, defend
from federank.federation.wire import encode
from federank.methods.fpl.method import FPL, FPLUpdate
from federank.service.server.model_versions import first_model
from federank.service.server.rounds import defences_of
from federank.service.server.settings import TrustSettings

FORM = FPL_SERVER.form(FPL(factors=3, triples=2), ITEMS, 2.0)


def rows(*lengths, factors=3):
    """An Update whose rows (vector and bias together) have these lengths, all numbers of a row being equal."""
    each = np.array(lengths, dtype=np.float32) / np.sqrt(np.float32(factors + 1))
    vectors = np.repeat(each[:, None], factors, axis=1)
    return FPLUpdate(np.arange(len(lengths), dtype=np.int32), vectors, each.copy())


def lengths_of(update):
    return np.sqrt((update.vectors.astype(np.float64) ** 2).sum(axis=1) + update.biases.astype(np.float64) ** 2)


@pytest.mark.parametrize("length", [2.01, 3.1, 100.0])
def test_long_rows_are_shortened_and_counted(length):
    body = encode(rows(1.0, length, 0.5))
    assert FPL_SERVER.judge(body, FORM) == 1
    np.testing.assert_allclose(lengths_of(FPL_SERVER.summand(body, FORM)), [1.0, 2.0, 0.5], rtol=1e-6)


def test_most_rows_are_two_per_pair():
    assert FPL_SERVER.judge(encode(some_update(1, rows=4)), FORM) == 0
    with pytest.raises(BadMessage):
        FPL_SERVER.judge(encode(some_update(1, rows=5)), FORM)


def test_uploads_are_scaled_down_to_the_clip():
    form = FPL_SERVER.form(FPL(factors=3, triples=2, clip=1.5), ITEMS, 2.0)
    summand = FPL_SERVER.summand(encode(rows(1.0, 2.0, 3.0)), form)
    np.testing.assert_allclose(lengths_of(summand), np.array([1.0, 2.0, 2.0]) / 2, rtol=1e-6)


IMPLAUSIBLE = [(100.0,), (1.0, -0.5), (8.0, -8.0), (5.0, 5.0, -10.0), (-8.0,)]
PLAUSIBLE = [(7.0, -7.0), (-7.0,), (3.5, 3.5, -1.0, -6.0)]


@pytest.mark.parametrize("biases", [*IMPLAUSIBLE, *PLAUSIBLE])
def test_uploads_that_no_pairs_give_are_implausible(biases):
    method, count = FPL(n_items=ITEMS, factors=3, triples=7), len(biases)
    model = first_model(FPL_SERVER.first_content(method, SimpleNamespace(n_items=ITEMS), None))
    body = encode(FPLUpdate(np.arange(count, dtype=np.int32), np.zeros((count, 3), np.float32), np.float32(biases)))
    assert (FPL_SERVER.implausible(method, model, body) is None) == (biases in PLAUSIBLE)


DEFENDED = {"refuse_implausible": True, "row_quantile": None, "move_quantile": None}
MANY = Interactions.from_columns([0, 1] * 150, [f"i{number:03d}" for number in range(300)])


def update_of(items, biases, seed=0):
    vectors = np.random.default_rng(seed).normal(size=(len(items), FACTORS)).astype(np.float32)
    return FPLUpdate(np.array(items, np.int32), vectors, np.array(biases, np.float32))


async def test_implausible_upload_is_refused(sqlite_store):
    async with serving(sqlite_store, ONE, DEFENDED) as running:
        device = await running.device()
        ticket = await device.ticket()
        assert refusal(await device.send(ticket, update_of([3], [100.0]))) == (422, "implausible")
        assert (await device.send(ticket, update_of([3, 5], [1.0, -1.0]))).status_code == 201


async def test_pushed_row_ends_within_the_bounds(sqlite_store):
    async with serving(sqlite_store, ONE, DEFENDED, data=MANY, triples=150, learning_rate=1.0) as running:
        before = running.service.latest.model
        update = update_of(list(range(0, 300, 2)), [50.0, *([-50.0 / 149] * 149)])
        update.vectors[0] = 30.0
        await running.upload(update)
        await running.version(1)
        after = running.service.latest.model
        plain = before.vectors.copy(), before.content.tables["biases"].copy()
        plain[0][update.items] += update.vectors
        plain[1][update.items] += update.biases
        given = Rows(before.vectors, before.content.tables["biases"])
        expected = defend(FPL_SERVER.kind.defences, given, Rows(*plain)).rows
        assert same_bits(after.vectors, expected.vectors)
        assert same_bits(after.content.tables["biases"], expected.biases)
        assert after.content.tables["biases"][0] <= np.quantile(after.content.tables["biases"], 0.85)


def test_operator_may_loosen_each_bound():
    config = SimpleNamespace(served=FPL_SERVER)
    assert defences_of(config, TrustSettings()) == FPL_SERVER.kind.defences
    assert defences_of(config, TrustSettings(row_quantile=1.0)) == (1.0, FPL_SERVER.kind.defences.move_quantile)
    with pytest.raises(SettingError, match="row_quantile"):
        TrustSettings(row_quantile=0.2)
