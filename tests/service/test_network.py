"""A network with delay and loss: two network namespaces and a wire between them, where the machine allows it."""

import asyncio
import os
import shutil
import subprocess
import sys

import pytest
from tests.service.federations import found_small, recomputed, stored
from tests.service.test_rounds import PATIENT, same_bits

from federank.service.database import Database
from federank.service.store import newest_model

DEVICES = """
import asyncio, sys
import httpx
from tests.service.federations import Device, some_update

async def life(address, seed):
    async with httpx.AsyncClient(base_url=address, timeout=30) as client:
        for _ in range(20):
            try:
                device = await Device.enrolled(client)
                break
            except httpx.TransportError:
                await asyncio.sleep(0.2)
        ticket = None
        for _ in range(40):
            try:
                if ticket is None:
                    answer = await device.work(wait=5)
                    if answer.status_code != 200:
                        continue
                    ticket = answer.json()["ticket"]
                    assert (await device.task(ticket)).status_code == 200
                answer = await device.send(ticket, some_update(seed))
                assert answer.status_code in (200, 201), answer.text
                return 1
            except httpx.TransportError:
                await asyncio.sleep(0.2)
        return 0

async def main():
    print(sum(await asyncio.gather(*(life(sys.argv[1], seed) for seed in range(6)))))

asyncio.run(main())
"""


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


@pytest.mark.slow
def test_rounds_are_exact_over_a_slow_network_that_loses_packets(wire, tmp_path):
    one, two = wire
    store = f"sqlite:///{tmp_path / 'federation.sqlite'}"
    found_small(store, {"target": 3, "over_selection": 1.0} | PATIENT)
    command = [sys.executable, "-m", "federank", "serve", "--store", store, "--host", "10.87.0.1", "--port", "8470"]
    flags = ["--admin-host", "10.87.0.1", "--rehearsal", "--keep-updates", "--quiet"]
    server = subprocess.Popen(["ip", "netns", "exec", one, *command, *flags], stdout=subprocess.DEVNULL)
    try:
        devices = run("ip", "netns", "exec", two, sys.executable, "-c", DEVICES, "http://10.87.0.1:8470")
        assert devices.stdout.strip() == "6", devices.stderr[-2000:]
        asyncio.run(_folded(store, 2))
    finally:
        server.terminate()
        server.wait(30)
    database = Database(store)
    with database.connection() as connection:
        model = newest_model(connection)
    database.close()
    assert same_bits(model.vectors, recomputed(store)[0])


async def _folded(store, rounds):
    for _ in range(500):
        if stored(store, "SELECT COUNT(*) FROM rounds WHERE state = 'folded'") == [(rounds,)]:
            return
        await asyncio.sleep(0.02)
    raise AssertionError("the rounds were not folded")
