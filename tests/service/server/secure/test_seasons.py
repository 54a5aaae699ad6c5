"""Seasons under secure aggregation: signed by both servers, recomputed from the version that each continues, pruned."""

import asyncio
import json
from dataclasses import replace

import numpy as np
import pytest
from tests.service.federations import opened, stored
from tests.service.server.secure.federations import cohort, federation
from tests.service.server.secure.test_verifying import Published

from federank.errors import BadMessage, SettingError
from federank.methods.frugal.private import PrivateFrugal
from federank.methods.frugal.records import PrivateState, without_ridge
from federank.privacy.accountant import epsilon_of_mu
from federank.secagg.config import check_follows, check_signed, config_from
from federank.service.server.helper_line import HelperRefused
from federank.service.server.seasons import SeasonSpec, _registered, propose
from federank.service.server.store.secure import put_offer

ITEMS = [{"id": f"item-{number:02d}", "categories": ["Museum" if number % 2 else "Café"]} for number in range(1, 12)]
NEXT = [*ITEMS, {"id": "new-0", "categories": ["Museum"]}]


def configs(store):
    names = [f"season {number}: sums federation config" for number in (1, 2, 3)] + ["sums federation config"]
    rows = [stored(store, "SELECT value FROM metadata WHERE name = ?", name) for name in names]
    return [config_from(bytes(row[0][0])) for row in rows if row]


async def test_season_is_signed_by_both_servers(sqlite_store, tmp_path):
    async with federation(tmp_path, sqlite_store, sigma=1.0) as (_, running):
        await running.open_round()
        told = await running.begin_season(items=NEXT, uploads=3, epsilon=2.0, until="2999-12-31")
        assert (told["uploads"], told["epsilon"], told["starts_from"]) == (3, 2.0, 0)
        before, now = configs(sqlite_store)
        check_follows(before, now)
        assert (now.season, now.messages, now.items, now.until) == (2, 3, 13, "2999-12-31")
        assert epsilon_of_mu(now.mu(), float(now.delta)) <= 2.0
        assert epsilon_of_mu(now.mu(), float(now.delta)) > 1.98
        listed = (await running.get("seasons"))["seasons"]
        signatures = [bytes.fromhex(text) for text in listed[1]["signatures"]]
        check_signed(now, *signatures, [now.helper_public()])
        with pytest.raises(BadMessage):
            check_signed(replace(now, until=""), *signatures, [now.helper_public()])
        assert (await running.client.get("/api/v1/sums/first?season=2")).content
        assert (await running.client.get("/api/v1/sums/config?season=1")).content == before.to_bytes()


async def test_round_offered_before_a_season_is_discarded(sqlite_store, tmp_path):
    async with federation(tmp_path, sqlite_store, sigma=1.0) as (_, running):
        await running.open_round()
        with opened(sqlite_store) as connection:
            offer = bytes(connection.one("SELECT offer FROM sums WHERE round = 0")[0])
            put_offer(connection, 1, offer, 1)
        await running.begin_season()
        await running.until(lambda view: view.round.number > 0 and view.round.state == "open")
        assert stored(sqlite_store, "SELECT state FROM rounds WHERE number = 1") == [("abandoned",)]


async def test_helper_ends_a_season_with_the_next_ones_first_round(sqlite_store, tmp_path):
    async with federation(tmp_path, sqlite_store, sigma=1.0) as (_, running):
        await running.open_round()
        old = running.service.config.sums
        with opened(sqlite_store) as connection:
            other = propose(connection, SeasonSpec(until="2998-12-31")).agreement
        await running.begin_season()
        await running.open_round(1)
        line = old.line()
        try:
            with pytest.raises(HelperRefused) as refusal:
                await asyncio.to_thread(line.abandon, old.name, 1)
            assert refusal.value.slug == "unknown"
            with opened(sqlite_store) as connection, pytest.raises(SettingError):  # in place of the one that has begun
                await asyncio.to_thread(_registered, connection, other)
            states = await asyncio.to_thread(line.rounds, old.name)
            assert "open" not in states.values(), "the open round of the old season was abandoned"
        finally:
            line.close()


