"""A network with delay and loss: two network namespaces and a wire between them, where the machine allows it."""

import asyncio
import os
import random
import shutil
import subprocess

import pytest
from tests.service.federations import (
    PATIENT,
    persistent_life,
    recomputed,
    same_bits,
    serving,
    stored,
)
from tests.service.server.test_limits import on_a_socket


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def wire():
    """Two namespaces, a delay of 100 ms and a loss of 5 % between them; their names."""
    if os.getuid() != 0 or not shutil.which("ip") or not shutil.which("tc"):
        pytest.skip("network namespaces need root, ip and tc")
    one, two = f"frs{os.getpid()}", f"frd{os.getpid()}"
    steps = [
        f"ip netns add {one}",
        f"ip netns add {two}",
        f"ip link add v{one} netns {one} type veth peer name v{two} netns {two}",
        f"ip -n {one} addr add 10.87.0.1/24 dev v{one}",
        f"ip -n {two} addr add 10.87.0.2/24 dev v{two}",
        f"ip -n {one} link set v{one} up",
        f"ip -n {two} link set v{two} up",
        f"ip -n {one} link set lo up",
        f"ip netns exec {one} tc qdisc add dev v{one} root netem delay 100ms 20ms loss 5%",
        f"ip netns exec {two} tc qdisc add dev v{two} root netem delay 100ms 20ms loss 5%",
    ]
    try:
        for step in steps:
            done = run(*step.split())
            if done.returncode:
                pytest.skip(f"this machine allows no test network: {step}: {done.stderr.strip()}")
        yield one, two
    finally:
        run("ip", "netns", "del", one)
        run("ip", "netns", "del", two)


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
async def test_clients_that_try_again_are_counted_once_over_a_wire_that_breaks(sqlite_store):
    rounds = {"target": 3, "over_selection": 1.0} | PATIENT
    async with serving(sqlite_store, rounds, {"keep_updates": True}) as running, on_a_socket(running) as port:
        async with BadWire(port, seed=3) as wire:
            lives = await asyncio.gather(*(persistent_life(wire.address, seed) for seed in range(6)))
        assert sum(lives) == 6
        assert wire.broken > 0
        await running.version(2)
        assert stored(sqlite_store, "SELECT COUNT(*) FROM uploads") == [(6,)]
        assert same_bits(running.service.latest.model.vectors, recomputed(sqlite_store)[0])
