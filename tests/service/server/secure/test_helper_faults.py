"""A helper that cannot serve, or a leader that is behind it: a health state, one line of the log, a metric, a pause."""

import asyncio
import datetime
import http.server
import io
import json
import signal
import socket
import ssl
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.secagg.worlds import secagg_config
from tests.service.federations import Served, eventually, opened, refusal, serving
from tests.service.helper.helpers import ThreadedHelper, helping
from tests.service.server.secure.federations import establish_sums

from federank.errors import BadAnswer, SettingError
from federank.service.client.secure import helper_keys
from federank.service.helper.store import RoundKeys
from federank.service.server.helper_line import ANSWER_SECONDS, CERTIFICATE, FULL, REMEDIES, HelperAway, HelperLine
from federank.service.server.http import listening
from federank.service.server.http.listening import ConnectionLimits, bind, uvicorn_server
from federank.service.server.logs import Log
from federank.service.verification import Servers, verify


class Faulty:
    """A leader whose helper a test spoils; its log, and the reasons of its health."""

    def __init__(self, running, stream):
        self.running, self.stream = running, stream

    async def until(self, code):
        await eventually(lambda: code in [reason.code for reason in self.running.service.health().reasons])

    def states(self):
        return [line["state"] for line in self.lines() if line["event"] == "helper"]

    def lines(self):
        return [json.loads(line) for line in self.stream.getvalue().splitlines()]


def change(store, *statements):
    with opened(store) as connection, connection.transaction():
        for statement in statements:
            connection.run(statement)


def spoil_identity(helper):
    """The helper's store is lost: it has another key now."""
    helper.stop()
    for part in ("", "-wal", "-shm"):
        Path(helper.store.removeprefix("sqlite:///") + part).unlink(missing_ok=True)
    helper.start()


def spoil_permission(helper):
    helper.service.helper.settings.__dict__["any_leader"] = False


def spoil_rounds(helper):
    """The helper has offered later rounds than the leader knows: the leader's store was restored from a backup."""
    change(helper.store, "UPDATE rounds SET number = number + 50, state = 'abandoned'")


SPOILT = {
    "helper-away": lambda helper: helper.stop(),
    "helper-identity": spoil_identity,
    "helper-not-allowed": spoil_permission,
    "leader-behind": spoil_rounds,
}


@pytest.mark.parametrize("code", SPOILT)
async def test_fault_is_a_state_one_log_line_and_a_metric(sqlite_store, tmp_path, code):
    helper = ThreadedHelper(tmp_path).start()
    token, stream = establish_sums(sqlite_store, helper.origin), io.StringIO()
    async with serving(sqlite_store, token=token) as running:
        await running.open_round(0)
    await asyncio.to_thread(SPOILT[code], helper)
    change(sqlite_store, "DELETE FROM rounds", "DELETE FROM sums", "DELETE FROM grants")  # the next round is offered
    try:
        async with serving(sqlite_store, token=token, log=Log(stream)) as running:
            faulty = Faulty(running, stream)
            await faulty.until(code)
            answer = await running.client.get("/ready")
            assert answer.json()["health"]["state"] == "failing"
            metrics = await running.metrics()
            assert f'federank_health_reason{{code="{code}"}} 1.0' in metrics
            await asyncio.sleep(1.2)  # it is tried again meanwhile
            [line] = [line for line in faulty.lines() if line["event"] == "helper"]
            assert (line["state"], line["remedy"], line["level"]) == (code, REMEDIES[code], "error")
            assert not [line for line in faulty.lines() if line["event"] == "fault"]
    finally:
        if code != "helper-away":
            helper.stop()


@pytest.mark.parametrize("ahead", ["state = 'answered'", "number = number + 1"])
async def test_backup_with_an_open_round_is_noticed_before_any_upload(sqlite_store, helper, ahead):
    """The usual backup: put back without --restored, it would have clients upload to a round that is over."""
    token, stream = establish_sums(sqlite_store, helper.origin), io.StringIO()
    async with serving(sqlite_store, token=token) as running:
        await running.open_round(0)
    change(helper.store, f"UPDATE rounds SET {ahead}")
    async with serving(sqlite_store, token=token, log=Log(stream)) as running:
        faulty = Faulty(running, stream)
        await faulty.until("leader-behind")
        assert faulty.states() == ["leader-behind"]


async def test_helper_that_is_back_is_noticed(sqlite_store, helper):
    token, stream = establish_sums(sqlite_store, helper.origin), io.StringIO()
    helper.stop()
    async with serving(sqlite_store, token=token, log=Log(stream)) as running:
        faulty = Faulty(running, stream)
        await faulty.until("helper-away")
        helper.start()
        await running.open_round(0)
        assert faulty.states() == ["helper-away", "ok"]


