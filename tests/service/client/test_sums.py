"""A person's device where no single server reads an upload: what it pins, what it checks, and what never leaves it."""

import asyncio
import json
import random
import sqlite3
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest
from click.testing import CliRunner
from tests.pasted import free_ports
from tests.secagg.proof.uploads import liars_upload
from tests.secagg.worlds import offer, secagg_config
from tests.service.federations import ITEMS, NO_LIMITS, WAITS
from tests.service.helper.helpers import ThreadedHelper
from tests.service.server.secure.federations import LEAST, about_zero, establish_sums

import federank as fr
from federank.cli import federank
from federank.cli.client_views import _bound
from federank.errors import BadAnswer
from federank.federation import client as summed
from federank.federation.client import can_afford, cost_of, epsilon_promised, epsilon_so_far
from federank.methods.frugal.server_steps import USUAL_PRIVATE
from federank.privacy.policy import Policy
from federank.secagg.config import config_from
from federank.secagg.proof.parameters import FULL
from federank.secagg.upload import decode_upload, encode_upload
from federank.service.client import client as life
from federank.service.client import enrolment
from federank.service.client import secure as sums
from federank.service.client.client import take_part
from federank.service.client.enrolment import enrol
from federank.service.client.federation import fetch_info, fetch_model
from federank.service.client.http import Client
from federank.service.client.state import ChosenPolicy
from federank.service.client.store import DeviceStore
from federank.service.server.http.app import public_app
from federank.service.server.http.listening import ConnectionLimits, bind, uvicorn_server
from federank.service.server.logs import Log
from federank.service.server.service import open_service
from federank.service.server.settings import TrustSettings
from federank.service.simulated_clients.methods import Plan
from federank.service.simulated_clients.processes import Rehearsal, rehearse
from federank.service.verification import Servers, verify

pytestmark = pytest.mark.slow

ALL_OF_IT = Policy(sharing="fixed-subset", pi=1.0, basis="shared")
HISTORIES = [["item-00", "item-01", "item-02"], ["item-00", "item-03"], ["item-04", "item-05", "item-06"]]


class Leader:
    """A leader's worker with its real parts, on a port of this machine, in a thread."""

    def __init__(self, store, port=None):
        self.port = port or free_ports(1)[0]
        self.socket = bind("127.0.0.1", self.port)
        self.address = f"http://127.0.0.1:{self.port}"
        self.store, self.ready, self.ending = store, threading.Event(), None
        self.thread = threading.Thread(target=lambda: asyncio.run(self._serve()))
        self.thread.start()
        assert self.ready.wait(600)

    async def _serve(self):
        service = open_service(self.store, TrustSettings(**NO_LIMITS), Log(None))
        await service.start()
        self.server = uvicorn_server(public_app(service), ConnectionLimits(header_timeout=10, reading_timeout=30))
        self.ready.set()
        await self.server.serve(sockets=[self.socket])
        service.selection.end()
        await service.stop()

    def stop(self):
        self.server.should_exit = True
        self.thread.join()
        self.socket.close()


@contextmanager
def two_servers(tmp_path, **given):
    store = f"sqlite:///{tmp_path / 'leader.sqlite'}"
    with ThreadedHelper(tmp_path) as helper:
        establish_sums(store, helper.origin, **given)
        leader = Leader(store)
        try:
            yield leader, helper
        finally:
            leader.stop()


@pytest.fixture
def servers(tmp_path):
    with two_servers(tmp_path) as both:
        yield both


class Home:
    """A device at home: its file, its line, and what it told its owner."""

    def __init__(self, address, folder, number=0):
        self.address, self.path, self.told = address, folder / f"device-{number}.sqlite", []
        profile = folder / f"me-{number}.csv"
        profile.write_text("item\n" + "\n".join(HISTORIES[number % 3]) + "\n")
        with Client(address, note=self.told.append) as client:
            chosen = ChosenPolicy(ALL_OF_IT, "owner")
            enrol(client, self.path, profile, lambda *_: chosen, random_bits=random.Random(number).getrandbits)

    def take_part(self, rounds=1):
        with DeviceStore(self.path) as store:
            identity = store.identity()
            with Client(self.address, token=identity.token, note=self.told.append) as client:
                return take_part(store, client, rounds, self.told.append)

    def read(self, reader):
        with DeviceStore(self.path) as store:
            return reader(store)


