"""`federank client` as its owner uses it: enrol, take part, look, choose, leave."""

import csv
import json
import signal
import subprocess
import sys
import time

import pytest
from tests.service.client.owner import complaint, told
from tests.service.client.worlds import served


@pytest.fixture
def history(tmp_path):
    path = tmp_path / "me.csv"
    path.write_text("item,date\n101,2024-05-01\nPlace 4,2024-05-02\n106,\nNowhere Else,\n")
    return path


@pytest.fixture
def enrolled(federation, state, history):
    return told("--server", federation.address, "--profile", history, "--pi", 0.5, "--state", state, "--rounds", 2)


def test_a_first_use_enrols_says_what_it_matched_and_takes_part(federation, enrolled, state):
    assert "Matched 3 of 4" in enrolled.stderr
    assert "Nowhere Else" in enrolled.stderr
    assert "your choice" in enrolled.stderr
    assert "2 uploads were sent" in enrolled.stdout
    assert len(federation.uploads) == 2
    assert not any(b"Nowhere" in body for _, body in federation.uploads)
    assert state.stat().st_mode & 0o777 == 0o600


def test_a_history_that_has_grown_is_taken_over(enrolled, state, history):
    history.write_text("item\n101\n104\n106\n108\n109\n")
    assert "Matched 5 of 5" in told("--profile", history, "--state", state, "--rounds", 0).stderr
    exported = json.loads(told("export", "--state", state).stdout)
    assert [entry["item"] for entry in exported["history"]] == ["101", "104", "106", "108", "109"]


@pytest.mark.parametrize("words", [("--pi", 0.9), ("--sharing", "randomized-response"), ("--never-items", "101")])
def test_a_policy_is_not_changed_in_passing(enrolled, state, words):
    assert "federank client policy" in complaint("--state", state, *words, "--rounds", 0)


def test_without_a_policy_the_suggestion_is_taken_and_shown(federation, state, history):
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
        (("--pi", "0.5", "--triples", "6"), "--triples is 6; this federation allows integers from 1 to 5."),
    ],
)
def test_a_policy_that_cannot_be_is_refused_before_anything_is_asked_for(federation, state, history, words, needed):
    assert needed in complaint("--server", federation.address, "--profile", history, "--state", state, *words)
    assert not state.exists()
    assert ("POST", "/api/v1/devices") not in federation.asked


def test_a_history_that_the_federation_does_not_know_is_an_error(federation, state, history):
    history.write_text("item\nNowhere\n")
    complaint("--server", federation.address, "--profile", history, "--state", state, "--pi", 1)
    assert not state.exists()


@pytest.mark.parametrize("word", ["ledger", "recommend", "policy", "pause", "resume", "leave", "export"])
def test_every_command_needs_a_client(state, word):
    assert str(state) in complaint(word, "--state", state)


def test_the_ledger_is_shown_as_a_table_as_json_and_as_a_file(enrolled, state, tmp_path):
    shown = told("ledger", "--state", state).stdout
    assert "2 rounds" in shown
    ledger = json.loads(told("ledger", "--state", state, "--json").stdout)
    assert ledger["rounds"] == 2
    liked = [entry["item"] for entry in ledger["entries"] if entry["times_liked"]]
    assert set(liked) <= {"101", "104", "106"}
    assert ledger["disclosed"] == pytest.approx(len(liked) / 3)
    told("ledger", "--state", state, "--out", tmp_path / "ledger.csv")
    out = tmp_path / "ledger.csv"
    with out.open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert [(line["item"], line["title"]) for line in lines] == [
        (entry["item"], entry["title"]) for entry in ledger["entries"]
    ]
    assert out.stat().st_mode & 0o777 == 0o600
    told("ledger", "--state", state, "--out", tmp_path / "ledger.json")
    assert json.loads((tmp_path / "ledger.json").read_text()) == ledger["entries"]


def test_a_policy_is_changed_part_by_part_and_kept_on_the_never_list(enrolled, state):
    told("policy", "--state", state, "--never-categories", "food")
    now = json.loads(told("policy", "--state", state, "--pi", 0.1, "--json").stdout)
    assert (now["sharing"], now["pi"], now["never_items"]) == ("fixed-subset", 0.1, ["100", "101", "102"])
    now = json.loads(
        told(
            "policy", "--state", state, "--sharing", "randomized-response", "--item-epsilon", 2, "--pi", 0.5, "--json"
        ).stdout
    )
    assert (now["sharing"], now["basis"], now["item_epsilon"], now["never_items"]) == (
        "randomized-response",
        "shared",
        2.0,
        ["100", "101", "102"],
    )
    assert "3 items" in told("policy", "--state", state).stdout
    assert "epsilon" in complaint("policy", "--state", state, "--sharing", "fixed-subset", "--item-epsilon", 2)
    assert "from 1 to 5" in complaint("policy", "--state", state, "--triples", 99)
    assert json.loads(told("policy", "--state", state, "--json").stdout) == now


def test_leaving_can_erase_the_file(enrolled, state):
    told("leave", "--state", state, "--erase")
    assert not state.exists()


def test_an_export_is_the_owners_alone(enrolled, state, tmp_path):
    out = tmp_path / "mine.json"
    told("export", "--state", state, "--out", out)
    assert out.stat().st_mode & 0o777 == 0o600
    assert "token" not in json.loads(out.read_text())


def device_process(*words):
    command = [sys.executable, "-m", "federank", "client", *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_a_client_that_is_stopped_by_its_owner_ends_cleanly_and_another_cannot_join_it(federation, enrolled, state):
    federation.fault("GET", "/work", *[(204, {}, b"")] * 10_000)
    process = device_process("--state", state)
    while sum("/work" in path for _, path in federation.asked) < 3:  # two rounds before, and now it waits
        time.sleep(0.02)
    other = device_process("--state", state)
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
def test_a_client_takes_part_over_tls_only_with_a_certificate_that_it_trusts(tmp_path, state):
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
