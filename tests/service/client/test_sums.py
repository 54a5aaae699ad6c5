"""A client under secure aggregation: what it pins, what it checks, and what never leaves it."""

import json

import numpy as np
import pytest
from tests.secagg.proof.uploads import liars_upload
from tests.secagg.worlds import offer, secagg_config
from tests.service.client.homes import all_take_part, leading, published, secure_home, two_servers
from tests.service.federations import ITEMS, wait_until
from tests.service.helper.helpers import ThreadedHelper
from tests.service.server.secure.federations import LEAST, about_zero, establish_sums

import federank as fr
from federank.cli.client_views import _bound
from federank.errors import BadAnswer
from federank.federation import client as summed
from federank.federation.client import can_afford, cost_of, epsilon_promised, epsilon_so_far
from federank.methods.frugal.bounds import USUAL_PRIVATE
from federank.secagg.canonical import canonical
from federank.secagg.config import config_from
from federank.secagg.keys import new_private_key, public_key_of
from federank.secagg.proof.parameters import FULL
from federank.secagg.upload import decode_upload, encode_upload
from federank.service.client import client as life
from federank.service.client import enrolment
from federank.service.client import secure as sums
from federank.service.client.store import ClientStore
from federank.service.simulated_clients.methods import Plan
from federank.service.simulated_clients.processes import Rehearsal, rehearse
from federank.service.verification import Servers, verify

pytestmark = pytest.mark.slow


@pytest.fixture
def servers(tmp_path):
    with two_servers(tmp_path) as both:
        yield both


def test_clients_take_part_and_the_model_follows(servers, tmp_path):
    leader, helper = servers
    homes = [secure_home(leader, tmp_path, number) for number in range(LEAST)]
    assert all_take_part(homes) == [1] * LEAST
    published(leader, 1)
    for home in homes:
        assert home.read(ClientStore.ledger).spent == 1
        pinned = home.read(ClientStore.identity).sums
        assert pinned.config.helper_public() == helper.service.helper.identity.public


def test_rejected_message_is_reported_once_and_stays_spent(servers, tmp_path, monkeypatch):
    leader, _ = servers
    home = secure_home(leader, tmp_path)

    def loud(check, offer, message, random):
        del random
        return encode_upload(liars_upload(check, offer, 100 * message.astype(np.int64), about_zero))

    with monkeypatch.context() as patched:
        patched.setattr(summed, "bytes_of_message", loud)
        assert home.take_part() == 1
    wait_until(lambda: home.take_part(0) == 0 and home.outcomes() == ["norm-too-large"])
    home.take_part(0)
    assert sum("left out" in note for note in home.notes) == 1
    assert (home.outcomes(), home.read(ClientStore.ledger).spent) == (["norm-too-large"], 1)
    status = json.loads(home.run("status", "--json"))
    assert (status["outcomes"], status["messages_sent"], status["messages_left"]) == (["norm-too-large"], 1, 4)


def test_pending_upload_is_split(servers, tmp_path, monkeypatch):
    leader, _ = servers
    home = secure_home(leader, tmp_path)
    monkeypatch.setattr(life, "send_pending", lambda *_: False)
    home.take_part()
    pending = home.read(ClientStore.pending)
    upload = decode_upload(pending.body, (ITEMS + 5) * 5, FULL)
    assert len(upload.share) == (ITEMS + 5) * 5
    assert home.read(ClientStore.ledger).spent == 1  # written before the first byte leaves
    assert b"strengths" not in home.path.read_bytes()


def test_attack_another_key_in_the_helpers_place(servers, tmp_path):
    """The leader cannot pretend to be both: the key is fetched from the helper's own address."""
    leader, helper = servers
    real = helper.service.helper.identities
    kept = list(real)
    real[:] = [kept[0]._replace(public=public_key_of(new_private_key()))]
    with pytest.raises(BadAnswer):
        secure_home(leader, tmp_path)
    real[:] = kept
    assert not list(tmp_path.glob("device-*"))


@pytest.mark.parametrize("change", ["model", "key", "round", "config"])
def test_attack_another_offer_for_one_user(servers, tmp_path, monkeypatch, change):
    """Whatever the leader says of a round that the helper has not signed, or signed for something else, is refused."""
    leader, _ = servers
    home = secure_home(leader, tmp_path)
    real = sums.checked_offer

    def tampered(content, info, pinned, model, number):
        if change == "model":
            model = model._replace(tables={**model.tables, "vectors": model.vectors + np.float32(1)})
        elif change == "round":
            number += 1
        elif change == "config":
            noisier = json.loads(pinned.config.to_bytes()) | {"noises": [128] * 5}
            pinned = pinned._replace(config=config_from(canonical(noisier)))
        else:
            told = json.loads(content)
            told["offer"]["key"] = public_key_of(new_private_key()).hex()
            content = canonical(told)
        return real(content, info, pinned, model, number)

    monkeypatch.setattr(sums, "checked_offer", tampered)
    with pytest.raises(BadAnswer, match="offer cannot be taken"):
        home.take_part()
    assert home.read(ClientStore.ledger).spent == 0


