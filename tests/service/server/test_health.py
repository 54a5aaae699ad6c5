"""A federation's health follows from its rounds, model and servers, and is the same wherever it is shown."""

import numpy as np
import pytest
from tests.service.federations import FRUGAL_SERVER, PATIENT, establish_in, eventually, opened, serving, stored

import federank as fr
from federank.data.interactions import Interactions
from federank.federation.method import Client
from federank.federation.server import Content
from federank.service.server.methods import SERVER_METHODS
from federank.service.server.metrics import ATTENTION, FAILING, LEVELS, OK, HealthInputs, health_of, round_due
from federank.service.server.model_versions import Extent, extent_of, first_model, signals_of
from federank.service.server.rounds import capped_items
from federank.service.server.store.queries import (
    RECENT,
    RecentRounds,
    close_round,
    count_refusals,
    note_rejected,
    open_round,
    recent_rounds,
)
from federank.service.server.store.schema import create_tables
from federank.service.server.store.versions import model_with_state, publish

AGGREGATED, DISCARDED = False, True


def state_of(*discarded, **given):
    health = health_of(HealthInputs(recent=RecentRounds(discarded, given.pop("refused", 0)), **given))
    return health.state, [(reason.code, reason.count, reason.of) for reason in health.reasons]


@pytest.mark.parametrize(
    ("discarded", "expected"),
    [
        ([], (OK, [])),
        ([AGGREGATED] * 10, (OK, [])),
        ([DISCARDED] * 5, (FAILING, [("no-round-aggregated", 5, 5)])),
        ([DISCARDED] * 3 + [AGGREGATED] * 7, (FAILING, [("no-round-aggregated", 3, 10)])),
        ([DISCARDED] * 2 + [AGGREGATED] * 8, (OK, [])),
        ([AGGREGATED] + [DISCARDED] * 9, (ATTENTION, [("rounds-discarded", 9, 10)])),
        ([DISCARDED], (ATTENTION, [("rounds-discarded", 1, 1)])),
    ],
)
def test_discarded_rounds_decide_the_state(discarded, expected):
    assert state_of(*discarded) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"seconds_without_round": 599.0}, (OK, [])),
        ({"seconds_without_round": 660.0}, (ATTENTION, [("no-recent-round", 11, 7)])),
        ({"seconds_without_round": None}, (OK, [])),
        ({"free_disk": 5 * 10**9}, (OK, [])),
        ({"free_disk": 5 * 10**8}, (ATTENTION, [("disk-low", 500, 0)])),
        ({"free_disk": 5 * 10**7}, (FAILING, [("disk-low", 50, 0)])),
        ({"free_disk": None}, (OK, [])),
    ],
)
def test_overdue_rounds_and_full_disks_need_attention(given, expected):
    assert state_of(AGGREGATED, round_due=round_due(60.0, 0.0), clients=7, **given) == expected


def test_when_a_round_is_due():
    assert round_due(120.0, 0.0) == 1200
    assert round_due(1.0, 0.0) == 600, "and within ten minutes"
    assert round_due(60.0, 86_400.0) == 172_800


@pytest.mark.parametrize(("uploads", "refused", "is_much"), [(100, 4, False), (10, 5, True), (100, 20, False)])
def test_many_refused_uploads_need_attention(uploads, refused, is_much):
    recent = RecentRounds((AGGREGATED,), uploads=uploads, refused_uploads=refused)
    codes = [reason.code for reason in health_of(HealthInputs(recent=recent)).reasons]
    assert codes == (["uploads-refused"] if is_much else [])


@pytest.mark.parametrize(
    ("model", "highest", "code"),
    [
        (Extent(is_finite=False), None, "model-not-finite"),
        (Extent(longest_row=45.0), 5.0, "model-out-of-scale"),
        (Extent(longest_row=1e9), None, "model-out-of-scale"),
    ],
)
def test_a_diverged_model_is_failing(model, highest, code):
    assert state_of(*[AGGREGATED] * 10, model=model, highest=highest) == (FAILING, [(code, 0, 0)])


def test_the_worst_reason_decides():
    state, reasons = state_of(DISCARDED, AGGREGATED, AGGREGATED, refused=1, helper_fault="helper-away")
    assert state == FAILING
    assert reasons == [("helper-away", 0, 0), ("rounds-discarded", 1, 3), ("aggregates-refused", 1, 3)]
    assert state_of(AGGREGATED, store_away=True)[0] == FAILING


def test_refused_aggregates_of_recent_rounds_count(sqlite_store):
    with opened(sqlite_store) as connection:
        create_tables(connection)
        for number in range(RECENT + 2):
            open_round(connection, number, 0)
            with connection.transaction():
                connection.run("UPDATE rounds SET state = 'aggregated' WHERE number = ?", number)
                if number in (0, 5, RECENT + 1):
                    note_rejected(connection, number, "off the scale")
        assert recent_rounds(connection) == RecentRounds((AGGREGATED,) * RECENT, 2)


