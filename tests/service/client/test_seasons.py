"""A client goes on in a new season with what it has, within its owner's lifetime cap, and asks where it is weaker."""

import json
import random
import time
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner
from tests.service.client.test_sums import HISTORIES, everybody_once, two_servers
from tests.service.client.test_sums import Home as SecureHome
from tests.service.client.worlds import FACTORS, ITEMS, rows, scripted_federation, squares_rows
from tests.service.federations import opened

from federank.cli import federank
from federank.errors import BadAnswer, SettingError
from federank.federation.client import cost_of, spent_in_total
from federank.privacy.accountant import epsilon_of_mu
from federank.privacy.policy import Policy
from federank.secagg.config import sign_config
from federank.service.client import secure
from federank.service.client.client import messages_left, refresh_model, shared_items, take_part
from federank.service.client.enrolment import enrol, settle
from federank.service.client.federation import Catalogue, fetch_info, read_ticket
from federank.service.client.http import Client
from federank.service.client.owner import recommend
from federank.service.client.seasons import closed_to_new_items, follow_season
from federank.service.client.state import ChosenPolicy
from federank.service.client.store import DeviceStore
from federank.service.server.seasons import SeasonSpec, begin_season
from federank.service.server.store.seasons import SIGNATURES

EVERYTHING = Policy(sharing="fixed-subset", pi=1.0, basis="shared")


class Home:
    """A client at home, with a real file and a real connection."""

    def __init__(self, address, folder, items, policy=EVERYTHING):
        self.address, self.path, self.told = address, folder / "client.sqlite", []
        profile = folder / "profile.csv"
        profile.write_text("item\n" + "".join(f"{item}\n" for item in items))
        with self.client() as client:
            chosen = ChosenPolicy(policy, "owner")
            enrol(client, self.path, profile, lambda *_: chosen, random_bits=random.Random(1).getrandbits)

    def client(self):
        return Client(self.address, token=None, note=self.told.append, sleep=lambda _: None)

    def run(self, act):
        with DeviceStore(self.path) as store, self.client() as client:
            client.token = store.identity().token
            return act(store, client)

    def settle(self):
        return self.run(lambda store, client: settle(store, client, self.told.append))

    def take_part(self, rounds):
        return self.run(lambda store, client: take_part(store, client, rounds, self.told.append))


@pytest.fixture
def federation():
    with scripted_federation() as federation:
        yield federation


@pytest.fixture
def few():
    with scripted_federation(messages=1) as federation:
        yield federation


def next_season(federation, number=2, more=2, ended=(), ids=None, uploads=None, **about):
    """Let the scripted federation begin another season."""
    items = federation.catalogue()["items"]
    items += [{"id": str(900 + n), "title": f"New {n}", "categories": ["Food"]} for n in range(more)]
    items = [item | ({"ended": True} if n in ended else {}) for n, item in enumerate(items)]
    if ids is not None:
        items = [item | {"id": identity} for item, identity in zip(items, ids, strict=True)]
    catalogue = {"digest": "d" * 16, "items": items}
    federation.version += 1
    known = federation.info()
    recipe = known["recipe"] | ({} if uploads is None else {"messages": uploads})
    season = {"number": number, "until": about.pop("until", "")}
    changed = {"items": len(items), "catalogue": "d" * 16, "season": season, "recipe": recipe} | about
    federation.info = lambda: known | changed | {"version": federation.version}
    federation.catalogue = lambda: catalogue
    ticket = federation.ticket
    federation.ticket = lambda: ticket() | {"season": number}
    write = rows if federation.messages is None else squares_rows
    federation.rows = lambda: write(range(len(items)), federation.version, federation.version, FACTORS)
    return federation


def test_a_client_follows_with_history_ledger_and_new_items(federation, tmp_path):
    home = Home(federation.address, tmp_path, ["100", "101", "102"])
    assert home.take_part(1) == 1
    before = home.run(lambda store, _: (store.ledger().entries.keys(), store.vector(FACTORS).tolist()))
    next_season(federation, ended=[1, 5])
    identity = home.settle()
    assert (identity.info.season, identity.info.n_items) == (2, ITEMS + 2)
    assert home.run(lambda store, _: (store.ledger().entries.keys(), store.vector(FACTORS).tolist())) == before
    assert home.run(lambda store, _: store.profile().tolist()) == [0, 1, 2], "the history stays"
    assert home.run(lambda store, _: store.training_profile().tolist()) == [0, 2], "an ended item is not trained on"
    listed = home.run(lambda store, _: [suggestion.item for suggestion in recommend(store, 100)])
    assert {"900", "901"} <= set(listed)
    assert not {"101", "105"} & set(listed), "an ended item is not recommended"
    seasons = home.run(lambda store, _: [(kept.number, kept.season) for kept in store.seasons()])
    assert seasons == [(1, 1), (2, 2)]


def test_a_running_client_learns_of_a_season_from_its_ticket(federation, tmp_path):
    home = Home(federation.address, tmp_path, ["100", "101", "104"])
    assert home.take_part(1) == 1
    next_season(federation)
    assert home.take_part(1) == 1
    assert home.run(lambda store, _: store.identity().info.season) == 2


