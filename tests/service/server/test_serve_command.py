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
import pytest
from click.testing import CliRunner
from tests.commands import serve_words
from tests.service.federations import PATIENT, Device, Served, establish_small, some_update, stored

from federank.cli import federank, main
from federank.errors import FedeRankError
from federank.service.server.http.listening import TLSError, self_signed, server_context


def refused(*flags):
    """The sentence with which the command refuses."""
    outcome = CliRunner().invoke(federank, serve_words("--port", "0", *flags))
    assert isinstance(outcome.exception, FedeRankError), outcome.output + repr(outcome.exception)
    return str(outcome.exception)


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (("--store", "mysql://host/name"), "no known kind"),
        (("--store", "sqlite:////no/such/folder/f.sqlite"), "cannot be opened"),
        (("--minimum", "50"), "it cannot be more"),
        (("--minimum", "19"), "--i-accept-that-outsiders-can-read-updates"),
        (("--target", "5"), "minimum is 5, and 5 uploads end a round"),
        (("--tls-cert", "there-is-none.pem"), "go together"),
        (("--tls-cert", "there-is-none.pem", "--tls-key", "nor-this.pem"), "is not there"),
        (("--tls-cert", "a.pem", "--tls-key", "b.pem", "--self-signed"), "leave it out"),
        (("--device-rate", "-1"), "device_rate"),
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
def test_what_cannot_be_is_refused_before_anything_begins(flags, sentence, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert sentence in refused(*flags)
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
def test_a_new_federation_needs_a_decision_about_who_reads_uploads(words, explained, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["federank", "serve", *words, "--port", "0"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    error = " ".join(capsys.readouterr().err.split())
    assert [text for text in explained if text not in error] == []
    assert list(tmp_path.iterdir()) == []


def test_a_later_start_needs_no_decision(sqlite_store, monkeypatch):
    establish_small(sqlite_store, {"target": 5})
    monkeypatch.setattr("federank.cli.serve.serve_federation", lambda *_: 0)
    outcome = CliRunner().invoke(federank, ["serve", "--port", "0", "--store", sqlite_store])
    assert outcome.exit_code == 0
    assert re.search(r"^uploads +plain\b", outcome.output, re.MULTILINE)


@pytest.mark.slow
def test_a_local_helper_is_the_same_one_at_a_later_start(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("federank.cli.serve.serve_federation", lambda *_: 0)
    words = ["serve", "--data", "city", "--port", "0", "--admin-port", "0", "--local-helper"]
    helpers = []
    for _ in range(2):
        outcome = CliRunner().invoke(federank, words)
        assert outcome.exit_code == 0, outcome.output
        helpers += [line for line in outcome.output.splitlines() if line.startswith("uploads")]
    assert len(set(helpers)) == 1
    assert sorted(path.name for path in tmp_path.glob("*.sqlite")) == [
        "federation.helper.sqlite",
        "federation.sqlite",
    ]
    outcome = CliRunner().invoke(federank, ["serve", "--port", "0", "--plain"])
    assert "--plain" in str(outcome.exception)


@pytest.mark.parametrize("flag", ["--port", "--admin-port"])
def test_a_port_in_use_is_reported_before_a_federation_is_founded_whose_token_no_client_would_see(flag, tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        sentence = refused("--store", f"sqlite:///{tmp_path / 'f.sqlite'}", flag, str(taken.getsockname()[1]))
    assert f"choose another with {flag}." in sentence
    assert list(tmp_path.iterdir()) == []


def test_settings_of_rounds_can_be_changed_at_a_later_start(sqlite_store, monkeypatch):
    establish_small(sqlite_store, {"target": 5, "deadline": 7.0})
    monkeypatch.setattr("federank.cli.serve.serve_federation", lambda *_: 0)
    assert "but 5 uploads end a round" in refused("--store", sqlite_store, "--minimum", "6")
    flags = ("--port", "0", "--store", sqlite_store, "--target", "9", "--suggest-pi", "0.3")
    assert CliRunner().invoke(federank, serve_words(*flags)).exit_code == 0
    kept = dict(stored(sqlite_store, "SELECT name, value FROM metadata"))
    assert b'"target": 9' in kept["rounds"]
    assert b'"deadline": 7.0' in kept["rounds"]
    assert b'"fixed-subset"' in kept["suggested_policy"]


def test_items_are_called_as_the_operator_says_or_as_a_known_set_does(tmp_path, monkeypatch):
    monkeypatch.setattr("federank.cli.serve.serve_federation", lambda *_: 0)
    store = f"sqlite:///{tmp_path / 'federation.sqlite'}"
    told = []
    for flags in (("--data", "city"), (), ("--noun", "corner / corners"), ()):
        assert CliRunner().invoke(federank, serve_words("--port", "0", "--store", store, *flags)).exit_code == 0
        told.append(json.loads(dict(stored(store, "SELECT name, value FROM metadata"))["noun"]))
    places, corners = {"one": "place", "many": "places"}, {"one": "corner", "many": "corners"}
    assert told == [places, places, corners, corners]


def test_a_new_federation_takes_an_upload_per_day_by_default(tmp_path, monkeypatch):
    monkeypatch.setattr("federank.cli.serve.serve_federation", lambda *_: 0)
    periods = []
    for name, flags in (
        ("a", ()),
        ("a", ("--every", "12h")),
        ("a", ()),
        ("b", ("--rehearsal",)),
        ("c", ("--every", "0")),
    ):
        store = f"sqlite:///{tmp_path / name}"
        assert CliRunner().invoke(federank, serve_words("--port", "0", "--store", store, *flags)).exit_code == 0
        periods.append(json.loads(dict(stored(store, "SELECT name, value FROM metadata"))["upload_period"]))
    assert periods == [86_400, 43_200, 43_200, 0, 0]


@pytest.mark.parametrize("text", ["1", "-1d", "1y", "inf", "400d", "1 day", ""])
def test_a_period_that_is_no_duration_is_refused(text):
    outcome = CliRunner().invoke(federank, ["serve", "--every", text])
    assert outcome.exit_code == 2
    assert repr(text) in outcome.output


@pytest.mark.parametrize(("flags", "method"), [((), "frugal"), (("--method", "fpl"), "fpl")])
def test_a_new_federation_is_of_few_messages_and_an_old_one_stays_what_it_is(tmp_path, monkeypatch, flags, method):
    monkeypatch.setattr("federank.cli.serve.serve_federation", lambda *_: 0)
    store = f"sqlite:///{tmp_path / 'federation.sqlite'}"
    other = ("--method", "fpl" if method == "frugal" else "frugal")
    for more in (flags, (), other):
        assert CliRunner().invoke(federank, serve_words("--port", "0", "--store", store, *more)).exit_code == 0
        config = json.loads(dict(stored(store, "SELECT name, value FROM metadata"))["config"])
        assert config["method"] == method
        assert config["settings"].get("messages") == (5 if method == "frugal" else None)


def kept_minimum(store):
    return json.loads(dict(stored(store, "SELECT name, value FROM metadata"))["rounds"])["minimum"]


def test_a_new_federation_has_rounds_of_twenty_at_least_and_smaller_ones_need_to_be_accepted(tmp_path, monkeypatch):
    monkeypatch.setattr("federank.cli.serve.serve_federation", lambda *_: 0)
    accepted = "--i-accept-that-outsiders-can-read-updates"
    minima = []
    for number, flags in enumerate(((), ("--target", "60", "--minimum", "50"), ("--target", "5", accepted))):
        store = f"sqlite:///{tmp_path / f'{number}.sqlite'}"
        outcome = CliRunner().invoke(federank, serve_words("--port", "0", "--data", "city", "--store", store, *flags))
        assert outcome.exit_code == 0, outcome.output
        minima.append(kept_minimum(store))
    assert minima == [20, 50, 1]
    assert "outsiders" in refused("--store", f"sqlite:///{tmp_path / '0.sqlite'}", "--minimum", "5")


def test_a_store_with_small_rounds_goes_on_and_a_rehearsal_may_have_them(sqlite_store, tmp_path, monkeypatch):
    monkeypatch.setattr("federank.cli.serve.serve_federation", lambda *_: 0)
    establish_small(sqlite_store, {"target": 5})
    assert CliRunner().invoke(federank, serve_words("--port", "0", "--store", sqlite_store)).exit_code == 0
    assert kept_minimum(sqlite_store) == 1
    flags = ("--data", "city", "--store", f"sqlite:///{tmp_path / 'new.sqlite'}", "--target", "3", "--rehearsal")
    assert CliRunner().invoke(federank, serve_words("--port", "0", *flags)).exit_code == 0


def test_a_made_certificate_is_for_its_owner_alone_and_used_again(tmp_path):
    certificate, key = self_signed(tmp_path, ("localhost", "127.0.0.1"))
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    server_context(certificate, key)
    before = certificate.read_bytes()
    assert self_signed(tmp_path, ("localhost",)) == (certificate, key)
    assert certificate.read_bytes() == before
    with pytest.raises(TLSError, match=r"is for localhost, 127\.0\.0\.1, not for 192\.0\.2\.7"):
        self_signed(tmp_path, ("192.0.2.7", "localhost"))
    with pytest.raises(TLSError, match="cannot be used"):
        server_context(key, certificate)


def test_a_made_certificate_whose_time_is_over_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("federank.service.server.http.listening.VALID_DAYS", -0.5)
    self_signed(tmp_path, ("localhost",))
    with pytest.raises(TLSError, match="was valid until"):
        self_signed(tmp_path, ("localhost",))


async def take_part(address, seed, verify=True):
    async with httpx.AsyncClient(base_url=address, timeout=60, verify=verify) as client:
        device = await Device.enrolled(client)
        answer = await device.take_part(some_update(seed))
        return answer.status_code


@pytest.mark.slow
def test_a_federation_is_served_over_tls_and_only_over_tls(tmp_path):
    store = f"sqlite:///{tmp_path / 'federation.sqlite'}"
    establish_small(store, {"target": 2} | PATIENT)
    with Served(store, "--self-signed", "--quiet", folder=tmp_path) as server:
        assert server.address.startswith("https://")
        trusting = ssl.create_default_context(cafile=tmp_path / "federank-cert.pem")
        server.until_ready(server.client(verify=trusting))
        assert asyncio.run(take_part(server.address, 1, trusting)) == 201
        with server.client(verify=trusting) as client:
            assert "max-age" in client.get("/health").headers["Strict-Transport-Security"]
        with pytest.raises(httpx.ConnectError), server.client() as stranger:
            stranger.get("/health")
        with pytest.raises(httpx.TransportError):
            httpx.get(server.address.replace("https", "http") + "/health")


@pytest.mark.slow
def test_two_workers_share_a_store_and_one_that_dies_is_replaced(store, tmp_path):
    import psutil

    establish_small(store, {"target": 1, "over_selection": 1.0} | PATIENT)
    with Served(store, "--workers", "2", "--rehearsal", "--keep-updates", folder=tmp_path) as server:
        server.until_ready()
        workers = psutil.Process(server.process.pid).children()
        assert len(workers) == 2
        for seed in range(4):
            assert asyncio.run(take_part(server.address, seed)) == 201
        leaders = [line for line in server.lines() if line["event"] == "leads"]
        assert len(leaders) == 1
        workers[0].send_signal(signal.SIGKILL)
        workers[0].wait()
        for seed in range(4, 8):
            assert asyncio.run(take_part(server.address, seed)) == 201
        replaced = psutil.Process(server.process.pid).children()
        assert workers[1].pid in [worker.pid for worker in replaced]
        with httpx.Client(base_url=server.admin_address, timeout=30) as admin:
            text = admin.get("/metrics").text
        assert server.stop() == 0
    assert "federank_uploads_total" in text
    assert stored(store, "SELECT COUNT(*) FROM uploads") == [(8,)]
    assert not any(psutil.pid_exists(worker.pid) for worker in (workers[1], *replaced))


@pytest.mark.slow
def test_a_new_federation_prints_its_operator_s_token_once(tmp_path):
    store = f"sqlite:///{tmp_path / 'federation.sqlite'}"
    flags = ("--data", "city", "--target", "1", "--triples", "3", "--rehearsal")
    with Served(store, *flags, folder=tmp_path) as server:
        server.until_ready()
        token = server.token
        assert len(token) > 30
        with httpx.Client(base_url=server.admin_address, timeout=30) as admin:
            answer = admin.get("/admin/api/v1/overview", headers={"Authorization": f"Bearer {token}"})
            assert answer.status_code == 200
            assert server.stop() == 0
    with Served(store, "--new-admin-token", folder=tmp_path) as server:
        server.until_ready()
        assert server.token not in (None, token)
    with Served(store, folder=tmp_path) as server:
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