def test_figures_of_recent_rounds(sqlite_store):
    with opened(sqlite_store) as connection:
        create_tables(connection)
        for number in range(3):
            open_round(connection, number, 0)
            with connection.transaction():
                ended = "aggregated" if number < 2 else "abandoned", 100.0 + number, number
                connection.run("UPDATE rounds SET state = ?, reports = 4, ended = ? WHERE number = ?", *ended)
        with connection.transaction():
            count_refusals(connection, 1, {"late": 9, "malformed": 2})
        recent = recent_rounds(connection)
        assert (recent.uploads, recent.refused_uploads, recent.last_aggregated) == (12, 2, 101.0)


async def shown_state(running):
    """The state and its reasons, as the public status, the overview and the gauge have them."""
    status = (await running.get("status"))["health"]
    overview = (await running.overview())["health"]
    text = await running.metrics()
    [gauge] = [line.split()[1] for line in text.splitlines() if line.startswith("federank_health ")]
    shown = [(health["state"], [reason["code"] for reason in health["reasons"]]) for health in (status, overview)]
    assert shown[0] == shown[1]
    assert float(gauge) == LEVELS[status["state"]]
    return shown[0]


async def until(running, state):
    """Wait for a state; how it is shown then."""
    await eventually(lambda: running.service.health().state == state)
    return await shown_state(running)


async def test_all_rounds_discarded_is_failing(store):
    rounds = {"target": 2, "minimum": 2, "deadline": 0.05, "over_selection": 1.0}
    async with serving(store, rounds) as running:
        assert await shown_state(running) == (OK, [])
        device = await running.device()
        while running.service.latest.abandoned < 5:
            await device.work(wait=1)  # a round's time begins with its first ticket
        assert await until(running, FAILING) == (FAILING, ["no-round-aggregated"])
        assert stored(store, "SELECT COUNT(*) FROM rounds WHERE state = 'aggregated'") == [(0,)]


def establish_ratings(address):
    """Establish a federation of PMF on a scale of 1 to 5; the operator's token."""
    data = Interactions.from_columns([0] * 8, list(range(8)), [1.0, 5.0] * 4)
    served = SERVER_METHODS["pmf"]
    return establish_in(address, served.kind(factors=3), served, PATIENT, data)


def publish_next(address, change):
    """Publish a version whose vectors are changed."""
    with opened(address) as connection:
        model = model_with_state(connection)
        tables = {**model.content.tables, "vectors": change(model.vectors.copy())}
        open_round(connection, 0, model.version)
        close_round(connection, 0, 0)
        model = model.followed_by(model.content._replace(tables=tables))
        publish(connection, 0, model, {"drift": 1.0, "seconds": 0.0}, False)
        return model


def broken(vectors):
    vectors[3, 1] = np.nan
    return vectors


@pytest.mark.parametrize(
    ("change", "code"),
    [(broken, "model-not-finite"), (lambda vectors: vectors + np.float32(26), "model-out-of-scale")],
)
async def test_diverged_published_model_is_failing(sqlite_store, change, code):
    token = establish_ratings(sqlite_store)
    model = publish_next(sqlite_store, change)
    assert extent_of(model).longest_row > 40 or not extent_of(model).is_finite
    async with serving(sqlite_store, token=token) as running:
        assert await shown_state(running) == (FAILING, [code])
        assert (await running.client.get("/ready")).status_code == 200, "only the federation fails, not the process"


ITEMS, FACTORS = 300, 8


def model(vectors):
    return first_model(Content({"vectors": np.asarray(vectors, dtype=np.float32)}))


@pytest.fixture
def vectors():
    return np.random.default_rng(1).normal(size=(ITEMS, FACTORS))


def rotation():
    return np.linalg.qr(np.random.default_rng(2).normal(size=(FACTORS, FACTORS)))[0]


def test_pushed_row_shows_in_any_basis(vectors):
    pushed = vectors.copy()
    pushed[7] *= -4
    signals = signals_of(model(vectors), model(pushed @ rotation()))
    assert signals.rows[0][0] == 7
    assert signals.largest_move > 3
    assert signals.drift < 0.3


def test_a_diverged_model_has_no_finite_drift(vectors):
    broken = vectors.copy()
    broken[3] = np.nan
    assert not np.isfinite(signals_of(model(vectors), model(broken)).drift)


@pytest.mark.parametrize("most_shown", [0.1, 1.0])
def test_exposure_cap_counts_shortened_items(most_shown):
    town = fr.city(people=120, places=250, checkins=4000)
    settings = FRUGAL_SERVER.settle(
        FRUGAL_SERVER.kind(factors=FACTORS, most_shown=most_shown, encoding="float32", min_support=1), town, None
    )
    now = first_model(FRUGAL_SERVER.first_content(settings, town, None))
    for number in range(2):
        rows = FRUGAL_SERVER.encode(settings, now, now.rows_since(None), number)
        broadcast, updates = FRUGAL_SERVER.decode(settings, rows, town.n_items).part, []
        for user in range(town.n_users):
            profile = np.unique(town.items[town.users == user]).astype(np.int32)
            updates.append(settings.client_update(Client(1, user, number, profile), broadcast).update)
        now = now.followed_by(FRUGAL_SERVER.step(settings, now, town.n_users, updates))
    assert (capped_items(now) > 0) == (most_shown < 1)
