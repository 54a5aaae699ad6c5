"""A federation as `federank serve` establishes it, played in this process: without sockets, deadlines and waiting.

The store, the federation config and the first model are made by `open_store`, from a method's name alone, so every
setting is a
default. Simulated clients compute uploads from what a client reads of the published model. The server's own checks,
aggregation and guards take them in. Under secure aggregation messages are added up as integers: that splitting,
proving and adding up shares gives that very sum is tested elsewhere, and would take hours here.
"""

import asyncio
from contextlib import contextmanager
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
from tests.service.federations import serving
from threadpoolctl import threadpool_limits

from federank.federation.client import Terms
from federank.secagg.ring import implausible
from federank.service.client.federation import read_catalogue, read_info, read_rows
from federank.service.server.bootstrap import FederationSpec, open_store
from federank.service.server.config import read_config
from federank.service.server.rounds import PublishedModel, Rejected, defences_of, form_of
from federank.service.server.secure_config import SecaggSpec
from federank.service.server.secure_rounds import Summed
from federank.service.server.settings import RoundSettings, TrustSettings
from federank.service.server.store.database import Database
from federank.service.server.store.queries import get_value
from federank.service.simulated_clients.methods import Models, SimulatedClients


class InProcess:
    """A federation and its clients."""

    def __init__(self, connection, info, ids, clients, seed):
        self.config, self.info, self.ids = read_config(connection), info, ids
        self.rounds = RoundSettings(**get_value(connection, "rounds"))
        self.trust = TrustSettings()
        self.form = form_of(self.config, self.trust)
        self.shared = PublishedModel(self.config, connection, defences_of(self.config, self.trust))
        self.devices = SimulatedClients(info, ids, clients, 1, {})
        self.rng = np.random.default_rng(seed)
        self.rejected = 0
        with connection.transaction():  # everyone has enrolled
            connection.run("UPDATE tallies SET clients = ?", len(self.devices.participants))

    def model(self):
        """The published model, as a client reads it."""
        return self._rows().model

    def _rows(self):
        now = self.shared.published
        content = self.config.encode(now, now.rows_since(None), self.shared.round_number)
        return read_rows(content, self.info)

    def play_round(self):
        """One round of the default size; False where too few clients have an upload left."""
        able = [user for user in self.devices.participants.tolist() if self.devices.may_take_part(user)]
        if len(able) < self.rounds.target:
            return False
        users, model = (
            self.rng.choice(able, self.rounds.target, replace=False).tolist(),
            Models(self.info).receive(None, self._rows()),
        )
        updates = self._plain(users, model) if self.config.sums is None else self._secure(users, model)
        try:
            self.shared.aggregate(updates)
        except Rejected:
            self.rejected += 1
            self.shared.round_number += 1
        return True

    def _plain(self, users, model):
        served = self.config.served
        form = served.form_of(self.config.settings, self.form, self.shared.published)
        for user in users:
            body = self.devices.message(user, self.shared.round_number, model)
            assert len(body) <= self.form.most_bytes
            served.judge(body, form)
            assert served.implausible(self.config.settings, self.shared.published, body) is None
            yield served.summand(body, form)

    def _secure(self, users, model):
        config, served = self.config.sums.config, self.config.served
        stage = served.stage(self.shared.published)
        length = config.length_of(stage, served.rows(self.config.settings, self.shared.published))
        offer = SimpleNamespace(
            round=self.shared.round_number,
            stage=stage,
            noise=config.noises[stage],
            length=length,
            columns=config.columns_of(stage),
        )
        total = np.zeros(length, dtype=np.int64)
        for user in users:
            total += self.devices.upload(user, model, Terms(config, offer))
        assert implausible(total, offer.columns, len(users), offer.noise) is None
        return [Summed(total, len(users))]


@contextmanager
def established(folder, method, data, clients, helper=None, seed=1):
    """A federation of a method with its defaults, on the items of `data`; with a helper, under secure aggregation."""
    store = f"sqlite:///{folder / 'federation.sqlite'}"
    sums = None if helper is None else SecaggSpec(helper=helper)
    token = open_store(
        store, FederationSpec(data=lambda: data, source="tests", method=method, sums=sums, plain=sums is None)
    )
    info, ids = asyncio.run(_info_of(store, token))
    database = Database(store)
    whole = lambda _terms, whole: whole  # noqa: E731
    try:
        with (
            threadpool_limits(1, user_api="blas"),  # as in a server's process
            database.connection() as connection,
            patch("federank.service.simulated_clients.methods.split", whole),
        ):
            yield InProcess(connection, info, ids, clients, seed)
    finally:
        database.close()


async def _info_of(store, token):
    """What clients are told of the federation."""
    async with serving(store, token=token) as running:
        info = read_info((await running.client.get("/api/v1/federation")).content)
        listed = (await running.client.get("/api/v1/catalogue")).content
    return info, read_catalogue(listed, info).ids