def test_uploads_count_by_season_and_the_caps_by_lifetime(few, tmp_path):
    home = Home(few.address, tmp_path, ["100", "101"], replace(EVERYTHING, messages=2))
    assert home.take_part(1) == 1
    left = lambda store, _: messages_left(store.identity(), store.policy().policy, store.ledger())  # noqa: E731
    assert home.run(left) == 0
    next_season(few, more=0)
    home.settle()
    assert home.run(left) == 1
    assert home.take_part(1) == 1
    ledger = home.run(lambda store, _: store.ledger())
    assert [(message.season, message.number) for message in ledger.messages] == [(1, 1), (2, 1)]
    assert (ledger.spent, ledger.earlier) == (1, 1)
    next_season(few, number=3, more=0)
    with pytest.raises(SettingError, match="3 uploads in total, above 2"):
        home.settle()
    assert home.run(lambda store, _: store.identity().info.season) == 2, "nothing was changed"
    with pytest.raises(SettingError):  # consent does not override the owner's own cap
        home.run(lambda store, client: follow_season(store, client, store.identity(), print, accepts=True))


def test_a_season_with_more_uploads_needs_consent(few, tmp_path):
    home = Home(few.address, tmp_path, ["100", "101"])
    next_season(few, more=0, uploads=2)
    result = CliRunner().invoke(federank, ["client", "--state", str(home.path), "--rounds", "1"])
    assert isinstance(result.exception, SettingError)
    assert few.uploads == []
    assert home.run(lambda store, _: store.identity().info.season) == 1
    accepted = CliRunner().invoke(federank, ["client", "season", "--accept", "--json", "--state", str(home.path)])
    assert accepted.exit_code == 0, accepted.output
    told = json.loads(accepted.stdout)
    assert [(row["season"], row["sent"], row["uploads"]) for row in told["seasons"]] == [(1, 0, 1), (2, 0, 2)]
    assert (told["in_total"]["uploads"], told["cap"]["uploads"]) == (3, 3)
    assert home.take_part(2) == 2


def test_without_a_cap_three_seasons_like_the_first_are_allowed(few, tmp_path):
    home = Home(few.address, tmp_path, ["100", "101"])
    for number in (1, 2, 3):
        if number > 1:
            next_season(few, number=number, more=0)
        assert home.take_part(1) == 1
    next_season(few, number=4, more=0)
    with pytest.raises(SettingError, match="consent"):
        home.settle()
    home.run(lambda store, client: follow_season(store, client, store.identity(), print, accepts=True))
    assert home.take_part(1) == 1


def test_a_client_that_has_sent_all_goes_on_in_a_new_season(few, tmp_path):
    home = Home(few.address, tmp_path, ["100", "101"])
    assert home.take_part(1) == 1
    next_season(few, more=0)

    def act(store, client):
        return refresh_model(store, client, store.identity(), home.told.append).info.season

    assert home.run(act) == 2
    assert home.take_part(1) == 1


def test_nothing_is_sent_after_the_last_day(federation, tmp_path):
    home = Home(federation.address, tmp_path, ["100", "101"])
    next_season(federation, until="2020-01-31")
    assert home.take_part(1) == 0
    assert federation.uploads == []


def test_items_with_other_numbers_and_other_methods_are_refused(federation, tmp_path):
    home = Home(federation.address, tmp_path, ["100", "101"])
    order = [str(900 + n) for n in range(2)] + [str(100 + n) for n in range(ITEMS)]
    next_season(federation, ids=order)
    with pytest.raises(BadAnswer, match="numbers"):
        home.settle()
    assert home.run(lambda store, _: store.identity().info.n_items) == ITEMS


def test_what_was_chosen_for_a_lifetime_stays_chosen(federation, tmp_path):
    randomized_response = Policy(sharing="randomized-response", pi=0.5, item_epsilon=1.0, basis="shared")
    home = Home(federation.address, tmp_path, ["100", "101", "104"], randomized_response)

    def chosen(store, client):
        identity = settle(store, client, home.told.append)
        taken = shared_items(store, identity)
        return [] if taken is None else taken.profile.tolist()

    before = home.run(chosen)
    next_season(federation, more=40, ended=before[:1])
    after = home.run(chosen)
    assert [item for item in after if item < ITEMS] == before[1:], "without the one that has ended"
    assert any(item >= ITEMS for item in after), "new items draw answers of their own"


def test_a_category_of_which_nothing_may_leave_stays_closed_for_new_items():
    known = Catalogue(["a", "b", "c"], ["A", "B", "C"], [["Food"], ["Food", "Shop"], ["Shop"]])
    now = Catalogue([*known.ids, "d", "e"], [*known.titles, "D", "E"], [*known.categories, ["Food"], ["Shop"]])
    closed = Policy(sharing="fixed-subset", pi=1.0, basis="shared", never_items=frozenset({0, 1}))
    assert closed_to_new_items(closed, known, now).never_items == {0, 1, 3}
    assert closed_to_new_items(EVERYTHING, known, now) == EVERYTHING


