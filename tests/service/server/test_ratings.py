"""A federation of ratings on the server: how it begins, what it accepts, and how its iterations pass."""

import io
import json
from contextlib import asynccontextmanager
from dataclasses import replace

import numpy as np
import pytest
from tests.rated_worlds import two_opinions
from tests.service.federations import PATIENT, establish_in, refusal, serving

import federank as fr
from federank.errors import DataError, ModelError, SettingError
from federank.federation import wire
from federank.federation.method import ItemGradients
from federank.methods.fedrec.method import PMF, RatingModel
from federank.methods.fedrec.reference import folded_in
from federank.service.server.bootstrap import FederationSpec, open_store
from federank.service.server.logs import Log
from federank.service.server.methods import SERVER_METHODS
from federank.service.server.model_versions import first_model
from federank.service.server.store.evaluation import Judged, judged_versions

FACTORS, ITEMS = 3, 24
SERVED_PMF, SERVED_SVDPP = SERVER_METHODS["pmf"], SERVER_METHODS["svdpp"]


def update(seed=0, items=(1, 4, 9), length=1.0):
    rng = np.random.default_rng(seed)
    chosen, user = np.array(items, np.int32), rng.normal(size=FACTORS)
    vectors = np.outer(rng.normal(size=len(chosen)), user / np.linalg.norm(user) * length).astype(np.float32)
    return ItemGradients(chosen, vectors)


def settings(**more):
    return PMF(factors=FACTORS, regulariser=0.0, **more)


def settle(chosen, data=None, trained=None):
    return SERVER_METHODS[chosen.name].settle(chosen, data or two_opinions(), trained)


def first_content(chosen, data=None, trained=None):
    return SERVER_METHODS[chosen.name].first_content(chosen, data or two_opinions(), trained)


def iterations(model):
    return int(model.content.overall["iteration"][0])


def step_of(chosen, clients):
    """A server step of `chosen` with this many enrolled clients: (model, uploads) -> content."""
    method = settle(chosen)
    return lambda model, uploads: SERVED_PMF.step(method, model, clients, uploads)


@asynccontextmanager
async def rated_service(store, chosen, trust, log=None):
    """A worker on a new federation of ratings, with rounds of two."""
    token = establish_in(store, chosen, SERVED_PMF, {"target": 2, "over_selection": 1.0} | PATIENT, two_opinions())
    async with serving(store, trust=trust, log=log, token=token) as running:
        yield running


def published(**more):
    return first_model(first_content(settle(settings(**more))))


def test_scale_and_rate_follow_the_data():
    assert (settle(settings()).step, settle(settings(step=0.5)).step) == (1.0, 0.5)
    chosen = (settings(), SERVED_SVDPP.kind(), settings(lowest=0.0, highest=100.0))
    assert [settle(one).learning_rate for one in chosen] == [0.2, 0.1, 0.01]
    with pytest.raises(DataError):
        settle(settings(highest=4.0))


def test_iteration_has_as_many_uploads_as_clients():
    model, step = published(), step_of(settings(), 4)
    for _ in range(3):
        model = model.followed_by(step(model, [update(), update(1)]))
    assert iterations(model) == 1, "six reports of four devices"
    model = model.followed_by(step(model, [update(), update(1)]))
    assert iterations(model) == 2
    assert np.flatnonzero(model.content.tables["reported"]).tolist() == [1, 4, 9]


def test_item_moves_by_the_mean_of_its_gradients():
    model, step = published(), step_of(settings(prior_count=0.0, learning_rate=0.8), 2)
    one, other = update(), update(1, items=(4, 7))
    after = model.followed_by(step(model, [one, other]))
    moves = model.vectors - after.vectors
    np.testing.assert_allclose(moves[4], 0.8 * (one.vectors[1] + other.vectors[0]) / 2, atol=1e-6)
    np.testing.assert_allclose(moves[7], 0.8 * other.vectors[1], atol=1e-6)
    again = after.followed_by(step(after, [one, other]))
    np.testing.assert_allclose((after.vectors - again.vectors)[7], 0.72 * other.vectors[1], atol=1e-6)


