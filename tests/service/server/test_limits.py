"""Limits: how often, how much, how slowly. On a real socket where the bytes on the wire are what matters."""

import asyncio
import json
import socket
from contextlib import asynccontextmanager

import httpx
import pytest
from tests.service.federations import PATIENT, serving, some_update

from federank.data.interactions import Interactions
from federank.federation.wire import encode
from federank.service.server.http.app import public_app
from federank.service.server.http.limits import TokenBuckets, bucket_of
from federank.service.server.processes import Serving, _plain, _uvicorn, bind, serving_from
from federank.service.server.settings import TrustSettings


def test_a_bucket_lets_a_burst_through_and_then_a_steady_rate():
    buckets = TokenBuckets(2.0)
    assert all(buckets.take("somebody", 100.0) == 0.0 for _ in range(int(buckets.burst)))
    assert buckets.take("somebody", 100.0) == pytest.approx(0.5)
    assert buckets.take("someone else", 100.0) == 0.0
    assert buckets.take("somebody", 100.5) == 0.0
    assert buckets.take("somebody", 100.5) == pytest.approx(0.5)


def test_who_was_away_for_long_has_saved_up_one_burst_and_no_more():
    buckets = TokenBuckets(2.0)
    while buckets.take("somebody", 100.0) == 0.0:
        pass
    allowed = [buckets.take("somebody", 1e6) == 0.0 for _ in range(3 * int(buckets.burst))]
    assert allowed == [True] * int(buckets.burst) + [False] * 2 * int(buckets.burst)


def test_buckets_do_not_grow_without_end():
    buckets = TokenBuckets(1.0, most=100)
    for number in range(1000):
        buckets.take(str(number), 1.0)
    assert len(buckets._levels) <= 100
    while buckets.take("busy", 1.0) == 0.0:
        pass
    for number in range(1000):
        buckets.take(f"new {number}", 2.0)
    assert buckets.take("busy", 2.0) == 0.0
    assert buckets.take("busy", 2.0) > 0.0, "who was busy a moment ago is not forgotten"


@pytest.mark.parametrize(
    ("address", "bucket"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::9", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::9", "2001:db8:1:3::/64"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("fe80::1%eth0", "fe80::/64"),
        ("a name", "a name"),
    ],
)
def test_an_address_is_counted_by_what_its_owner_cannot_change_at_will(address, bucket):
    assert bucket_of(address) == bucket


async def test_one_network_cannot_enrol_clients_by_changing_its_address(sqlite_store):
    async with serving(sqlite_store, trust={"enrolment_rate": 0.001, "address_rate": 0.001}) as running:
        answers = []
        for number in range(25):
            transport = httpx.ASGITransport(public_app(running.service), client=(f"2001:db8::{number:x}", 1))
            async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
                answers.append((await client.post("/api/v1/devices", json={})).status_code)
        assert answers == [201] * 5 + [429] * 20


def test_workers_of_one_machine_divide_what_an_address_may_ask():
    trust = TrustSettings(address_rate=100.0, enrolment_rate=0.2, device_rate=10.0)
    part = serving_from(json.loads(json.dumps(_plain(Serving(store="sqlite:///x", trust=trust, workers=4)))))
    assert (part.workers, part.trust.address_rate, part.trust.enrolment_rate) == (1, 25.0, 0.05)
    assert part.trust.device_rate == 10.0
    lifted = TrustSettings(address_rate=0, enrolment_rate=0)
    assert _plain(Serving(store="sqlite:///x", trust=lifted, workers=4))["trust"]["address_rate"] == 0


async def test_a_hasty_client_learns_when_to_come_back_and_others_are_served(sqlite_store):
    async with serving(sqlite_store, {"target": 9} | PATIENT, {"device_rate": 0.5}) as running:
        hasty, calm = await running.device(), await running.device()
        ticket = await hasty.ticket()
        for _ in range(20):
            answer = await hasty.task(ticket)
            if answer.status_code == 429:
                break
        assert (answer.status_code, answer.json()["error"]) == (429, "too-many")
        assert int(answer.headers["Retry-After"]) >= 1
        assert (await calm.work()).status_code == 200


async def test_one_address_cannot_enrol_clients_without_end(sqlite_store):
    async with serving(sqlite_store, trust={"enrolment_rate": 0.001}) as running:
        answers = [(await running.client.post("/api/v1/devices", json={})).status_code for _ in range(25)]
        assert answers == [201] * 20 + [429] * 5
        assert (await running.client.get("/api/v1/status")).status_code == 200


async def test_one_address_cannot_ask_without_end(sqlite_store):
    async with serving(sqlite_store, trust={"address_rate": 0.01}) as running:
        answers = [(await running.client.get("/api/v1/status")).status_code for _ in range(8)]
        assert answers == [200] * 5 + [429] * 3


@asynccontextmanager
async def on_a_socket(running, **trust):
    """The application behind its real protocol."""
    bound = bind("127.0.0.1", 0)
    serving_as = Serving(store="", trust=TrustSettings(**trust))
    server = _uvicorn(public_app(running.service), serving_as)
    task = asyncio.create_task(server.serve(sockets=[bound]))
    try:
        yield bound.getsockname()[1]
    finally:
        server.should_exit = True
        await task
        bound.close()


