"""Limits: how often, how much, how slowly. On a real socket where the bytes on the wire are what matters."""

import asyncio
import json
import socket
from contextlib import asynccontextmanager, suppress
from functools import partial

import httpx
import pytest
from tests.service.federations import PATIENT, refusal, serving, some_update

from federank.data.interactions import Interactions
from federank.federation.wire import encode
from federank.service.server.http.app import public_app
from federank.service.server.http.limits import Ranges, TokenBuckets, bucket_of, range_of
from federank.service.server.http.listening import MOST_HEAD, MOST_URL, proxies_of
from federank.service.server.processes import Serving, _plain, _uvicorn, bind, serving_from
from federank.service.server.settings import TrustSettings

HEALTH = b"GET /health HTTP/1.1\r\nHost: test\r\n"
NINE = {"target": 9} | PATIENT


def test_bucket_allows_a_burst_and_then_a_steady_rate():
    buckets = TokenBuckets(2.0)
    burst = int(buckets.burst)
    assert all(buckets.take("one", 100.0) == 0.0 for _ in range(burst))
    assert buckets.take("one", 100.0) == pytest.approx(0.5)
    assert buckets.take("another", 100.0) == 0.0
    assert buckets.take("one", 100.5) == 0.0
    assert buckets.take("one", 100.5) == pytest.approx(0.5)
    later = [buckets.take("one", 1e6) == 0.0 for _ in range(3 * burst)]
    assert later == [True] * burst + [False] * 2 * burst, "one burst, however long the wait was"
    assert TokenBuckets(0.0).take("one") == 0.0, "no limit"


def test_buckets_are_bounded():
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
def test_bucket_of_an_address(address, bucket):
    assert bucket_of(address) == bucket


def test_range_of_an_address():
    assert range_of("203.0.113.7") == range_of("203.0.113.250") != range_of("203.0.114.7")
    assert range_of("2001:db8:1:2::3") == range_of("2001:db8:1:ff::1") != range_of("2001:db8:2::1")
    assert range_of("unix") == "unix"
    ranges = Ranges(remembered=3)
    for address in ("203.0.113.7", "203.0.113.8", "198.51.100.1", "203.0.113.9"):
        ranges.note(address)
    assert ranges.busiest() == 2, "only the latest count"


async def statuses(count, ask):
    return [(await ask()).status_code for _ in range(count)]


async def test_enrolments_of_one_address_are_limited(sqlite_store):
    async with serving(sqlite_store, trust={"enrolment_rate": 0.001}) as running:
        enrol = partial(running.client.post, "/api/v1/clients", json={})
        assert await statuses(25, enrol) == [201] * 20 + [429] * 5
        assert (await running.client.get("/api/v1/status")).status_code == 200


async def test_enrolments_of_one_network_are_limited(sqlite_store):
    async with serving(sqlite_store, trust={"enrolment_rate": 0.001, "address_rate": 0.001}) as running:
        answers = []
        for number in range(25):
            transport = httpx.ASGITransport(public_app(running.service), client=(f"2001:db8::{number:x}", 1))
            async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
                answers.append((await client.post("/api/v1/clients", json={})).status_code)
        assert answers == [201] * 5 + [429] * 20


async def test_enrolments_of_a_range_of_addresses_are_limited(sqlite_store):
    async with serving(sqlite_store) as running:
        running.service.range_limit = TokenBuckets(0.001, least_burst=3.0)
        assert await statuses(4, partial(running.client.post, "/api/v1/clients", json={})) == [201] * 3 + [429]


async def test_requests_of_one_address_are_limited(sqlite_store):
    async with serving(sqlite_store, trust={"address_rate": 0.01}) as running:
        assert await statuses(8, partial(running.client.get, "/api/v1/status")) == [200] * 5 + [429] * 3


async def test_requests_of_one_device_are_limited(sqlite_store):
    async with serving(sqlite_store, NINE, {"client_rate": 0.5}) as running:
        hasty, calm = await running.devices(2)
        ticket = await hasty.ticket()
        for _ in range(20):
            answer = await hasty.task(ticket)
            if answer.status_code == 429:
                break
        assert refusal(answer) == (429, "too-many")
        assert int(answer.headers["Retry-After"]) >= 1
        assert (await calm.work()).status_code == 200


def test_workers_divide_the_limits_of_an_address():
    trust = TrustSettings(address_rate=100.0, enrolment_rate=0.2, client_rate=10.0, address_connections=7)
    part = serving_from(json.loads(json.dumps(_plain(Serving(store="", trust=trust, workers=4, worker=2)))))
    assert (part.workers, part.worker) == (1, 2)
    assert (part.trust.address_rate, part.trust.enrolment_rate, part.trust.client_rate) == (25.0, 0.05, 10.0)
    assert part.trust.address_connections == 2
    lifted = Serving(store="", trust=TrustSettings(address_rate=0, enrolment_rate=0), workers=4)
    assert _plain(lifted)["trust"]["address_rate"] == 0


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


def status_and_code(answer):
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head[9:12]), json.loads(body).get("error") if body else None


@asynccontextmanager
async def invited(store, trust=None):
    """A device with a ticket, and the port of its server."""
    async with serving(store, NINE, trust) as running, on_a_socket(running) as port:
        device = await running.device()
        yield port, device, await device.ticket()
        assert running.service.latest.round.reports == 0
        assert (await device.send(await device.ticket(), some_update(1))).status_code == 201, "nothing was stored"


