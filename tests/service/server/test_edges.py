"""Edges: heads without end, connections without end, odd paths, numbers and characters that are none, a renewed
certificate."""

import asyncio
import io
import json
import signal
import socket
import ssl
import time
from contextlib import suppress

import pytest
from tests.service.federations import PATIENT, WAITS, Served, establish_small, serving
from tests.service.server.test_limits import exchange, on_a_socket, told

from federank.service.server.http.listening import MOST_HEAD, MOST_URL, proxies_of, self_signed
from federank.service.server.logs import Log
from federank.service.server.processes import Serving, _plain, serving_from
from federank.service.server.settings import TrustSettings
from federank.service.server.store.database import StoreAway

HEALTH = b"GET /health HTTP/1.1\r\nHost: test\r\n"


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (HEALTH + b"X: " + b"y" * MOST_HEAD + b"\r\n\r\n", 431),
        (HEALTH + b"".join(b"X-%d: yyyyyyyyyyyyyyyyyyyy\r\n" % n for n in range(2000)) + b"\r\n", 431),
        (b"GET /health?" + b"y" * MOST_URL + b" HTTP/1.1\r\nHost: test\r\n\r\n", 414),
    ],
    ids=["one long header", "many headers", "a long address"],
)
async def test_a_head_that_is_too_long_is_refused(sqlite_store, head, status):
    async with serving(sqlite_store) as running, on_a_socket(running) as port:
        assert told(await exchange(port, head)) == (status, "too-large")
        assert (await exchange(port, HEALTH + b"X: " + b"y" * 4000 + b"\r\n\r\n")).startswith(b"HTTP/1.1 200")


async def test_a_header_without_end_is_cut_before_it_is_complete(sqlite_store):
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


async def test_an_address_holds_so_many_connections_and_no_more(sqlite_store):
    async with serving(sqlite_store) as running, on_a_socket(running, address_connections=3) as port:
        held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
        for reader, writer in held:
            writer.write(HEALTH + b"\r\n")
            assert (await reader.readuntil(b"true}")).startswith(b"HTTP/1.1 200")
        assert told(await exchange(port, b"")) == (429, "too-many")
        held[0][1].close()
        await held[0][1].wait_closed()
        for _ in range(WAITS):
            answer = await exchange(port, HEALTH + b"\r\n")
            if answer.startswith(b"HTTP/1.1 200"):
                break
            await asyncio.sleep(0.02)
        assert answer.startswith(b"HTTP/1.1 200"), "a connection that has ended frees its room"
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


def test_workers_divide_the_connections_of_an_address_and_know_their_number():
    serving_as = Serving(store="", trust=TrustSettings(address_connections=7), workers=2, worker=2)
    part = serving_from(_plain(serving_as))
    assert (part.trust.address_connections, part.worker) == (4, 2)


ODD = ["//admin.html", "/./admin.html", "/x/../admin.html", "/admin.html/", "//", "/%00", "/index.html%00", "/a%5Cb"]


@pytest.mark.parametrize("path", ODD)
async def test_odd_paths_are_found_nowhere(sqlite_store, path):
    async with serving(sqlite_store) as running, on_a_socket(running) as port:
        assert told(await exchange(port, f"GET {path} HTTP/1.1\r\nHost: test\r\n\r\n".encode())) == (404, "unknown")
        assert (await exchange(port, b"GET / HTTP/1.1\r\nHost: test\r\n\r\n")).startswith(b"HTTP/1.1 200")


async def test_half_a_character_is_refused_and_the_status_stays_readable(sqlite_store):
    async with serving(sqlite_store) as running:
        body = rb'{"precision\ud800": 0.5}'
        answer = await running.admin.post("/admin/api/v1/accuracy", content=body, headers=running.operator)
        assert (answer.status_code, answer.json()["error"]) == (400, "not-json")
        assert (await running.client.get("/api/v1/status")).status_code == 200


def test_a_line_has_a_level_and_a_worker():
    lines = io.StringIO()
    log = Log(lines, worker=3)
    log.say("leads")
    log.fault("rounds", ValueError("secret"))
    log.store_away(StoreAway("locked"))
    found = [json.loads(line) for line in lines.getvalue().splitlines()]
    assert [(line["level"], line["worker"]) for line in found] == [("info", 3), ("error", 3), ("warning", 3)]
    assert "secret" not in lines.getvalue()


def certificate_of(port):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection(("127.0.0.1", port)) as plain, context.wrap_socket(plain) as secured:
        return secured.getpeercert(binary_form=True)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_a_renewed_certificate_is_taken_on_sighup_and_a_broken_one_is_not(tmp_path, workers):
    store = f"sqlite:///{tmp_path / 'federation.sqlite'}"
    establish_small(store, PATIENT)
    certificate, key = self_signed(tmp_path, ("127.0.0.1",))
    flags = ("--tls-cert", str(certificate), "--tls-key", str(key), "--workers", str(workers))
    with Served(store, *flags, folder=tmp_path) as server:
        server.until_ready(server.client(verify=False))
        wait_for(server, "serving", workers)
        port = int(server.address.rsplit(":", 1)[1])
        first = certificate_of(port)
        (tmp_path / "other").mkdir()
        new, its_key = self_signed(tmp_path / "other", ("127.0.0.1",))
        certificate.write_bytes(new.read_bytes())
        server.process.send_signal(signal.SIGHUP)
        wait_for(server, "certificate cannot be used", workers)
        assert not [line for line in server.lines() if line["event"] == "worker ended"]
        assert certificate_of(port) == first, "a certificate without its key is not half taken"
        key.write_bytes(its_key.read_bytes())
        server.process.send_signal(signal.SIGHUP)
        wait_for(server, "certificate read again", workers)
        assert certificate_of(port) != first
        assert {line["worker"] for line in server.lines()} >= ({1, 2} if workers == 2 else {0})


def wait_for(server, event, times):
    for _ in range(WAITS):
        if sum(line["event"] == event for line in server.lines()) >= times:
            return
        time.sleep(0.05)
    raise AssertionError(f"{event} was not told: {server.lines()}")