async def exchange(port, *parts, pause=0.0, half_close=False):
    """Send parts one after the other; all that comes back until the server closes or a whole answer is there."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for part in parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(pause)
        if half_close:
            writer.write_eof()
        return await reader.read(65536)
    finally:
        writer.close()


def upload_head(device, ticket, length):
    return (
        f"POST /api/v1/tasks/{ticket}/update HTTP/1.1\r\nHost: test\r\nContent-Length: {length}\r\n"
        f"Authorization: {device.headers['Authorization']}\r\nContent-Type: application/octet-stream\r\n\r\n"
    ).encode()


def told(answer):
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head[9:12]), json.loads(body)["error"] if body else ""


@pytest.mark.slow
async def test_a_body_that_dribbles_in_is_given_up(sqlite_store):
    impatient = {"body_seconds": 0.3}
    async with serving(sqlite_store, {"target": 9} | PATIENT, impatient) as running, on_a_socket(running) as port:
        device = await running.device()
        ticket = await device.ticket()
        answer = await exchange(port, upload_head(device, ticket, 100), b"slow")
        assert told(answer) == (408, "slow")
        assert (await device.send(ticket, some_update(1))).status_code == 201


@pytest.mark.slow
async def test_headers_that_dribble_in_are_cut_off(sqlite_store):
    async with serving(sqlite_store) as running, on_a_socket(running, header_seconds=0.3) as port:
        assert await exchange(port) == b""
        assert await exchange(port, b"GET /health HTTP/1.1\r\n", b"X-Slow: 1\r\n", pause=0.1) == b""
        answer = await exchange(port, b"GET /health HTTP/1.1\r\nHost: test\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 200")


async def test_lengths_that_lie_store_nothing(sqlite_store):
    body = encode(some_update(1))
    async with serving(sqlite_store, {"target": 9} | PATIENT) as running, on_a_socket(running) as port:
        device = await running.device()
        ticket = await device.ticket()
        announced_huge = await exchange(port, upload_head(device, ticket, 10**12), b"x")
        assert told(announced_huge) == (413, "too-large")
        shorter = await exchange(port, upload_head(device, ticket, len(body) - 5) + body)
        assert b" 20" not in shorter[:20]
        negative = await exchange(port, upload_head(device, ticket, -5) + body)
        assert negative.startswith(b"HTTP/1.1 400")
        await exchange(port, upload_head(device, ticket, len(body) + 50) + body, half_close=True)
        assert running.service.latest.round.reports == 0
        assert (await device.send(ticket, some_update(1))).status_code == 201


async def test_endless_chunks_are_cut_at_the_limit(sqlite_store):
    async with serving(sqlite_store, {"target": 9} | PATIENT) as running, on_a_socket(running) as port:
        device = await running.device()
        ticket = await device.ticket()
        head = upload_head(device, ticket, 0).replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
        answer = await exchange(port, head + b"2000\r\n" + bytes(0x2000) + b"\r\n")
        assert told(answer) == (413, "too-large")


async def test_a_cut_connection_stores_nothing_and_frees_its_place(sqlite_store):
    body = encode(some_update(1))
    async with serving(sqlite_store, {"target": 9} | PATIENT) as running, on_a_socket(running) as port:
        device = await running.device()
        ticket = await device.ticket()
        for cut in range(0, len(body), 40):
            with socket.create_connection(("127.0.0.1", port)) as connection:
                connection.sendall(upload_head(device, ticket, len(body)) + body[:cut])
        await asyncio.sleep(0.1)
        assert (await device.send(ticket, body)).status_code == 201


async def test_a_client_that_hangs_up_while_it_waits_is_not_given_a_ticket(sqlite_store):
    one_place = {"target": 1, "over_selection": 1.0} | PATIENT
    async with serving(sqlite_store, one_place) as running, on_a_socket(running) as port:
        busy, gone, patient = [await running.device() for _ in range(3)]
        ticket = await busy.ticket()
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        request = f"GET /api/v1/work?wait=60 HTTP/1.1\r\nHost: t\r\nAuthorization: {gone.headers['Authorization']}"
        writer.write(f"{request}\r\n\r\n".encode())
        await running.until(lambda _: running.service.selection.waiting == 1)
        writer.close()
        await running.until(lambda _: running.service.selection.waiting == 0)
        await busy.send(ticket, some_update(1))
        assert (await patient.work(wait=10)).status_code == 200


async def read_all(lazy, pause):
    """What comes until the connection ends, and whether it was cut."""
    taken = 0
    while True:
        try:
            part = await asyncio.get_running_loop().sock_recv(lazy, 65536)
        except ConnectionResetError:
            return taken
        taken += len(part)
        if not part or taken > MODEL_BYTES:
            return taken
        await asyncio.sleep(pause)


MODEL_BYTES = 20_000 * 201 * 4


@pytest.mark.slow
async def test_a_receiver_that_never_reads_is_cut_off_and_a_slow_one_is_not(sqlite_store):
    many = Interactions.from_columns([0] * 20_000, list(range(20_000)))
    big = serving(sqlite_store, data=many, factors=200, triples=1)
    async with big as running, on_a_socket(running, body_seconds=0.6) as port:
        for never, whole in ((True, False), (False, True)):
            with socket.socket() as lazy:
                lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096 if never else 2**18)
                lazy.connect(("127.0.0.1", port))
                lazy.setblocking(False)
                await asyncio.get_running_loop().sock_sendall(lazy, b"GET /api/v1/model HTTP/1.1\r\nHost: test\r\n\r\n")
                await asyncio.sleep(2.0 if never else 0.0)
                taken = await read_all(lazy, 0.0 if never else 0.01)
            assert (taken >= MODEL_BYTES) == whole