@pytest.mark.slow
async def test_slow_body_is_given_up(sqlite_store):
    async with invited(sqlite_store, {"body_seconds": 0.3}) as (port, *given):
        assert status_and_code(await exchange(port, upload_head(*given, 100), b"slow")) == (408, "slow")


@pytest.mark.slow
async def test_slow_headers_are_cut_off(sqlite_store):
    async with serving(sqlite_store) as running, on_a_socket(running, header_seconds=0.3) as port:
        assert await exchange(port) == b""
        assert await exchange(port, b"GET /health HTTP/1.1\r\n", b"X-Slow: 1\r\n", pause=0.1) == b""
        assert status_and_code(await exchange(port, HEALTH + b"\r\n"))[0] == 200


async def test_uploads_of_wrong_lengths_are_not_stored(sqlite_store):
    body = encode(some_update(1))
    async with invited(sqlite_store) as (port, *given):
        assert status_and_code(await exchange(port, upload_head(*given, 10**12), b"x")) == (413, "too-large")
        shorter = await exchange(port, upload_head(*given, len(body) - 5) + body)
        assert b" 20" not in shorter[:20]
        negative = await exchange(port, upload_head(*given, -5) + body)
        assert negative.startswith(b"HTTP/1.1 400")
        await exchange(port, upload_head(*given, len(body) + 50) + body, half_close=True)
        chunked = upload_head(*given, 0).replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
        endless = await exchange(port, chunked + b"2000\r\n" + bytes(0x2000) + b"\r\n")
        assert status_and_code(endless) == (413, "too-large")


async def test_cut_uploads_are_not_stored(sqlite_store):
    body = encode(some_update(1))
    async with invited(sqlite_store) as (port, *given):
        for cut in range(0, len(body), 40):
            with socket.create_connection(("127.0.0.1", port)) as connection:
                connection.sendall(upload_head(*given, len(body)) + body[:cut])
        await asyncio.sleep(0.1)


async def test_client_that_hangs_up_is_given_no_ticket(sqlite_store):
    one_place = {"target": 1, "over_selection": 1.0} | PATIENT
    async with serving(sqlite_store, one_place) as running, on_a_socket(running) as port:
        busy, gone, patient = await running.devices(3)
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
async def test_receiver_that_never_reads_is_cut_off(sqlite_store):
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


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (HEALTH + b"X: " + b"y" * MOST_HEAD + b"\r\n\r\n", 431),
        (HEALTH + b"".join(b"X-%d: yyyyyyyyyyyyyyyyyyyy\r\n" % n for n in range(2000)) + b"\r\n", 431),
        (b"GET /health?" + b"y" * MOST_URL + b" HTTP/1.1\r\nHost: test\r\n\r\n", 414),
    ],
    ids=["one long header", "many headers", "a long address"],
)
async def test_long_heads_are_refused(sqlite_store, head, status):
    async with serving(sqlite_store) as running, on_a_socket(running) as port:
        assert status_and_code(await exchange(port, head)) == (status, "too-large")
        assert (await exchange(port, HEALTH + b"X: " + b"y" * 4000 + b"\r\n\r\n")).startswith(b"HTTP/1.1 200")


async def test_endless_header_is_cut(sqlite_store):
    async with serving(sqlite_store) as running, on_a_socket(running) as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        sent, part = 0, b"y" * 16384
        writer.write(HEALTH + b"X: ")
        with suppress(ConnectionError):
            while sent < 2**26:  # 64 MB: what took the server's memory before
                writer.write(part)
                await writer.drain()
                sent += len(part)
        assert sent < 2**24
        writer.close()


async def test_connections_of_an_address_are_limited(sqlite_store):
    async with serving(sqlite_store) as running, on_a_socket(running, address_connections=3) as port:
        held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
        for reader, writer in held:
            writer.write(HEALTH + b"\r\n")
            assert (await reader.readuntil(b"true}")).startswith(b"HTTP/1.1 200")
        assert status_and_code(await exchange(port, b"")) == (429, "too-many")
        held[0][1].close()
        await held[0][1].wait_closed()
        while not (await exchange(port, HEALTH + b"\r\n")).startswith(b"HTTP/1.1 200"):
            await asyncio.sleep(0.02)  # until the connection that has ended has made room
        for _, writer in held[1:]:
            writer.close()


@pytest.mark.parametrize(
    ("proxies", "address", "believed"),
    [
        (None, "127.0.0.1", False),
        ("127.0.0.1, 10.0.0.0/8", "10.1.2.3", True),
        ("127.0.0.1", "127.0.0.2", False),
        ("*", "192.0.2.1", True),
        ("127.0.0.1", "a name", False),
    ],
)
def test_connections_of_proxies_are_not_counted(proxies, address, believed):
    assert proxies_of(proxies)(address) is believed


ODD = ["//admin.html", "/./admin.html", "/x/../admin.html", "/admin.html/", "//", "/%00", "/index.html%00", "/a%5Cb"]


@pytest.mark.parametrize("path", ODD)
async def test_odd_paths_are_unknown(sqlite_store, path):
    async with serving(sqlite_store) as running, on_a_socket(running) as port:
        assert status_and_code(await exchange(port, f"GET {path} HTTP/1.1\r\nHost: test\r\n\r\n".encode())) == (
            404,
            "unknown",
        )
        assert (await exchange(port, b"GET / HTTP/1.1\r\nHost: test\r\n\r\n")).startswith(b"HTTP/1.1 200")