def test_a_ticket_names_its_season():
    told = {"ticket": "t", "round": 1, "version": 1, "deadline_seconds": 1.0, "most_rows": 4}
    assert read_ticket(json.dumps(told | {"season": 3}).encode()).season == 3
    with pytest.raises(BadAnswer):
        read_ticket(json.dumps(told | {"season": 0}).encode())


# Under secure aggregation: signatures, and epsilon that adds up.


def begin(leader, **spec):
    with opened(leader.store) as connection:
        return begin_season(connection, SeasonSpec(**spec))[0]


@pytest.mark.slow
def test_clients_follow_a_signed_season_and_mu_squared_adds_up(tmp_path):
    with two_servers(tmp_path, sigma=1.0, messages=2) as (leader, _):
        homes = [SecureHome(leader.address, tmp_path, number) for number in range(3)]
        for _ in range(2):
            assert everybody_once(homes) == [1, 1, 1]
        items = [{"id": f"item-{number:02d}"} for number in range(1, 12)] + [{"id": "new"}]
        begin(leader, items=items, uploads=1)
        assert everybody_once(homes) == [1, 1, 1]
        for home in homes:
            ledger = home.read(lambda store: store.ledger())
            assert [message.season for message in ledger.messages] == [1, 1, 2]
            costs = [cost_of(message.noise) for message in ledger.messages]
            assert spent_in_total(ledger) == sum(costs)
            mus = home.read(lambda store: [kept.mu for kept in store.seasons()])
            assert np.isclose(mus[0] ** 2, costs[0] + costs[1], rtol=1e-12)
            assert np.isclose(mus[1] ** 2, costs[2], rtol=1e-12)
            result = CliRunner().invoke(federank, ["client", "season", "--json", "--state", str(home.path)])
            told = json.loads(result.stdout)
            assert told["in_total"]["epsilon"] == epsilon_of_mu(sum(costs) ** 0.5, 1e-6)
            assert HISTORIES[0][0] not in [one.item for one in home.read(lambda store: recommend(store, 20))]


@pytest.mark.slow
def test_a_season_that_begins_between_two_answers_is_followed(tmp_path, monkeypatch):
    with two_servers(tmp_path, sigma=1.0, messages=1) as (leader, _):
        homes = [SecureHome(leader.address, tmp_path, number) for number in range(3)]
        assert everybody_once(homes) == [1, 1, 1]
        with Client(leader.address) as client:
            before = fetch_info(client)
        begin(leader, items=[{"id": f"item-{number:02d}"} for number in range(1, 12)] + [{"id": "new"}], uploads=1)
        for module in ("client", "enrolment"):
            answers = [before] * 3  # of a worker that does not know the new season yet
            monkeypatch.setattr(
                f"federank.service.client.{module}.fetch_info",
                lambda client, *args, answers=answers, **more: (
                    answers.pop() if answers else fetch_info(client, *args, **more)
                ),
            )
        while has_old_model(leader, before):
            time.sleep(0.05)
        assert everybody_once(homes) == [1, 1, 1]


def has_old_model(leader, info):
    """Whether the server still publishes a model of this season."""
    with Client(leader.address) as client:
        return fetch_info(client).season == info.season


@pytest.mark.slow
def test_less_noise_needs_consent_and_an_own_cap_refuses(tmp_path):
    with two_servers(tmp_path, sigma=4.0, messages=2) as (leader, _):
        home = SecureHome(leader.address, tmp_path)
        begin(leader, epsilon=4.0)
        with pytest.raises(SettingError, match="less noise"):
            home.take_part()
        with DeviceStore(home.path) as store:
            store.write_policy(replace(store.policy().policy, epsilon=3.0))
        with pytest.raises(SettingError, match="your own lifetime cap"):
            home.take_part()
        assert home.read(lambda store: store.identity().sums.config.season) == 1


@pytest.mark.slow
def test_a_season_that_not_both_servers_have_signed_is_refused(tmp_path, monkeypatch):
    with two_servers(tmp_path, sigma=1.0, messages=2) as (leader, _):
        home = SecureHome(leader.address, tmp_path)
        begin(leader, until="2999-12-31")
        with opened(leader.store) as connection:
            signed = bytes(connection.one("SELECT value FROM metadata WHERE name = ?", SIGNATURES)[0])
            private = bytes(connection.one("SELECT value FROM metadata WHERE name = 'sums key'")[0])
            config = home.read(lambda store: store.identity().sums.config)
            forged = signed[:64] + sign_config(private, config)
            with connection.transaction():
                connection.run("UPDATE metadata SET value = ? WHERE name = ?", forged, SIGNATURES)
        with pytest.raises(BadAnswer, match="signed"):
            home.take_part()
        assert home.read(lambda store: store.identity().info.season) == 1
        real = secure.fetch_seasons
        monkeypatch.setattr(secure, "fetch_seasons", lambda client: real(client)[-1:])
        with pytest.raises(BadAnswer, match="new season"):
            home.take_part()