@pytest.mark.slow
async def test_versions_of_all_seasons_are_recomputed(sqlite_store, tmp_path):
    async with federation(tmp_path, sqlite_store, sigma=1.0) as both:
        helper, running = both
        await cohort(await running.devices(3))
        await running.version(1)
        await running.begin_season(items=NEXT, uploads=2)
        # Clients of these tests know the first catalogue alone, so the second season's versions are undone unseen.
        told = await running.begin_season(start_from=1, uploads=3)
        assert told["starts_from"] == 1
        async with Published(helper, running, versions=0) as published:
            found, lines = await published.verify()
            assert (found.versions, found.recomputed, found.findings) == (1, 1, ())
            assert [season["uploads"] for season in found.seasons] == [5, 2, 3]
            assert found.in_total.uploads == 10
            mus = [config.mu() for config in configs(sqlite_store)]
            assert found.in_total.mu == np.sqrt(mus[0] ** 2 + mus[1] ** 2 + mus[2] ** 2)
            assert [line for line in lines if "follows from version 1" in line]
            # A season begins at the helper with its first round, and the one before it cannot be pruned earlier.
            while (await running.ask("POST", "seasons/prune", json={"season": 1}))[0] != 200:
                await asyncio.sleep(0.05)
            assert stored(sqlite_store, "SELECT SUM(LENGTH(noisy) + LENGTH(helper_sum)) FROM sums") == [(0,)]
            again, _ = await published.verify()
            assert (again.versions, again.recomputed, again.findings) == (1, 0, ())
            assert [season["pruned"] for season in again.seasons] == [True, False, False]


@pytest.mark.slow
async def test_first_model_that_does_not_follow_is_detected(sqlite_store, tmp_path):
    async with federation(tmp_path, sqlite_store, sigma=1.0) as (helper, running):
        await cohort(await running.devices(3))
        await running.version(1)
        await running.begin_season(items=NEXT)
        async with Published(helper, running, versions=0) as published:
            assert (await published.verify())[0].findings == ()
            with opened(sqlite_store) as connection, connection.transaction():
                name = "season 1: catalogue"
                row = connection.one("SELECT value FROM metadata WHERE name = ?", name)
                changed = json.dumps(json.loads(bytes(row[0])) | {"more": 1}).encode()
                connection.run("UPDATE metadata SET value = ? WHERE name = ?", changed, name)
            with pytest.raises(BadMessage, match="catalogue"):
                await published.verify()


async def test_state_of_sums_without_noise_is_not_published(sqlite_store, tmp_path):
    async with federation(tmp_path, sqlite_store) as (_, running):
        await running.open_round()
        await running.begin_season()
        assert (await running.client.get("/api/v1/sums/first?season=2")).status_code == 403
        assert (await running.client.get("/api/v1/sums/first?season=1")).status_code == 200, "drawn by the seed"


async def test_season_needs_the_helper(sqlite_store, tmp_path):
    async with federation(tmp_path, sqlite_store, sigma=1.0) as (helper, running):
        await running.open_round()
        helper.stop()
        status, told = await running.ask("POST", "seasons", json={"uploads": 3})
        assert status == 422
        assert helper.origin in told["message"]
        assert running.service.config.season.number == 1
        assert len(configs(sqlite_store)) == 1
        helper.start()


def test_items_without_popularity_are_as_popular_as_the_least_popular():
    method = PrivateFrugal(n_items=3, factors=2, messages=3, uploads="secure", noises=(400, 400, 400), min_support=1)
    state = without_ridge(PrivateState, method, earlier_columns=0, newest_columns=0, joined_columns=0)
    state = replace(state, counts=np.array([1.0, 0.0, 0.25]), folds=np.array([3]))
    now = method.new_plan(state, (800, 800), method.noises)
    assert now.counts.tolist() == [1.0, 0.25, 0.25]
    assert method.stage(now) == 0
    assert now.folds.tolist() == [3 * 8], "two cohorts' noise is that of eight of the new season"
