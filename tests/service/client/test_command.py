"""`federank client` as its owner uses it: enrol, take part, look, choose, leave."""

import csv
import json
import signal
import subprocess

import pytest
from tests.commands import started
from tests.service.client.owner import complaint, told
from tests.service.client.worlds import served
from tests.service.federations import wait_until


@pytest.fixture
def history(tmp_path):
    path = tmp_path / "me.csv"
    path.write_text("item,date\n101,2024-05-01\nPlace 4,2024-05-02\n106,\nNowhere Else,\n")
    return path


@pytest.fixture
def enrolled(federation, state, history):
    return told("--server", federation.address, "--profile", history, "--pi", 0.5, "--state", state, "--rounds", 2)


def test_first_use_enrols_and_takes_part(federation, enrolled, state):
    assert "Matched 3 of 4" in enrolled.stderr
    assert "Nowhere Else" in enrolled.stderr
    assert "your choice" in enrolled.stderr
    assert "2 uploads were sent" in enrolled.stdout
    assert len(federation.uploads) == 2
    assert not any(b"Nowhere" in body for _, body in federation.uploads)
    assert state.stat().st_mode & 0o777 == 0o600


def test_history_may_grow(enrolled, state, history):
    history.write_text("item\n101\n104\n106\n108\n109\n")
    assert "Matched 5 of 5" in told("--profile", history, "--state", state, "--rounds", 0).stderr
    exported = json.loads(told("export", "--state", state).stdout)
    assert [entry["item"] for entry in exported["history"]] == ["101", "104", "106", "108", "109"]


@pytest.mark.parametrize("words", [("--pi", 0.9), ("--sharing", "randomized-response"), ("--never-items", "101")])
def test_policy_is_changed_by_its_own_command(enrolled, state, words):
    assert "federank client policy" in complaint("--state", state, *words, "--rounds", 0)


def test_suggested_policy_is_the_default(federation, state, history):
    words = ("--server", federation.address, "--profile", history, "--state", state, "--rounds", 0)
    assert "--pi" in complaint(*words)
    assert not state.exists()
    federation.suggested_policy = {"sharing": "fixed-subset", "pi": 0.25, "basis": "history"}
    assert "pi 0.25" in told(*words).stderr
    assert "pi 0.25" in told("policy", "--state", state).stdout


@pytest.mark.parametrize(
    ("words", "needed"),
    [
        (("--sharing", "randomized-response", "--pi", "0.5"), "epsilon"),
        (("--pi", "1.5"), "pi is 1.5"),
        (("--sharing", "fixed-subset"), "--pi"),
        (("--pi", "0.5", "--never-items", "Nowhere Else"), "--never-items"),
        (("--pi", "0.5", "--never-categories", "Sport"), "--never-categories"),
        (("--pi", "0.5", "--triples", "6"), "--triples is 6"),
    ],
)
def test_wrong_policies_are_refused_before_enrolling(federation, state, history, words, needed):
    assert needed in complaint("--server", federation.address, "--profile", history, "--state", state, *words)
    assert not state.exists()
    assert ("POST", "/api/v1/clients") not in federation.asked


def test_unknown_history_is_refused(federation, state, history):
    history.write_text("item\nNowhere\n")
    complaint("--server", federation.address, "--profile", history, "--state", state, "--pi", 1)
    assert not state.exists()


@pytest.mark.parametrize("word", ["ledger", "recommend", "policy", "pause", "resume", "leave", "export"])
def test_commands_need_a_client(state, word):
    assert str(state) in complaint(word, "--state", state)


def test_ledger_as_table_json_and_file(enrolled, state, tmp_path):
    shown = told("ledger", "--state", state).stdout
    assert "2 rounds" in shown
    ledger = json.loads(told("ledger", "--state", state, "--json").stdout)
    assert ledger["rounds"] == 2
    liked = [entry["item"] for entry in ledger["entries"] if entry["times_liked"]]
    assert set(liked) <= {"101", "104", "106"}
    assert ledger["disclosed"] == pytest.approx(len(liked) / 3)
    out = tmp_path / "ledger.csv"
    told("ledger", "--state", state, "--out", out)
    lines = [(line["item"], line["title"]) for line in csv.DictReader(out.read_text().splitlines())]
    assert lines == [(entry["item"], entry["title"]) for entry in ledger["entries"]]
    assert out.stat().st_mode & 0o777 == 0o600
    told("ledger", "--state", state, "--out", tmp_path / "ledger.json")
    assert json.loads((tmp_path / "ledger.json").read_text()) == ledger["entries"]


def test_policy_is_changed_part_by_part(enrolled, state):
    told("policy", "--state", state, "--never-categories", "food")
    never = ["100", "101", "102"]
    now = json.loads(told("policy", "--state", state, "--pi", 0.1, "--json").stdout)
    assert (now["sharing"], now["pi"], now["never_items"]) == ("fixed-subset", 0.1, never)
    noisy = ("--sharing", "randomized-response", "--item-epsilon", 2, "--pi", 0.5)
    now = json.loads(told("policy", "--state", state, *noisy, "--json").stdout)
    assert [now[name] for name in ("sharing", "basis", "item_epsilon")] == ["randomized-response", "shared", 2.0]
    assert now["never_items"] == never
    assert "3 items" in told("policy", "--state", state).stdout
    assert "epsilon" in complaint("policy", "--state", state, "--sharing", "fixed-subset", "--item-epsilon", 2)
    assert "from 1 to 5" in complaint("policy", "--state", state, "--triples", 99)
    assert json.loads(told("policy", "--state", state, "--json").stdout) == now


def test_leaving_can_erase_the_file(enrolled, state):
    told("leave", "--state", state, "--erase")
    assert not state.exists()


def test_export_is_private(enrolled, state, tmp_path):
    out = tmp_path / "mine.json"
    told("export", "--state", state, "--out", out)
    assert out.stat().st_mode & 0o777 == 0o600
    assert "token" not in json.loads(out.read_text())


@pytest.mark.slow
def test_ctrl_c_ends_a_client_and_no_second_one_takes_part(federation, enrolled, state, tmp_path):
    federation.fault("GET", "/work", *[(204, {}, b"")] * 10_000)
    process = started("client", "--state", state, cwd=tmp_path, stderr=subprocess.PIPE)
    wait_until(lambda: sum("/work" in path for _, path in federation.asked) == 3)  # two rounds before, and it waits
    other = started("client", "--state", state, cwd=tmp_path, stderr=subprocess.PIPE)
    _, said = other.communicate()
    assert other.returncode == 2
    assert "Another process" in said
    assert "2 rounds" in told("ledger", "--state", state).stdout
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    assert process.returncode == 130
    assert "Traceback" not in said
    assert "2 rounds" in told("ledger", "--state", state).stdout


@pytest.mark.slow
def test_client_needs_a_trusted_certificate(tmp_path, state):
    history = tmp_path / "me.csv"
    history.write_text("item\n3\n42\n7\n")
    options = ("--data", "city", "--self-signed", "--target", 1, "--over-selection", 1, "--triples", 5)
    with served(tmp_path, *options) as address:
        assert address.startswith("https://")
        words = ("--server", address, "--profile", history, "--pi", 1, "--state", state, "--rounds", 2)
        assert "cannot be trusted" in complaint(*words)
        assert not state.exists()
        told(*words, "--ca", tmp_path / "federank-cert.pem")
        told("--state", state, "--rounds", 1)
        assert json.loads(told("export", "--state", state).stdout)["model_version"] == 2
        told("leave", "--state", state)
        assert "has left" in complaint("--state", state, "--rounds", 1)
