"""`federank serve`: what it refuses before anything begins, and what it does as a process: TLS, workers, restarts."""

import asyncio
import json
import os
import re
import signal
import socket
import ssl
import stat
import subprocess
import sys

import httpx
import psutil
import pytest
from tests.commands import refused, run, serve_words, succeeded
from tests.service.federations import PATIENT, Device, Served, establish_small, some_update, stored, wait_until

from federank.cli import main
from federank.service.server.http.listening import TLSError, self_signed, server_context


@pytest.fixture
def serve(tmp_path, monkeypatch):
    """`serve` on a store in a new working folder, without serving; what the store then knows of the federation."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("federank.cli.serve.serve_federation", lambda *_: 0)

    def serve(*flags, name="federation"):
        store = f"sqlite:///{tmp_path / name}.sqlite"
        succeeded(*serve_words("--port", "0", "--store", store, *flags))
        rows = stored(store, "SELECT name, value FROM metadata")
        return {key: json.loads(bytes(value)) for key, value in rows if bytes(value)[:1] in b'{["0123456789'}

    return serve


def refused_serve(*flags):
    return str(refused(*serve_words("--port", "0", *flags)))


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        (("--store", "mysql://host/name"), "no known kind"),
        (("--store", "sqlite:////no/such/folder/f.sqlite"), "cannot be opened"),
        (("--minimum", "50"), "it cannot be more"),
        (("--minimum", "19"), "--i-accept-that-outsiders-can-read-updates"),
        (("--target", "5"), "minimum is 5, and 5 uploads end a round"),
        (("--tls-cert", "there-is-none.pem"), "go together"),
        (("--tls-cert", "there-is-none.pem", "--tls-key", "nor-this.pem"), "is not there"),
        (("--tls-cert", "a.pem", "--tls-key", "b.pem", "--self-signed"), "leave it out"),
        (("--client-rate", "-1"), "client_rate"),
        (("--host", "no.such.host.invalid"), "no address of this machine"),
        (("--proxies", "127.0.0.1,localhost"), "--proxies names 'localhost'"),
        (("--noun", "films"), "such as film/films"),
        (("--noun", "film/"), "such as film/films"),
        (("--noun", "a/b/c"), "such as film/films"),
        (("--noun", f"{'x' * 31}/films"), "at most 30 letters"),
        (("--messages", "0"), "messages is 0"),
        (("--alpha", "-1"), "alpha is -1"),
        (("--alpha", "nan"), "alpha is nan"),
        (("--factors", "9999"), "from 1 to 1024"),
        (("--regulariser", "-3"), "regulariser is -3"),
        (("--suggest-pi", "1", "--suggest-sharing", "all"), "fixed-subset or randomized-response is needed"),
        (("--suggest-pi", "2"), "from 0 to 1"),
        (("--helper", "http://helper.example:8480"), "--helper-ca"),  # without TLS, on another machine
        (("--suggest-sharing", "randomized-response"), "needs --suggest-pi"),
        (("--suggest-item-epsilon", "2"), "needs --suggest-pi"),
        (("--suggest-pi", "0.3", "--suggest-sharing", "randomized-response"), "needs an item_epsilon"),
        (
            ("--suggest-pi", "0.3", "--suggest-sharing", "randomized-response", "--suggest-item-epsilon", "-1"),
            "item_epsilon is -1.0",
        ),
    ],
)
def test_wrong_flags_are_refused_before_anything_begins(flags, named, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert named in refused_serve(*flags)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "explained"),
    [
        (("frugal",), ("--helper URL", "--plain: the operator can read every upload", "--local-helper")),
        ((), ("--helper URL",)),
        (("--plain", "--local-helper"), ("exclude one another",)),
        (("--plain", "--helper", "http://127.0.0.1:9"), ("exclude one another",)),
        (("--plain", "--epsilon", "2"), ("go with --helper or --local-helper",)),
        (("--local-helper", "--store", "postgresql:///federank"), ("SQLite",)),
        (("--local-helper", "--host", "0.0.0.0"), ("an address that they can reach",)),
    ],
)
def test_new_federation_needs_a_choice_of_readers(words, explained, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["federank", "serve", *words, "--port", "0"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    error = " ".join(capsys.readouterr().err.split())
    assert [text for text in explained if text not in error] == []
    assert list(tmp_path.iterdir()) == []


def test_later_start_needs_no_decision(serve, tmp_path):
    serve()
    outcome = succeeded("serve", "--port", "0", "--store", f"sqlite:///{tmp_path}/federation.sqlite")
    assert re.search(r"^uploads +plain\b", outcome.output, re.MULTILINE)


@pytest.mark.slow
@pytest.mark.usefixtures("serve")
def test_local_helper_is_the_same_at_a_later_start(tmp_path):
    words = ["serve", "--data", "city", "--port", "0", "--admin-port", "0", "--local-helper"]
    helpers = [line for _ in range(2) for line in succeeded(*words).output.splitlines() if line.startswith("uploads")]
    assert len(set(helpers)) == 1
    assert {path.name for path in tmp_path.glob("*.sqlite")} == {"federation.helper.sqlite", "federation.sqlite"}
    assert "--plain" in refused_serve("--plain")


@pytest.mark.parametrize("flag", ["--port", "--admin-port"])
def test_port_in_use_is_refused_before_anything_begins(flag, tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        store = f"sqlite:///{tmp_path / 'f.sqlite'}"
        assert flag in refused_serve("--store", store, flag, str(taken.getsockname()[1]))
    assert list(tmp_path.iterdir()) == []


def test_rounds_can_be_changed_at_a_later_start(serve, sqlite_store):
    establish_small(sqlite_store, {"target": 5, "deadline": 7.0})
    assert "5 uploads" in refused_serve("--store", sqlite_store, "--minimum", "6")
    kept = serve("--target", "9", "--suggest-pi", "0.3")
    assert (kept["rounds"]["target"], kept["rounds"]["deadline"]) == (9, 7.0)
    assert kept["suggested_policy"]["sharing"] == "fixed-subset"


def test_noun_is_the_operators_or_the_data_sets(serve):
    places, corners = {"one": "place", "many": "places"}, {"one": "corner", "many": "corners"}
    starts = (("--data", "city"), (), ("--noun", "corner / corners"), ())
    assert [serve(*flags)["noun"] for flags in starts] == [places, places, corners, corners]


def test_a_new_federation_takes_an_upload_per_day_by_default(serve):
    starts = (("a",), ("a", "--every", "12h"), ("a",), ("b", "--rehearsal"), ("c", "--every", "0"))
    periods = [serve(*flags, name=name)["upload_period"] for name, *flags in starts]
    assert periods == [86_400, 43_200, 43_200, 0, 0]


@pytest.mark.parametrize("text", ["1", "-1d", "1y", "inf", "400d", "1 day", ""])
def test_wrong_durations_are_refused(text):
    outcome = run("serve", "--every", text)
    assert outcome.exit_code == 2
    assert repr(text) in outcome.output


@pytest.mark.parametrize(
    ("method", "other", "messages"), [((), "fpl", 5), (("--method", "fpl"), "frugal", None)], ids=["frugal", "fpl"]
)
def test_a_federation_is_frugal_by_default_and_keeps_its_method(serve, method, other, messages):
    for flags in (method, (), ("--method", other)):
        config = serve(*flags)["config"]
        assert (config["method"], config["settings"].get("messages")) == ("fpl" if method else "frugal", messages)


def test_minimum_of_twenty_uploads_unless_fewer_are_accepted(serve, sqlite_store):
    accepted = "--i-accept-that-outsiders-can-read-updates"
    starts = ((), ("--target", "60", "--minimum", "50"), ("--target", "5", accepted), ("--target", "3", "--rehearsal"))
    minima = [serve("--data", "city", *flags, name=str(n))["rounds"]["minimum"] for n, flags in enumerate(starts)]
    assert minima == [20, 50, 1, 1]
    assert "outsiders" in refused_serve("--store", sqlite_store.replace("federation", "0"), "--minimum", "5")
    establish_small(sqlite_store, {"target": 5})
    assert serve()["rounds"]["minimum"] == 1, "a store with small rounds goes on"


def test_self_signed_certificate_is_private_and_used_again(tmp_path):
    certificate, key = self_signed(tmp_path, ("localhost", "127.0.0.1"))
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    server_context(certificate, key)
    before = certificate.read_bytes()
    assert self_signed(tmp_path, ("localhost",)) == (certificate, key)
    assert certificate.read_bytes() == before
    with pytest.raises(TLSError, match=r"192\.0\.2\.7"):
        self_signed(tmp_path, ("192.0.2.7", "localhost"))
    with pytest.raises(TLSError):
        server_context(key, certificate)


def test_expired_certificate_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("federank.service.server.http.listening.VALID_DAYS", -0.5)
    self_signed(tmp_path, ("localhost",))
    with pytest.raises(TLSError):
        self_signed(tmp_path, ("localhost",))


def upload(address, seed, verify=True):
    async def upload():
        async with httpx.AsyncClient(base_url=address, timeout=60, verify=verify) as client:
            await (await Device.enrolled(client)).upload(some_update(seed))

    asyncio.run(upload())


@pytest.mark.slow
def test_tls_server_answers_over_tls_alone(tmp_path, sqlite_store):
    establish_small(sqlite_store, {"target": 2} | PATIENT)
    with Served(sqlite_store, "--self-signed", "--quiet", folder=tmp_path) as server:
        assert server.address.startswith("https://")
        trusting = ssl.create_default_context(cafile=tmp_path / "federank-cert.pem")
        server.until_ready(server.client(verify=trusting))
        upload(server.address, 1, trusting)
        with server.client(verify=trusting) as client:
            assert "max-age" in client.get("/health").headers["Strict-Transport-Security"]
        with pytest.raises(httpx.ConnectError), server.client() as stranger:
            stranger.get("/health")
        with pytest.raises(httpx.TransportError):
            httpx.get(server.address.replace("https", "http") + "/health")


@pytest.mark.slow
def test_killed_worker_is_replaced(store, tmp_path):
    establish_small(store, {"target": 1, "over_selection": 1.0} | PATIENT)
    with Served(store, "--workers", "2", "--rehearsal", "--keep-updates", folder=tmp_path) as server:
        server.until_ready()
        workers = psutil.Process(server.process.pid).children()
        assert len(workers) == 2
        for seed in range(4):
            upload(server.address, seed)
        leaders = [line for line in server.lines() if line["event"] == "leads"]
        assert len(leaders) == 1
        workers[0].send_signal(signal.SIGKILL)
        workers[0].wait()
        for seed in range(4, 8):
            upload(server.address, seed)
        replaced = psutil.Process(server.process.pid).children()
        assert workers[1].pid in [worker.pid for worker in replaced]
        with httpx.Client(base_url=server.admin_address, timeout=30) as admin:
            text = admin.get("/metrics").text
        assert server.stop() == 0
    assert "federank_uploads_total" in text
    assert stored(store, "SELECT COUNT(*) FROM uploads") == [(8,)]
    assert not any(psutil.pid_exists(worker.pid) for worker in (workers[1], *replaced))


@pytest.mark.slow
def test_operators_token_is_printed_once(tmp_path, sqlite_store):
    flags = ("--data", "city", "--target", "1", "--triples", "3", "--rehearsal")
    with Served(sqlite_store, *flags, folder=tmp_path) as server:
        server.until_ready()
        token = server.token
        assert len(token) > 30
        with httpx.Client(base_url=server.admin_address, timeout=30) as admin:
            answer = admin.get("/admin/api/v1/overview", headers={"Authorization": f"Bearer {token}"})
            assert answer.status_code == 200
            assert server.stop() == 0
    with Served(sqlite_store, "--new-admin-token", folder=tmp_path) as server:
        server.until_ready()
        assert server.token not in (None, token)
    with Served(sqlite_store, folder=tmp_path) as server:
        server.until_ready()
        assert server.token is None


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_workers_have_one_blas_thread(tmp_path, workers):
    """As processes of their own, with BLAS asked to use four: in a fork the library would be set up already."""
    words = [sys.executable, "-m", "federank", *serve_words("--data", "city", "--port", "0", "--admin-port", "0")]
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS"), "4")
    process = subprocess.Popen(
        [*words, "--workers", str(workers)], cwd=tmp_path, env=os.environ | threads, stderr=subprocess.PIPE, text=True
    )
    try:
        serving = []
        while len(serving) < workers:
            line = process.stderr.readline()
            assert line, "the server has ended"
            told = json.loads(line) if line.startswith("{") else {}
            serving += [told["blas_threads"]] if told.get("event") == "serving" else []
    finally:
        process.terminate()
        process.communicate()
    assert serving == [1] * workers


def certificate_of(port):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection(("127.0.0.1", port)) as plain, context.wrap_socket(plain) as secured:
        return secured.getpeercert(binary_form=True)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_sighup_reads_a_renewed_certificate_and_no_broken_one(tmp_path, sqlite_store, workers):
    establish_small(sqlite_store, PATIENT)
    certificate, key = self_signed(tmp_path, ("127.0.0.1",))
    flags = ("--tls-cert", str(certificate), "--tls-key", str(key), "--workers", str(workers))
    with Served(sqlite_store, *flags, folder=tmp_path) as server:
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
    wait_until(lambda: sum(line["event"] == event for line in server.lines()) >= times)
