"""A network with delays whose connections break."""

import asyncio
import random

import pytest
from tests.service.federations import (
    PATIENT,
    assert_recomputed,
    persistent_life,
    serving,
    stored,
)
from tests.service.server.test_limits import on_a_socket


class BadWire:
    """A wire in this process: what goes through comes late, and now and then the connection breaks."""

    def __init__(self, port, seed):
        self._port, self._chance = port, random.Random(seed)
        self.broken = 0

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._connect, "127.0.0.1", 0)
        self.address = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_):
        self._server.close()
        await self._server.wait_closed()

    async def _connect(self, reader, writer):
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._port)
        ways = (self._carry(reader, far_writer), self._carry(far_reader, writer))
        await asyncio.wait([asyncio.ensure_future(way) for way in ways], return_when=asyncio.FIRST_COMPLETED)
        for end in (writer, far_writer):
            end.transport.abort()

    async def _carry(self, reader, writer):
        try:
            while part := await reader.read(700):
                await asyncio.sleep(self._chance.uniform(0.01, 0.05))
                if self._chance.random() < 0.08:
                    self.broken += 1
                    writer.write(part[: len(part) // 2])
                    return
                writer.write(part)
                await writer.drain()
        except ConnectionError:
            return


@pytest.mark.slow
async def test_clients_that_retry_over_breaking_connections_are_counted_once(sqlite_store):
    rounds = {"target": 3, "over_selection": 1.0} | PATIENT
    async with serving(sqlite_store, rounds, {"keep_updates": True}) as running, on_a_socket(running) as port:
        async with BadWire(port, seed=3) as wire:
            lives = await asyncio.gather(*(persistent_life(wire.address, seed) for seed in range(6)))
        assert sum(lives) == 6
        assert wire.broken > 0
        await running.version(2)
        assert stored(sqlite_store, "SELECT COUNT(*) FROM uploads") == [(6,)]
        assert_recomputed(sqlite_store, running.service.latest.model)