def test_attack_starting_a_new_federation_to_reset_the_count(servers, tmp_path):
    """A new federation at the same address, with the same helper: messages count for a client's lifetime."""
    leader, helper = servers
    home = secure_home(leader, tmp_path)
    for number in range(5):
        home.sql(
            "INSERT INTO messages (number, allowed, round, items, season) VALUES (?, 5, ?, 3, 1)", number + 1, number
        )
    leader.stop()
    store = f"sqlite:///{tmp_path / 'again.sqlite'}"
    establish_sums(store, helper.origin)
    with leading(store, leader.port):
        assert home.take_part() == 0
        assert any("begun again" in note for note in home.notes)
        assert home.read(ClientStore.ledger).spent == 5


def test_attack_starting_a_new_federation_with_less_noise_or_another_helper(tmp_path):
    with two_servers(tmp_path, sigma=1.0) as (leader, helper):
        home = secure_home(leader, tmp_path)
        leader.stop()
        (tmp_path / "other").mkdir()
        with ThreadedHelper(tmp_path / "other") as other:
            for origin, sigma, named in ((helper.origin, 0.0, "less noise"), (other.origin, 1.0, "another helper")):
                store = f"sqlite:///{tmp_path / f'{sigma}.sqlite'}"
                establish_sums(store, origin, sigma=sigma)
                with leading(store, leader.port), pytest.raises(BadAnswer, match=named):
                    home.take_part()


def two_tastes():
    """Two tastes of six users each."""
    rng = np.random.default_rng(5)
    rows = [
        (f"person {who}", f"item-{item:02d}")
        for who in range(12)
        for item in sorted(rng.choice(ITEMS // 2, 5, replace=False) + ITEMS // 2 * (who % 2)).copy()
    ]
    return fr.load(rows + [("person 0", f"item-{item:02d}") for item in range(ITEMS) if item % 4 == 0])


@pytest.mark.parametrize("recipe", ["few items", "bounded"])
def test_two_servers_without_noise_publish_the_simulations_model(tmp_path, recipe):
    """`serve --helper URL --sigma 0` with simulated clients, and `train frugal --sigma 0`."""
    data = two_tastes() if recipe == "few items" else fr.load(town_rows())
    asked = {"factors": 6, "messages": 3}
    given = asked | {"rounds": {"target": data.n_users, "minimum": 12}, "least": 12, "data": data, "clip": None}
    with two_servers(tmp_path, **given) as (leader, helper):
        played = rehearse(Rehearsal(plan=Plan(address=leader.address), data=data, specs={"pi": 1.0}), 1)
        assert played.tally.interactions == 3 * data.n_users
        model = published(leader, 3)
        found = verify(Servers(leader.address, helper.origin))
        assert (found.versions, found.messages) == (3, 3 * data.n_users)
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


def test_client_counts_the_noise_of_every_message(tmp_path):
    with two_servers(tmp_path, sigma=2.0, messages=2, clip=None) as (leader, helper):
        homes = [secure_home(leader, tmp_path, number) for number in range(LEAST)]
        config = homes[0].read(ClientStore.identity).sums.config
        assert (config.recipe, config.clip, len(set(config.noises))) == ("private", "1.0", 2)
        assert all_take_part(homes) == [1] * LEAST
        assert all_take_part(homes) == [1] * LEAST
        published(leader, 2)
        ledger = homes[0].read(ClientStore.ledger)
        assert tuple(message.noise for message in ledger.messages) == config.noises
        assert epsilon_so_far(config, ledger) == pytest.approx(epsilon_promised(config))
        assert homes[0].take_part() == 0
        found = verify(Servers(leader.address, helper.origin))
        assert (found.versions, found.messages) == (2, 2 * LEAST)
        assert f"epsilon {_bound(epsilon_promised(config))} so far" in homes[0].run("status")


def test_message_beyond_the_guarantee_is_not_made():
    """A leader that repeats the stage with the least noise gets no more than the plan allows."""
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
        secure_home(leader, tmp_path)
    assert not list(tmp_path.glob("device-*"))
