"""Started again with the same command line, a server goes on, whichever flags it was first started with."""

import json
from pathlib import Path

import click
import httpx
import pytest
from tests.commands import refused, serve_words, succeeded
from tests.service.federations import Served, stored
from tests.service.helper.helpers import HelperProcess

from federank.cli.helper import helper as helper_command
from federank.cli.serve import serve as serve_command
from federank.cli.serve import served_methods

DATA = "--data table.csv --users user --items item --ratings rating --times time --header --delimiter , --repeats first"
ALL_ITEMS = "--min-support 1"
TABLE = ("--data", "table.csv", *ALL_ITEMS.split())
DATA += " --item-file titles.csv --min-interactions 2 --k-core 2"
ROUNDS = "--target 60 --minimum 50 --over-selection 1.1 --deadline 30"
SHOWN = "--name Town --noun film/films --seen Seen --description Small --run-by us --language en --every 2d"
SUGGESTED = "--suggest-pi 0.3 --suggest-sharing randomized-response --suggest-item-epsilon 2"
ONE_ROUND = "--new-admin-token --restored --rehearsal --i-accept-that-outsiders-can-read-updates --quiet"
LISTENING = "--host 127.0.0.1 --admin-host 127.0.0.1 --workers 1 --self-signed --proxies 127.0.0.1"
TRUST = (
    "--most-norm 50 --row-quantile 0.9 --move-quantile 0.9 --no-refuse-implausible --client-rate 5 --address-rate 50 "
    "--enrolment-rate 1 --range-rate 2 --invited-only --roll-back-when-worse --address-connections 100 "
    "--body-seconds 20 --header-seconds 9 --keep-updates"
)
FRUGAL = (
    "--messages 3 --factors 4 --alpha 0 --unobserved-weight 1 --regulariser 0.1 --shrinkage 0.1 --activity 0.2 "
    "--popularity 0.2 --damping 1 --encoding int8 --initial-scale 0.2 --most-shown 0.5 --min-support 1 "
    "--item-weights none --seed 4"
)
FPL = (
    "--factors 4 --learning-rate 0.1 --user-regulariser 0.1 --positive-regulariser 0.1 --negative-regulariser 0.1 "
    "--order as-in-code --mask as-printed --triples 8 --most-triples 9 --initial-scale 0.2 --initial-biases normal "
    "--seed 4 --server adam --beta1 0.8 --beta2 0.99 --weight-decay 0.01 --uploads-per-client 90 --clip 20"
)
RATINGS = (
    "--factors 4 --learning-rate 0.2 --decay 0.8 --regulariser 0.01 --initial-range 0.1 --t-predict 4 --t-local 9 "
    "--item-gradients before --filling-start late --local-training copy --lowest 1 --highest 5 --step 1 "
    "--prior-count 5 --first-prediction mean --seed 4"
)
SUMS = "--helper HELPER --least-cohort 20 --norm-check 64"
AUTHORITY = "--helper-ca authority.pem"

LINES = {
    "frugal": f"--method frugal {DATA} {FRUGAL} --clip 2 {ROUNDS} {SHOWN} {SUGGESTED} {TRUST}",
    "fpl": f"--method fpl {DATA} --min-rating 3 {FPL} {LISTENING} {ONE_ROUND}",
    "federank": f"--method federank {DATA} --triples 2",
    "pmf": f"--method pmf {DATA} {RATINGS} --filling average --rho 2 --sampling fixed",
    "svdpp": f"--method svdpp {DATA} {RATINGS}",
    "started from a model": f"{DATA} --start-from model --min-support 1",
    "sums": f"{DATA} {ALL_ITEMS} --factors 3 --epsilon 4 --delta 1e-7 --most-shown 0.4 {SUMS} {AUTHORITY}",
    "sums with a helper at another address than its origin": f"{DATA} {ALL_ITEMS} --clip 1 --sigma 0 --helper http://localhost:PORT",
    "sums of no one's choice": f"{DATA} --min-support 1 --helper HELPER --target 90",
    "sums of ratings": f"{DATA} --method pmf --uploads-per-client 4 --clip 2 --sigma 1 {SUMS}",
}
ELSEWHERE = {"local_helper", "port", "admin_port", "store", "tls_cert", "tls_key", "help_all", "_click_default_help"}
"""Flags that each start of these tests gives, and those of a certificate that is not made."""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with data, and no one who serves: only what precedes it is carried out."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("federank.cli.serve.serve_federation", lambda *_: 0)
    monkeypatch.setattr("federank.cli.helper.serve", lambda *_, **__: 0)
    rows = [f"{user},{item},{1 + (user + item) % 5},{user * item}" for user in range(30) for item in range(12)]
    Path("table.csv").write_text("\n".join(["user,item,rating,time", *rows]))
    Path("titles.csv").write_text("item,title\n" + "\n".join(f"{item},Film {item}" for item in range(12)))
    Path("authority.pem").write_text("")
    return tmp_path


def start(*flags):
    """Start a server that does not serve; the flags that it ignored, with what was given and what is in force."""
    result = succeeded(*serve_words("--port", "0", "--admin-port", "0", *flags))
    lines = [json.loads(line) for line in result.stderr.splitlines() if line.startswith("{")]
    return {line["flag"]: (line["given"], line["in_force"]) for line in lines if line["event"] == "flag ignored"}


def federation(folder, name="federation.sqlite"):
    """What a store says of the federation in it, and of its rounds."""
    info = dict(stored(f"sqlite:///{folder / name}", "SELECT name, value FROM metadata"))
    return json.loads(info["config"]), json.loads(info["rounds"])


def names_in(command, text):
    options = {flag: option.name for option in command.get_params(click.Context(command)) for flag in all_names(option)}
    return {options[word] for word in text.split() if word.startswith("--")}


