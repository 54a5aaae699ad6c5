"""A rehearsal of seasons over HTTP: leader and helper as processes, simulated clients, one poisoned season undone.

1. a season of all first clients
2. a fifth of the clients leave and others join; a tenth of the items is new. Half of the clients push twenty items,
   and the operator ends the season after its first round
3. restarted from the last version of season 1. The helper is killed while the first round is under way
4. again a fifth of the clients and a tenth of the items are others. Before, the helper is restored from a backup of
   season 1
"""

import asyncio
import csv
import json
import math
import os
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from tests.service.federations import Served
from tests.service.helper.helpers import HelperProcess

import federank as fr
from federank.cli import federank
from federank.data.splits import split_random
from federank.federation.client import cost_of, split
from federank.privacy.accountant import epsilon_of_mu
from federank.secagg.config import config_from
from federank.service.client.federation import fetch_info, fetch_model
from federank.service.client.http import Client
from federank.service.client.secure import pin, pin_season
from federank.service.simulated_clients.methods import Models, Plan, SimulatedClients
from federank.service.simulated_clients.processes import Rehearsal, accuracy, fetch_federation, recommendations
from federank.service.simulated_clients.rehearsal import Fleet
from federank.service.verification import Servers, verify

CLIENTS, FIFTH, UPLOADS, EPSILON, SEED = 600, 120, 2, 8.0, 1
ITEMS, TENTH, ENDED = 160, 16, 8  # of the first season; new, and ended, in each of the later two
MALICIOUS = 0.5

DATA = fr.city(people=CLIENTS + 2 * FIFTH, places=ITEMS + 2 * TENTH, checkins=21_000, seed=SEED)
SPLIT = split_random(DATA, test=0.2, seed=SEED)
CATALOGUES = [
    list(range(ENDED * number, ITEMS + TENTH * number))
    for number in range(3)  # by the data's item numbers: the first ones end, and the next ones begin
]
USERS = [list(range(FIFTH * number, CLIENTS + FIFTH * number)) for number in range(3)]
VISITS = np.bincount(SPLIT.train.items, minlength=DATA.n_items)
PUSHED = sorted(np.argsort(VISITS[: CATALOGUES[1][-1] + 1])[:20].tolist())
"""The items that malicious clients push: those of season 2 with the fewest visits."""


class Pushing:
    """Simulated clients of whom some put the norm of every upload into a few items."""

    def __init__(self, clients, malicious):
        self.clients, self.malicious = clients, set(malicious)

    def __getattr__(self, name):
        return getattr(self.clients, name)

    def upload(self, user, model, terms):
        honest = self.clients.upload(user, model, terms)
        if user not in self.malicious:
            return honest
        message = np.zeros(terms.offer.length, dtype=np.int32)
        rows = message.reshape(-1, terms.offer.columns)
        rows[PUSHED] = int(terms.config.bound / math.sqrt(rows[PUSHED].size))
        return split(terms, message)


def catalogue_file(folder, numbers):
    """A season's catalogue as an operator writes it."""
    path = folder / f"catalogue-{numbers[0]}.csv"
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["item_id", "title", "categories"])
        for number in numbers:
            table.writerow([DATA.item_ids[number], DATA.titles[number], "|".join(DATA.categories.of(number))])
    return path


def made(info, ids):
    return SimulatedClients(info, ids, SPLIT.train, SEED, {"pi": 1.0})


class Rehearsed:
    """Leader and helper as processes, and the simulated clients of some users."""

    def __init__(self, folder, numbers, users):
        self.folder = folder
        self.backup = folder / "backup.db"
        folder.mkdir()
        catalogue = catalogue_file(folder, numbers)
        (folder / "keys").symlink_to(f"/dev/shm/federank-test-{os.getpid()}-{folder.name}")
        self.keys = (folder / "keys").readlink()
        self.helper = HelperProcess(folder, self.keys).start()
        flags = ("--data", catalogue, "--method", "frugal", "--helper", self.helper.address, "--epsilon", EPSILON)
        flags += ("--messages", UPLOADS, "--target", CLIENTS, "--norm-check", "off", "--rehearsal", "--quiet")
        flags += ("--least-cohort", 50, "--every", 0)
        self.leader = Served(f"sqlite:///{folder / 'leader.sqlite'}", *map(str, flags), folder=folder)
        self.plan = Plan(address=self.leader.address)
        with self.client() as client:
            info, ids = fetch_federation(client)
            pinned = pin(client, info)
        self.fleet = Fleet(self.plan, made(info, ids), Models(info), users, pinned, made, repin=partial(self.repin))

    def client(self):
        return Client(self.leader.address)

    def repin(self, before, info):
        with self.client() as client:
            return pin_season(before, client, info)

    def admin(self, *words):
        command = ["admin", "--server", self.leader.admin_address, "--token", self.leader.token, *map(str, words)]
        done = CliRunner().invoke(federank, command)
        assert done.exit_code == 0, (done.output, done.exception)
        return done.output

    async def season(self, *words, leaving=(), joining=()):
        """Begin another season with `federank admin season ...`, and have the clients follow it."""
        begun = json.loads(await asyncio.to_thread(self.admin, "season", *words, "--json"))
        await self.fleet.follow_season(begun["number"])
        assert self.fleet.era.info.season == begun["number"]
        await self.fleet.exchange(leaving, joining)
        return begun

    def info(self):
        with self.client() as client:
            return fetch_info(client)

    def judged(self):
        """Precision@10 of the public model, and the items that each user's client would recommend."""
        rehearsal = Rehearsal(plan=self.plan, data=SPLIT.train, specs={"pi": 1.0}, seed=SEED)
        with self.client() as client:
            federation = fetch_federation(client)
            model = fetch_model(client, federation.info)
        vectors = np.zeros((DATA.n_users, 0), dtype=np.float32)
        listed = recommendations(rehearsal, federation, model, vectors, 10).items
        return accuracy(rehearsal, federation, model, vectors, SPLIT)["precision@10"], listed

    def verified(self):
        return verify(Servers(self.leader.address, self.helper.address))

    def stop(self):
        self.leader.stop()
        self.helper.stop()
        shutil.rmtree(self.keys, ignore_errors=True)