def outcomes_of(home):
    """What its device knows of each of its uploads; None while it waits."""
    return [sent.outcome for sent in home.read(lambda store: store.uploads())]


def everybody_once(homes):
    """All of them take part in one round, at the same time, as a cohort needs them all."""
    stored = []
    threads = [threading.Thread(target=lambda home=home: stored.append(home.take_part())) for home in homes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return stored


def test_clients_take_part_and_the_model_follows(servers, tmp_path):
    leader, helper = servers
    homes = [Home(leader.address, tmp_path, number) for number in range(LEAST)]
    assert everybody_once(homes) == [1] * LEAST
    with Client(leader.address) as client:
        for _ in range(WAITS):
            if fetch_info(client).version == 1:
                break
            threading.Event().wait(0.05)
        assert fetch_info(client).version == 1
    for home in homes:
        assert home.read(lambda store: store.ledger()).spent == 1
        pinned = home.read(lambda store: store.identity().sums)
        assert pinned.config.helper_public() == helper.service.helper.identity.public


def test_a_client_whose_message_was_left_out_is_told_so_once_and_the_message_stays_spent(
    servers, tmp_path, monkeypatch
):
    leader, _ = servers
    home = Home(leader.address, tmp_path)

    def loud(check, offer, message, random):
        del random
        return encode_upload(liars_upload(check, offer, 100 * message.astype(np.int64), about_zero))

    with monkeypatch.context() as patched:
        patched.setattr(summed, "bytes_of_message", loud)
        assert home.take_part() == 1
    for _ in range(WAITS):  # until both servers have looked at it
        home.take_part(0)
        if outcomes_of(home) == ["norm-too-large"]:
            break
        time.sleep(0.05)
    home.take_part(0)
    told = [line for line in home.told if "left out" in line]
    assert told == [
        "Round 0: The message was left out: its proof that it is no longer than a message may be does not hold. It is "
        "in no sum, and stays spent."
    ]
    assert (outcomes_of(home), home.read(lambda store: store.ledger()).spent) == (["norm-too-large"], 1)
    shown = CliRunner().invoke(federank, ["client", "status", "--json", "--state", str(home.path)])
    status = json.loads(shown.output)
    assert (status["outcomes"], status["messages_sent"], status["messages_left"]) == (["norm-too-large"], 1, 4)


def test_what_waits_to_be_sent_is_the_upload_and_never_the_message(servers, tmp_path, monkeypatch):
    leader, _ = servers
    home = Home(leader.address, tmp_path)
    monkeypatch.setattr(life, "send_pending", lambda *_: False)
    home.take_part()
    pending = home.read(lambda store: store.pending())
    upload = decode_upload(pending.body, (ITEMS + 5) * 5, FULL)
    assert len(upload.share) == (ITEMS + 5) * 5
    assert home.read(lambda store: store.ledger()).spent == 1  # written before the first byte leaves
    assert b"strengths" not in home.path.read_bytes()


def test_attack_another_key_in_the_helpers_place(servers, tmp_path):
    """The leader cannot pretend to be both: the key is fetched from the helper's own address."""
    leader, helper = servers
    real = helper.service.helper.identities
    kept = list(real)
    real[:] = [kept[0]._replace(public=bytes.fromhex(_other_key()))]
    with pytest.raises(BadAnswer, match="not who it says"):
        Home(leader.address, tmp_path)
    real[:] = kept
    assert not list(tmp_path.glob("device-*"))


def _other_key():
    from federank.secagg.keys import new_private_key, public_key_of

    return public_key_of(new_private_key()).hex()


@pytest.mark.parametrize("change", ["model", "key", "round", "config"])
def test_attack_another_offer_for_one_user(servers, tmp_path, monkeypatch, change):
    """Whatever the leader says of a round that the helper has not signed, or signed for something else, is refused."""
    leader, _ = servers
    home = Home(leader.address, tmp_path)
    real = sums.checked_offer

    def tampered(content, info, pinned, model, number):
        told = json.loads(content)
        if change == "model":
            return real(
                content,
                info,
                pinned,
                model._replace(tables={**model.tables, "vectors": model.vectors + np.float32(1)}),
                number,
            )
        if change == "round":
            return real(content, info, pinned, model, number + 1)
        if change == "config":
            noisier = json.loads(pinned.config.to_bytes()) | {"noises": [128] * 5}
            other = config_from(json.dumps(noisier, sort_keys=True, separators=(",", ":")).encode())
            return real(content, info, pinned._replace(config=other), model, number)
        told["offer"]["key"] = _other_key()
        return real(json.dumps(told, sort_keys=True, separators=(",", ":")).encode(), info, pinned, model, number)

    monkeypatch.setattr(sums, "checked_offer", tampered)
    with pytest.raises(BadAnswer, match="offer cannot be taken"):
        home.take_part()
    assert home.read(lambda store: store.ledger()).spent == 0


def test_attack_starting_a_new_federation_to_reset_the_count(servers, tmp_path):
    """A new federation at the same address, with the same helper: messages count for its lifetime; a weaker one is
    refused.
    """
    leader, helper = servers
    home = Home(leader.address, tmp_path)
    sql = sqlite3.connect(home.path)
    spent = [(number + 1, number) for number in range(5)]
    sql.executemany("INSERT INTO messages (number, allowed, round, items, season) VALUES (?, 5, ?, 3, 1)", spent)
    sql.commit()
    sql.close()
    leader.stop()
    (tmp_path / "anew").mkdir()
    store = f"sqlite:///{tmp_path / 'anew' / 'leader.sqlite'}"
    establish_sums(store, helper.origin)
    again = Leader(store, leader.port)
    try:
        assert home.take_part() == 0
        assert any("begun again" in line for line in home.told)
        assert home.read(lambda store: store.ledger()).spent == 5
    finally:
        again.stop()


def test_attack_starting_a_new_federation_with_less_noise_or_another_helper(tmp_path):
    with two_servers(tmp_path, sigma=1.0) as (leader, helper):
        home = Home(leader.address, tmp_path)
        leader.stop()
        for name, origin_of, sentence in (
            ("quieter", lambda: helper.origin, "less noise"),
            ("other", None, "another helper"),
        ):
            (tmp_path / name).mkdir()
            store = f"sqlite:///{tmp_path / name / 'leader.sqlite'}"
            other = None
            if origin_of is None:
                other = ThreadedHelper(tmp_path / name).start()
            establish_sums(store, other.origin if other else origin_of(), sigma=1.0 if other else 0.0)
            again = Leader(store, leader.port)
            try:
                with pytest.raises(BadAnswer, match=sentence):
                    home.take_part()
            finally:
                again.stop()
                if other:
                    other.stop()


def many_people():
    """Two tastes, twelve people."""
    rng = np.random.default_rng(5)
    rows = [
        (f"person {who}", f"item-{item:02d}")
        for who in range(12)
        for item in sorted(rng.choice(ITEMS // 2, 5, replace=False) + ITEMS // 2 * (who % 2)).copy()
    ]
    return fr.load(rows + [("person 0", f"item-{item:02d}") for item in range(ITEMS) if item % 4 == 0])


@pytest.mark.parametrize("recipe", ["few items", "bounded"])
def test_without_noise_two_servers_publish_the_simulations_model_to_the_last_bit(tmp_path, recipe):
    """`serve --helper URL --sigma 0` with simulated clients, and `train frugal --sigma 0`."""
    data = many_people() if recipe == "few items" else fr.load(town_rows())
    store = f"sqlite:///{tmp_path / 'leader.sqlite'}"
    asked = {"factors": 6, "messages": 3}
    with ThreadedHelper(tmp_path) as helper:
        rounds = {"target": data.n_users, "minimum": 12}
        establish_sums(store, helper.origin, rounds, least=12, data=data, clip=None, **asked)
        leader = Leader(store)
        try:
            plan = Plan(address=leader.address)
            played = rehearse(Rehearsal(plan=plan, data=data, specs={"pi": 1.0}), 1)
            assert played.tally.interactions == 3 * data.n_users
            with Client(leader.address) as client:
                for _ in range(WAITS):
                    info = fetch_info(client)
                    if info.version == 3:
                        break
                    time.sleep(0.01)
                model = fetch_model(client, info)
            found = verify(Servers(leader.address, helper.origin))
            assert (found.versions, found.messages) == (3, 3 * data.n_users)
        finally:
            leader.stop()
    expected, free = (
        fr.Frugal(min_support=1, sigma=0.0, **asked, most_shown=most).fit(data) for most in (USUAL_PRIVATE, None)
    )
    assert np.array_equal(expected.item_vectors, free.item_vectors) == (recipe == "few items")
    assert np.array_equal(model.vectors, expected.item_vectors)
    assert np.array_equal(model.tables["weights"], expected.item_weights)
    assert (model.version, model.overall["regulariser"][0]) == (3, expected.regulariser)


def town_rows():
    """People and items enough for bounds to be kept."""
    data = fr.city(people=60, places=260, checkins=3000)
    return [(f"person {user}", f"place-{item:03d}") for user, item in zip(data.users, data.items, strict=True)]


def test_every_message_of_a_lifetime_has_its_noise_and_the_client_counts_it(tmp_path):
    with two_servers(tmp_path, sigma=2.0, messages=2, clip=None) as (leader, helper):
        homes = [Home(leader.address, tmp_path, number) for number in range(LEAST)]
        config = homes[0].read(lambda store: store.identity().sums.config)
        assert (config.recipe, config.clip, len(set(config.noises))) == ("private", "1.0", 2)
        assert everybody_once(homes) == [1] * LEAST
        assert everybody_once(homes) == [1] * LEAST
        for _ in range(WAITS):
            with Client(leader.address) as client:
                if fetch_info(client).version == 2:
                    break
            time.sleep(0.05)
        ledger = homes[0].read(lambda store: store.ledger())
        assert tuple(message.noise for message in ledger.messages) == config.noises
        assert epsilon_so_far(config, ledger) == pytest.approx(epsilon_promised(config))
        assert homes[0].take_part() == 0
        found = verify(Servers(leader.address, helper.origin))
        assert (found.versions, found.messages) == (2, 2 * LEAST)
        status = CliRunner().invoke(federank, ["client", "status", "--state", str(homes[0].path)])
        assert f"epsilon {_bound(epsilon_promised(config))} so far" in status.output


def test_a_message_beyond_what_was_promised_is_not_made():
    """A leader that asks again and again for the stage with the least noise gets no more than the plan allows."""
    mine = secagg_config()
    least = mine.noises.index(min(mine.noises))
    asked = offer(stage=least, noise=mine.noises[least])[0]
    spent, made = 0.0, 0
    while can_afford(mine, asked, spent):
        spent, made = spent + cost_of(asked.noise), made + 1
    assert 1 <= made < mine.messages
    assert spent <= mine.mu() ** 2 * (1 + 1e-9)
    quiet = secagg_config(noise=0)
    assert can_afford(quiet, offer(noise=0)[0], 0.0)


def test_attack_another_list_of_items_for_one_user(servers, tmp_path, monkeypatch):
    leader, _ = servers
    real = enrolment.fetch_catalogue

    def other(*asked):
        told = real(*asked)
        return told._replace(titles=told.titles[::-1], sha256="0" * 64)

    monkeypatch.setattr(enrolment, "fetch_catalogue", other)
    with pytest.raises(BadAnswer, match="list of items"):
        Home(leader.address, tmp_path)
    assert not list(tmp_path.glob("device-*"))
