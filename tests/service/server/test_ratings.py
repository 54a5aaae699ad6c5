"""A federation of ratings on the server: how it begins, what it takes, and how its iterations pass."""

import io
import json
from contextlib import asynccontextmanager
from dataclasses import replace

import numpy as np
import pytest
from tests.rated_worlds import two_opinions
from tests.service.federations import PATIENT, WAITS, Device, establish_in, refusal, serving

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
    chosen, person = np.array(items, np.int32), rng.normal(size=FACTORS)
    vectors = np.outer(rng.normal(size=len(chosen)), person / np.linalg.norm(person) * length).astype(np.float32)
    return ItemGradients(chosen, vectors)


def settings(**more):
    return PMF(factors=FACTORS, regulariser=0.0, **more)


def settle(chosen, data, trained):
    return SERVER_METHODS[chosen.name].settle(chosen, data, trained)


def first_content(chosen, data, trained):
    return SERVER_METHODS[chosen.name].first_content(chosen, data, trained)


def iterations(model):
    return int(model.content.overall["iteration"][0])


def step_of(chosen, clients):
    """A server step of `chosen` with this many enrolled clients: (model, uploads) -> content."""
    method = settle(chosen, two_opinions(), None)
    return lambda model, uploads: SERVED_PMF.step(method, model, clients, uploads)


@asynccontextmanager
async def rated_service(store, chosen, trust, log=None):
    """A worker on a new federation of ratings, with rounds of two."""
    token = establish_in(store, chosen, SERVED_PMF, {"target": 2, "over_selection": 1.0} | PATIENT, two_opinions())
    async with serving(store, trust=trust, log=log, token=token) as running:
        yield running


def published(**more):
    data = two_opinions()
    return first_model(first_content(settle(settings(**more), data, None), data, None))


def test_the_scale_is_found_in_the_data_and_ratings_off_the_range_are_refused():
    data = two_opinions()
    assert settle(settings(), data, None).step == 1.0
    assert settle(settings(step=0.5), data, None).step == 0.5
    assert settle(settings(), data, None).learning_rate == 0.2
    assert settle(SERVED_SVDPP.kind(), data, None).learning_rate == 0.1
    assert settle(settings(lowest=0.0, highest=100.0), data, None).learning_rate == 0.01
    with pytest.raises(DataError, match="outside the declared range"):
        settle(settings(highest=4.0), data, None)


def test_an_iteration_passes_with_as_many_reports_as_there_are_clients():
    model, step = published(), step_of(settings(), 4)
    for _ in range(3):
        model = model.followed_by(step(model, [update(), update(1)]))
    assert iterations(model) == 1, "six reports of four devices"
    model = model.followed_by(step(model, [update(), update(1)]))
    assert iterations(model) == 2
    assert np.flatnonzero(model.content.tables["reported"]).tolist() == [1, 4, 9]


def test_with_every_client_and_no_prior_count_an_item_steps_by_the_mean_of_its_reports():
    model, step = published(), step_of(settings(prior_count=0.0, learning_rate=0.8), 2)
    one, other = update(), update(1, items=(4, 7))
    after = model.followed_by(step(model, [one, other]))
    moves = model.vectors - after.vectors
    np.testing.assert_allclose(moves[4], 0.8 * (one.vectors[1] + other.vectors[0]) / 2, atol=1e-6)
    np.testing.assert_allclose(moves[7], 0.8 * other.vectors[1], atol=1e-6)
    again = after.followed_by(step(after, [one, other]))
    np.testing.assert_allclose((after.vectors - again.vectors)[7], 0.72 * other.vectors[1], atol=1e-6)


def test_small_rounds_move_an_item_as_far_as_one_round_with_every_client():
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
def test_a_new_federation_predicts_every_client_s_mean(lowest, highest):
    data = two_opinions()
    chosen = PMF(lowest=min(lowest, 1.0), highest=highest, regulariser=0.0)
    model = first_model(first_content(settle(chosen, data, None), data, None))
    rated, mean = np.arange(0, ITEMS, 2), (lowest + highest) / 2 + 1
    taste = folded_in(model.vectors[rated], np.full(len(rated), mean, np.float32), np.zeros(20, np.float32))
    np.testing.assert_allclose(model.vectors @ taste, mean, rtol=0.05)


def test_items_that_are_added_start_as_the_mean_of_the_others():
    data = two_opinions()
    for served in (SERVED_PMF, SERVED_SVDPP):
        chosen = settle(served.kind(factors=FACTORS), data, None)
        model = first_model(first_content(chosen, data, None))
        extended = served.extend(chosen, model.content, ITEMS + 2)
        np.testing.assert_allclose(extended.tables["vectors"][-1], model.vectors.mean(axis=0), rtol=1e-5)
        assert extended.tables["reported"][-2:].tolist() == [0, 0]
        after = first_model(extended)
        bodies = [update(items=(1, ITEMS + 1))]
        content = served.step(chosen, after, 5, bodies)
        assert content.state["reports"][[1, ITEMS, ITEMS + 1]].tolist() == [1, 0, 1]