async def rehearsed(one):
    """All four seasons; what was seen on the way."""
    fleet, seen = one.fleet, {}
    await fleet.enrol()
    await fleet.take_part()
    good = one.info().version
    seen["first"] = one.judged()
    with closing(sqlite3.connect(one.folder / "helper.db")) as store, closing(sqlite3.connect(one.backup)) as backup:
        store.backup(backup)

    second = catalogue_file(one.folder, CATALOGUES[1])
    begun = await one.season(
        "new", "--catalogue", second, "--until", "2999-12-31", leaving=USERS[0][:FIFTH], joining=USERS[1][-FIFTH:]
    )
    assert begun["starts_from"] == good
    honest = fleet.era
    fleet.era = honest._replace(clients=Pushing(honest.clients, USERS[1][: int(MALICIOUS * CLIENTS)]))
    fleet.plan = replace(one.plan, last_version=begun["version"] + 1)
    await fleet.take_part()
    seen["poisoned"] = one.judged()
    fleet.plan, fleet.era = one.plan, honest
    one.admin("season", "end")

    begun = await one.season("restart-from", good, "--uploads", UPLOADS)
    assert begun["starts_from"] == good
    seen["restarted"] = one.judged()
    playing = asyncio.create_task(fleet.take_part())
    while not any(charge.season == 3 for charges in fleet.charged.values() for charge in charges):
        await asyncio.sleep(0.05)
    one.helper.kill()  # with a round under way: its key is in memory, and the round goes on
    one.helper.start()
    await playing
    seen["third"] = one.judged()
    one.helper.kill()
    for part in ("helper.db-wal", "helper.db-shm"):
        (one.folder / part).unlink(missing_ok=True)
    shutil.copy(one.backup, one.folder / "helper.db")  # it has never heard of seasons 2 and 3
    one.helper.start()

    third = catalogue_file(one.folder, CATALOGUES[2])
    await one.season("new", "--catalogue", third, leaving=USERS[1][:FIFTH], joining=USERS[2][-FIFTH:])
    await fleet.take_part()
    seen["fourth"] = one.judged()
    return seen


async def fresh(one):
    await one.fleet.enrol()
    await one.fleet.take_part()


def configs(one):
    with one.client() as client:
        listed = json.loads(client.request("GET", "/seasons").content)["seasons"]
    return [config_from(season["config"].encode()) for season in listed]


@pytest.mark.slow
def test_three_seasons_and_a_poisoned_one_that_is_undone(tmp_path):
    one = Rehearsed(tmp_path / "seasons", CATALOGUES[0], USERS[0])
    try:
        seen = asyncio.run(rehearsed(one))
        found, charged, seasons = one.verified(), one.fleet.charged, configs(one)
    finally:
        one.stop()
    # Every version of every season is recomputed, and no server has hidden anything.
    assert (found.findings, found.versions, found.recomputed) == ((), 7, 7)
    assert found.messages == 7 * CLIENTS
    # Budgets, to the last digit: of each client, of each season and in total.
    assert [season["uploads"] for season in found.seasons] == [UPLOADS] * 4
    noises = {config.season: config.noises for config in seasons}
    noises[2] = noises[2][:1]
    taken = [(1, USERS[0]), (2, USERS[1]), (3, USERS[1]), (4, USERS[2])]
    for user in range(DATA.n_users):
        expected = [(season, noise) for season, users in taken if user in users for noise in noises[season]]
        assert [tuple(charge) for charge in charged.get(user, [])] == expected
    all_along = USERS[0][2 * FIFTH]
    spent = math.fsum(cost_of(noise) for _, noise in charged[all_along])
    most = math.fsum(config.mu() ** 2 for config in seasons)
    assert found.in_total.mu == math.sqrt(most)
    assert found.in_total.epsilon == epsilon_of_mu(math.sqrt(most), 1e-6)
    unsent = cost_of(seasons[1].noises[1])
    assert math.isclose(spent + unsent, most, rel_tol=1e-12)
    # The poisoned season is undone, and new items are recommended.
    pushed = {name: float(np.isin(listed, PUSHED).mean()) for name, (_, listed) in seen.items()}
    precision = {name: value for name, (value, _) in seen.items()}
    ended, newest = range(2 * ENDED), range(ITEMS + TENTH, ITEMS + 2 * TENTH)
    shown = {
        "new": float(np.isin(seen["fourth"][1], newest).any(axis=1).mean()),
        "ended": int(np.isin(seen["fourth"][1], ended).sum()),
    }
    other = Rehearsed(tmp_path / "fresh", CATALOGUES[2], USERS[2])
    try:
        asyncio.run(fresh(other))
        precision["fresh"], _ = other.judged()
    finally:
        other.stop()
    if report := os.environ.get("FEDERANK_REPORT"):
        Path(report).write_text(json.dumps({"pushed": pushed, "precision@10": precision, "shown": shown}, indent=1))
    assert pushed["poisoned"] > 1.4 * max(pushed["first"], pushed["restarted"])
    assert shown["ended"] == 0
    assert shown["new"] > 0.1
    assert precision["fourth"] >= precision["fresh"]