def test_small_rounds_move_an_item_as_far_as_one_large_round():
    """Ten rounds of two are an iteration of twenty clients; item 4 is in every upload, item 7 in one of five."""
    uploads = [update(n, items=(4, 7) if n % 5 == 0 else (4,)) for n in range(20)]
    all_users, small = published(), published()
    step = step_of(settings(prior_count=0.0, decay=1.0), 20)
    before = all_users.vectors
    all_users = all_users.followed_by(step(all_users, uploads))
    for iteration in range(3):
        start = small.vectors
        for n in range(0, 20, 2):
            small = small.followed_by(step(small, uploads[n : n + 2]))
        assert iterations(small) == iteration + 1
    # The first iteration is an estimate from few uploads; afterwards the counts are those of the iteration before.
    full, share = (all_users.vectors - before)[[4, 7]], (small.vectors - start)[[4, 7]]
    np.testing.assert_allclose(share[0], full[0], rtol=1e-4)
    ratio = np.linalg.norm(share[1]) / np.linalg.norm(full[1])
    assert 0.5 < ratio < 2, "an item in four uploads of twenty, estimated"


def test_prior_count_slows_items_with_few_reports():
    moved = {}
    for prior_count in (0.0, 9.0):
        model = published()
        step = step_of(settings(prior_count=prior_count), 10)
        uploads = [update(n, items=(1, 4) if n == 0 else (4,)) for n in range(10)]
        after = step(model, uploads).tables["vectors"]
        moved[prior_count] = np.linalg.norm(after - model.vectors, axis=1)
    assert moved[9.0][1] == pytest.approx(moved[0.0][1] / 10, rel=1e-3)
    assert moved[9.0][4] == pytest.approx(moved[0.0][4] * 10 / 19, rel=1e-3)


@pytest.mark.parametrize(("lowest", "highest"), [(1.0, 5.0), (0.0, 10.0), (-10.0, 10.0)])
def test_first_model_predicts_means(lowest, highest):
    model = first_model(first_content(settle(PMF(lowest=min(lowest, 1.0), highest=highest, regulariser=0.0))))
    rated, mean = np.arange(0, ITEMS, 2), (lowest + highest) / 2 + 1
    taste = folded_in(model.vectors[rated], np.full(len(rated), mean, np.float32), np.zeros(20, np.float32))
    np.testing.assert_allclose(model.vectors @ taste, mean, rtol=0.05)


def test_new_items_start_at_the_mean():
    for served in (SERVED_PMF, SERVED_SVDPP):
        chosen = settle(served.kind(factors=FACTORS))
        model = first_model(first_content(chosen))
        extended = served.extend(chosen, model.content, ITEMS + 2)
        np.testing.assert_allclose(extended.tables["vectors"][-1], model.vectors.mean(axis=0), rtol=1e-5)
        assert extended.tables["reported"][-2:].tolist() == [0, 0]
        after = first_model(extended)
        bodies = [update(items=(1, ITEMS + 1))]
        content = served.step(chosen, after, 5, bodies)
        assert content.state["reports"][[1, ITEMS, ITEMS + 1]].tolist() == [1, 0, 1]


def test_long_rows_are_shortened():
    method, model = settle(settings()), published()
    form = SERVED_PMF.form_of(method, SERVED_PMF.form(method, ITEMS, 2.0), model)
    body = wire.encode(update(length=50.0))
    assert SERVED_PMF.judge(body, form) > 0
    lengths = np.linalg.norm(SERVED_PMF.summand(body, form).vectors, axis=1)
    assert lengths.max() == pytest.approx(2.0, rel=1e-5)


def test_federation_continues_a_model_of_its_method():
    data = two_opinions()
    trained = fr.PMF(style="batch", factors=FACTORS, iterations=7).fit(data)
    content = first_content(settle(settings(), data, trained), data, trained)
    np.testing.assert_array_equal(content.tables["vectors"], trained.item_vectors)
    assert (content.overall["iteration"][0], content.tables["reported"].min()) == (7, 1)
    with pytest.raises(ModelError):
        settle(SERVED_SVDPP.kind(factors=FACTORS), data, trained)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"settings": {"triples": 4}}, "triples"),
        ({"texts": {"suggested_policy": {"sharing": "randomized-response"}}}, "randomized-response"),
    ],
)
def test_settings_of_likes_are_refused(sqlite_store, tmp_path, given, named):
    spec = FederationSpec(data=two_opinions, source="two", method="pmf", plain=True, accepts_few=True, **given)
    with pytest.raises(SettingError, match=named):
        open_store(sqlite_store, spec)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("served", [SERVED_PMF, SERVED_SVDPP])