def test_rows_that_are_too_long_are_counted_and_shortened():
    method, model = settle(settings(), two_opinions(), None), published()
    form = SERVED_PMF.form_of(method, SERVED_PMF.form(method, ITEMS, 2.0), model)
    body = wire.encode(update(length=50.0))
    assert SERVED_PMF.judge(body, form) > 0
    lengths = np.linalg.norm(SERVED_PMF.summand(body, form).vectors, axis=1)
    assert lengths.max() == pytest.approx(2.0, rel=1e-5)


def test_a_federation_goes_on_from_a_trained_model_of_its_own_method():
    data = two_opinions()
    trained = fr.PMF(style="batch", factors=FACTORS, iterations=7).fit(data)
    content = first_content(settle(settings(), data, trained), data, trained)
    np.testing.assert_array_equal(content.tables["vectors"], trained.item_vectors)
    assert (content.overall["iteration"][0], content.tables["reported"].min()) == (7, 1)
    with pytest.raises(ModelError, match="svdpp"):
        settle(SERVED_SVDPP.kind(factors=FACTORS), data, trained)


def test_what_a_federation_of_ratings_cannot_be_is_refused(tmp_path):
    store = f"sqlite:///{tmp_path / 'f.sqlite'}"
    for spec, match in (
        ({"settings": {"triples": 4}}, "has no --triples"),
        ({"suggested_policy": {"sharing": "randomized-response"}}, "suggest-sharing is randomized-response"),
    ):
        with pytest.raises(SettingError, match=match):
            open_store(
                store,
                FederationSpec(data=two_opinions, source="two", method="pmf", plain=True, accepts_few=True, **spec),
            )
    assert not (tmp_path / "f.sqlite").exists()


@pytest.mark.parametrize("served", [SERVED_PMF, SERVED_SVDPP])
def test_clients_are_advised_to_hide_each_rating_behind_a_virtual_one(served):
    chosen = settle(served.kind(), two_opinions(), None)
    advised = served.suggests(chosen)
    assert (advised["filling"], advised["rho"], advised["sampling"]) == ("hybrid", 1.0, "fixed")


async def test_clients_are_sent_the_scale_the_suggestion_and_the_iteration(sqlite_store):
    chosen = settings(rho=1.5)
    async with rated_service(sqlite_store, chosen, {"refuse_implausible": True}) as running:
        client, service = running.client, running.service
        told = (await client.get("/api/v1/federation")).json()
        assert (told["method"], told["recipe"]["step"], told["recipe"]["highest"]) == ("pmf", 1.0, 5.0)
        assert told["suggested_policy"]["rho"] == 1.5
        assert told["suggested_policy"]["sampling"] == "fixed"
        malicious_user = await Device.enrolled(client)
        first = await malicious_user.ticket()
        made_up = replace(update(), vectors=np.eye(FACTORS, dtype=np.float32))
        answer = await malicious_user.take_part(wire.encode(made_up))
        assert refusal(answer) == (422, "implausible")
        for seed in range(2):
            person = malicious_user if seed == 0 else await Device.enrolled(client)
            second = await person.ticket()
            answer = await person.send(second, wire.encode(update(seed)))
            assert answer.status_code == 201, answer.text
        for _ in range(WAITS):
            content = (await client.get("/api/v1/model")).content
            rows = wire.decode_rows(RatingModel, PMF(n_items=ITEMS, factors=FACTORS), content)
            if rows.version == 1:
                break
        assert (rows.version, rows.part.iteration[0], int(rows.part.reported.sum())) == (1, 1, 3)
        for owner, ticket, measure in ((malicious_user, first, "squared"), (person, second, "absolute")):
            said = {"ticket": ticket, "hit": True, "measure": measure}
            assert (await client.post("/api/v1/hits", json=said, headers=owner.headers)).status_code == 201
        wrong = {"ticket": first, "hit": True, "measure": "cubed"}
        assert (await client.post("/api/v1/hits", json=wrong, headers=malicious_user.headers)).status_code == 422
        [judged] = await service.read(lambda connection: judged_versions(connection, 5))
        assert judged == Judged(0, answers=1, yes=1, squared_answers=1, squared_yes=1)


async def test_an_aggregate_that_leaves_the_scale_is_not_applied(sqlite_store):
    """Two uploads with gradients of 90 would make vectors ten times as long as those of five stars."""
    said, chosen = io.StringIO(), settings(prior_count=0.0)
    async with rated_service(sqlite_store, chosen, {"refuse_implausible": False}, Log(said)) as running:
        clients = await running.devices(2)
        for seed, client in enumerate(clients):
            sent = await client.take_part(wire.encode(update(seed, length=90.0)))
            assert sent.status_code == 201
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
def test_a_model_leaves_the_scale_by_long_rows_or_no_numbers(served):
    data = two_opinions()
    chosen = settle(served.kind(factors=FACTORS), data, None)
    first = first_content(chosen, data, None)
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