def all_names(option):
    return (*option.opts, *option.secondary_opts)


def test_every_flag_is_in_a_repeated_command_line():
    commands = {name: serve_command.get_command(None, name) for name in served_methods()}
    flags = {option.name for command in commands.values() for option in command.get_params(click.Context(command))}
    given = set()
    for line in LINES.values():
        _, method, *words = serve_words(*(line if "--method" in line else f"--method frugal {line}").split())
        given |= names_in(commands[method], " ".join(words))
    assert flags - ELSEWHERE == given
    flags = {option.name for option in helper_command.get_params(click.Context(helper_command))}
    assert flags - {"tls_cert", "tls_key", "help_all", "_click_default_help"} == names_in(helper_command, HELPER)


@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
def test_same_command_line_opens_the_store_again(line, folder, request):
    if "--start-from" in line:
        few = ("--messages", "2", "--factors", "4", "--min-support", "1")
        succeeded("train", "frugal", "--data", "table.csv", *few, "--out", "model")
    if "--helper " in line:
        helper = request.getfixturevalue("helper")
        line = line.replace("HELPER", helper.origin).replace("PORT", str(helper.port))
    flags = line.split()
    assert start(*flags) == {}
    before = federation(folder)
    assert start(*flags) == {}
    assert federation(folder) == before


DIFFERENT = {
    "--name": ("Elsewhere", "table"),
    "--method": ("pmf", "frugal"),
    "--messages": (9, 5),
    "--factors": (3, 4),
    "--start-from": ("nowhere", None),
    "--data": ("no-such-file.csv", "the catalogue of table, 12 items"),
}


def test_values_other_than_the_stores_are_logged_and_ignored(folder):
    start(*TABLE, "--factors", "4")
    before = federation(folder)
    for flag, (given, in_force) in DIFFERENT.items():
        assert start(flag, given) == {flag: (given, in_force)}
    assert set(start("--data", "city")) == {"--data"}, "another catalogue"
    assert start("--method", "frugal", "--messages", "5", "--factors", "4", "--name", "table") == {}
    assert federation(folder) == before


def test_agreement_with_a_helper_stays_in_force(folder, helper):
    start(*TABLE, "--helper", helper.origin, "--epsilon", "4", "--least-cohort", "20")
    agreed = stored("sqlite:///federation.sqlite", "SELECT value FROM metadata WHERE name = 'secagg config'")
    other = ["--sigma", "0.5", "--least-cohort", "50", "--norm-check", "off", "--delta", "1e-5"]
    ignored = start("--helper", "https://elsewhere.example/", *other)
    in_force = {flag: kept for flag, (_, kept) in ignored.items()}
    assert in_force.pop("--sigma") > 0
    assert in_force == {"--helper": helper.origin, "--least-cohort": 20, "--norm-check": 128, "--delta": 1e-6}
    assert start("--helper", helper.origin, "--epsilon", "4.001") == {}, "noise is rounded when it is agreed on"
    assert stored("sqlite:///federation.sqlite", "SELECT value FROM metadata WHERE name = 'secagg config'") == agreed


def test_helper_of_a_plain_federation_is_refused(folder, helper):
    start(*TABLE, "--factors", "4")
    refused("serve", "--port", "0", "--admin-port", "0", "--helper", helper.origin)


def test_renewed_certificate_of_a_helper_is_taken_at_the_next_start(folder, helper):
    flags = (*TABLE, "--helper", helper.origin, "--helper-ca", "authority.pem")
    start(*flags)
    Path("authority.pem").write_text("another")
    start(*flags)
    kept = stored("sqlite:///federation.sqlite", "SELECT value FROM metadata WHERE name = 'sums authority'")
    assert kept == [(b"another",)]


HELPER = (
    "helper --origin https://localhost:8480 --host 127.0.0.1 --port 0 --store helper.db --self-signed --new-identity "
    "--proxies 127.0.0.1 --quiet --any-leader --admin-host 127.0.0.1 --admin-port 0 --most-federations 3 "
    "--most-length 100000 --address-rate 9 --address-connections 9 --body-seconds 9 --header-seconds 9 --keys KEYS"
)


@pytest.mark.usefixtures("folder")
def test_helper_opens_its_store_again(memory):
    words = HELPER.replace("KEYS", str(memory)).split()
    first, second = succeeded(*words).stdout, succeeded(*words).stdout
    assert first.splitlines()[0] == second.splitlines()[0]
    without = [word for word in words if word != "--new-identity"]
    fingerprints = {succeeded(*without).stdout.splitlines()[1] for _ in range(2)}
    assert len(fingerprints) == 1


@pytest.mark.slow
def test_stopped_and_killed_processes_continue(tmp_path, memory):
    model = tmp_path / "model"
    succeeded("train", "frugal", "--data", "city", "--messages", "2", "--factors", "4", "--clip", "1", "--out", model)
    helper = HelperProcess(tmp_path, memory).start()
    flags = ("--method", "frugal", "--data", "city", "--start-from", str(model), "--helper", helper.address)
    store = f"sqlite:///{tmp_path / 'federation.sqlite'}"
    with Served(store, *flags, "--clip", "1", "--sigma", "0", folder=tmp_path) as server:
        seen = set()
        for end in ("stop", "kill", "stop"):
            server.until_ready()
            with server.client() as client:
                federation_id = client.get("/api/v1/federation").json()["federation_id"]
            seen.add((federation_id, httpx.get(f"{helper.address}/identity").json()["key"]))
            getattr(server, end)()
            getattr(helper, end)()
            helper.start()
            server.start()
        assert len(seen) == 1
        assert not [line for line in server.lines() if line["event"] == "flag ignored"]
        helper.stop()