@pytest.mark.slow
def test_sigterm_is_honoured_while_the_helper_is_silent(tmp_path):
    store = f"sqlite:///{tmp_path / 'leader.sqlite'}"
    helper = ThreadedHelper(tmp_path).start()
    token = establish_sums(store, helper.origin)
    helper.stop()
    with socket.create_server(("127.0.0.1", helper.port)):  # takes connections, and answers nothing
        server = Served(store, "--method", "frugal", "--helper", helper.origin, folder=tmp_path).until_ready()
        address = server.admin_address.removeprefix("http://").split(":")
        head = f"Host: x\r\nAuthorization: Bearer {token}\r\nContent-Length: 13"
        with socket.create_connection((address[0], int(address[1]))) as operator:  # a season waits for the helper too
            operator.sendall(f'POST /admin/api/v1/seasons HTTP/1.1\r\n{head}\r\n\r\n{{"uploads": 2}}'.encode())
            time.sleep(0.5)
            server.process.send_signal(signal.SIGTERM)
            server.process.wait(ANSWER_SECONDS / 2)
            server.stop()


async def test_stopping_waits_for_no_slow_body_or_absent_store(monkeypatch):
    """A request may take some moments more; a thread that waits for the store is left behind."""
    taken = []

    async def app(scope, receive, send):
        taken.append(await receive())
        while True:
            await receive()

    server = uvicorn_server(app, ConnectionLimits(header_timeout=10, reading_timeout=30))
    bound = bind("127.0.0.1", 0)
    serving_it = asyncio.create_task(server.serve(sockets=[bound]))
    _, writer = await asyncio.open_connection(*bound.getsockname())
    writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nab")
    while not taken:
        await asyncio.sleep(0.01)
    server.should_exit = True
    await serving_it  # a body would have 30 seconds
    writer.close()

    ended, log = [], io.StringIO()
    monkeypatch.setattr(listening, "LAST_SECONDS", 0.01)
    monkeypatch.setattr(listening.os, "_exit", ended.append)
    await listening.stop_soon(asyncio.sleep(3600), Log(log))
    assert ended == [0]
    assert "warning" in log.getvalue()


class Answering(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = b'{"error": "full", "message": "no room"}'
        self.send_response(503)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def certificate_until(folder, end):
    """A self-signed certificate of this machine that ends at a moment."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(end - datetime.timedelta(days=9)).not_valid_after(end)
    names = x509.SubjectAlternativeName([x509.DNSName("localhost")])
    signed = builder.add_extension(names, critical=False).sign(key, hashes.SHA256())
    (folder / "cert.pem").write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    form = serialization.PrivateFormat.PKCS8
    private = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    (folder / "key.pem").write_bytes(private)
    return folder / "cert.pem", folder / "key.pem"


@contextmanager
def answering(certificate):
    """A server on this machine that is full, with a certificate and its key or without; its port."""
    server = http.server.HTTPServer(("127.0.0.1", 0), Answering)
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


def in_days(days):
    return datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=days)


def test_unknown_certificate_names_its_flag(tmp_path):
    with answering(certificate_until(tmp_path, in_days(1))) as port:
        address = f"https://localhost:{port}"
        with pytest.raises(BadAnswer, match=" --helper-ca"):
            helper_keys(secagg_config(helper_origin=address), None)
        with pytest.raises(BadAnswer, match=" --ca"):
            verify(Servers(address, address))


@pytest.mark.parametrize(("is_secure", "code"), [(True, CERTIFICATE), (False, FULL)])
def test_expired_certificate_and_full_disk_are_named(tmp_path, is_secure, code):
    certificate = certificate_until(tmp_path, in_days(-1)) if is_secure else None
    authority, noted = certificate[0].read_text() if certificate else None, []
    with answering(certificate) as port:
        line = HelperLine(f"{'https' if is_secure else 'http'}://localhost:{port}", b"", authority)
        line.on_change = noted.append
        for _ in range(2):
            with pytest.raises(HelperAway) as away:
                line.identity()
        line.close()
    assert (away.value.code, noted) == (code, [code])
    assert not is_secure or "--helper-ca" in str(away.value)


async def test_helper_reports_its_own_faults(sqlite_store, tmp_path):
    stream = io.StringIO()
    async with helping(sqlite_store, tmp_path, log=Log(stream)) as (service, client):
        assert (await client.get("/ready")).status_code == 200
        service.certificate, _ = certificate_until(tmp_path, in_days(-1))
        for _ in range(3):
            assert refusal(await client.get("/ready")) == (503, "certificate")
        [line] = [json.loads(line) for line in stream.getvalue().splitlines()]
        assert (line["event"], line["state"]) == ("not ready", "certificate")
        assert 'federank_helper_fault{code="certificate"} 1.0' in service.metrics.text({}).decode()
        assert (await client.get("/metrics")).status_code == 404  # at the operator's address only
        service.certificate = None
        assert (await client.get("/ready")).status_code == 200
        assert "federank_helper_fault{" not in service.metrics.text({}).decode()


def test_folder_of_round_keys_is_private_and_removed(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SettingError):
        RoundKeys(tmp_path / "link")
    keys = RoundKeys(tmp_path / "keys")
    keys.put(b"public", bytes(range(32)))
    keys.close()
    assert (tmp_path / "keys").is_dir(), "a round is under way"
    keys.destroy(b"public")
    keys.close()
    assert not (tmp_path / "keys").exists()