def test_suggested_policy_has_a_virtual_rating_per_rating(served):
    advised = served.suggests(settle(served.kind()))
    assert (advised["filling"], advised["rho"], advised["sampling"]) == ("hybrid", 1.0, "fixed")


async def test_federation_of_ratings_over_http(sqlite_store):
    chosen = settings(rho=1.5)
    async with rated_service(sqlite_store, chosen, {"refuse_implausible": True}) as running:
        client, service = running.client, running.service
        told = (await client.get("/api/v1/federation")).json()
        assert (told["method"], told["recipe"]["step"], told["recipe"]["highest"]) == ("pmf", 1.0, 5.0)
        assert told["suggested_policy"]["rho"] == 1.5
        assert told["suggested_policy"]["sampling"] == "fixed"
        one, other = await running.devices(2)
        first = await one.ticket()
        implausible = replace(update(), vectors=np.eye(FACTORS, dtype=np.float32))
        assert refusal(await one.take_part(wire.encode(implausible))) == (422, "implausible")
        second = await other.ticket()
        for seed, device in enumerate((one, other)):
            await device.upload(wire.encode(update(seed)))
        await running.version(1)
        content = (await client.get("/api/v1/model")).content
        rows = wire.decode_rows(RatingModel, PMF(n_items=ITEMS, factors=FACTORS), content)
        assert (rows.version, rows.part.iteration[0], int(rows.part.reported.sum())) == (1, 1, 3)
        hits = ((one, first, "squared", 201), (other, second, "absolute", 201), (one, first, "cubed", 422))
        for device, ticket, measure, status in hits:
            hit = {"ticket": ticket, "hit": True, "measure": measure}
            assert (await client.post("/api/v1/hits", json=hit, headers=device.headers)).status_code == status
        [judged] = await service.read(lambda connection: judged_versions(connection, 5))
        assert judged == Judged(0, answers=1, yes=1, squared_answers=1, squared_yes=1)


async def test_aggregate_beyond_the_scale_is_rejected(sqlite_store):
    """Two uploads with gradients of 90 would make vectors ten times as long as those of five stars."""
    said, chosen = io.StringIO(), settings(prior_count=0.0)
    async with rated_service(sqlite_store, chosen, {"refuse_implausible": False}, Log(said)) as running:
        clients = await running.devices(2)
        for seed, client in enumerate(clients):
            await client.upload(wire.encode(update(seed, length=90.0)))
        await running.until(lambda view: view.rejected.get("count") == 1 and view.abandoned == 1)
        overview = await running.overview()
        assert overview["version"] == 0
        assert (overview["aggregates_rejected"], overview["rejected_aggregate"]["round"]) == (1, 0)
        assert overview["rounds"][-1]["state"] == "abandoned"
        for seed, client in enumerate(clients):
            await client.upload(wire.encode(update(seed)))
        await running.version(1)
    lines = [json.loads(line) for line in said.getvalue().splitlines()]
    assert [line["round"] for line in lines if line["event"] == "aggregate rejected"] == [0]


@pytest.mark.parametrize("served", [SERVED_PMF, SERVED_SVDPP])
def test_long_rows_and_nan_leave_the_scale(served):
    chosen = settle(served.kind(factors=FACTORS))
    first = first_content(chosen)
    assert served.why_wrong(chosen, first, first) is None
    for name in ("vectors", *(("implicit_vectors",) if chosen.implicit else ())):
        for value in (10.0, np.inf, np.nan):
            table = first.tables[name].copy()
            table[3, 0] = value
            worse = first._replace(tables={**first.tables, name: table})
            assert served.why_wrong(chosen, first, worse) is not None
    # A model that began so may go on as long as it gets no worse.
    long = first._replace(tables={**first.tables, "vectors": first.tables["vectors"] + 20})
    assert served.why_wrong(chosen, long, long) is None
