"""A client goes on in a new season with what it has, within its owner's lifetime cap, and asks where it is weaker."""

import json
from dataclasses import replace

import numpy as np
import pytest
from tests.commands import refused
from tests.service.client.homes import EVERYTHING, HISTORIES, Home, all_take_part, secure_home, two_servers
from tests.service.client.worlds import FACTORS, ITEMS, rows, scripted_federation, squares_rows
from tests.service.federations import opened, wait_until

from federank.errors import BadAnswer, SettingError
from federank.federation.client import cost_of, spent_in_total
from federank.privacy.accountant import epsilon_of_mu
from federank.privacy.policy import Policy
from federank.secagg.config import sign_config
from federank.service.client import secure
from federank.service.client.client import messages_left, refresh_model, shared_items
from federank.service.client.enrolment import settle
from federank.service.client.federation import Catalogue, fetch_info, read_ticket
from federank.service.client.http import Client
from federank.service.client.owner import recommend
from federank.service.client.seasons import closed_to_new_items, follow_season
from federank.service.client.store import ClientStore
from federank.service.server.seasons import SeasonSpec, begin_season
from federank.service.server.store.seasons import SIGNATURES

IDS = ["100", "101"]


def settled(home):
    """The client follows the federation's season; its identity."""
    return home.act(lambda store, client: settle(store, client, home.notes.append))


def accept(home):
    """The owner agrees to the federation's season."""
    return home.act(lambda store, client: follow_season(store, client, store.identity(), print, accepts=True))


def season_of(home):
    return home.read(ClientStore.identity).info.season


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


def test_client_follows_a_season(federation, tmp_path):
    home = Home(federation, tmp_path, ["100", "101", "102"])
    assert home.take_part(1) == 1
    before = home.read(lambda store: (store.ledger().entries.keys(), store.vector(FACTORS).tolist()))
    next_season(federation, ended=[1, 5])
    identity = settled(home)
    assert (identity.info.season, identity.info.n_items) == (2, ITEMS + 2)
    assert home.read(lambda store: (store.ledger().entries.keys(), store.vector(FACTORS).tolist())) == before
    assert home.read(ClientStore.profile).tolist() == [0, 1, 2], "the history stays"
    assert home.read(ClientStore.training_history).items.tolist() == [0, 2], "an ended item is not trained on"
    listed = home.read(lambda store: [suggestion.item for suggestion in recommend(store, 100)])
    assert {"900", "901"} <= set(listed)
    assert not {"101", "105"} & set(listed), "an ended item is not recommended"
    seasons = home.read(lambda store: [(kept.number, kept.season) for kept in store.seasons()])
    assert seasons == [(1, 1), (2, 2)]


def test_running_client_learns_of_a_season_from_its_ticket(federation, tmp_path):
    home = Home(federation, tmp_path, ["100", "101", "104"])
    assert home.take_part(1) == 1
    next_season(federation)
    assert home.take_part(1) == 1
    assert season_of(home) == 2


def test_quotas_count_per_season_and_caps_per_lifetime(few, tmp_path):
    home = Home(few, tmp_path, IDS, replace(EVERYTHING, messages=2))
    assert home.take_part(1) == 1

    def left(store):
        return messages_left(store.identity(), store.policy().policy, store.ledger())

    assert home.read(left) == 0
    next_season(few, more=0)
    settled(home)
    assert home.read(left) == 1
    assert home.take_part(1) == 1
    ledger = home.read(ClientStore.ledger)
    assert [(message.season, message.number) for message in ledger.messages] == [(1, 1), (2, 1)]
    assert (ledger.spent, ledger.earlier) == (1, 1)
    next_season(few, number=3, more=0)
    with pytest.raises(SettingError, match=r"\b3\b.*\b2\b"):
        settled(home)
    assert season_of(home) == 2, "nothing was changed"
    with pytest.raises(SettingError):  # consent does not override the owner's own cap
        accept(home)


def test_season_with_more_uploads_needs_consent(few, tmp_path):
    home = Home(few, tmp_path, IDS)
    next_season(few, more=0, uploads=2)
    assert isinstance(refused("client", "--state", home.path, "--rounds", 1), SettingError)
    assert few.uploads == []
    assert season_of(home) == 1
    told = json.loads(home.run("season", "--accept", "--json"))
    assert [(row["season"], row["sent"], row["uploads"]) for row in told["seasons"]] == [(1, 0, 1), (2, 0, 2)]
    assert (told["in_total"]["uploads"], told["cap"]["uploads"]) == (3, 3)
    assert home.take_part(2) == 2


def test_three_seasons_are_allowed_without_a_cap(few, tmp_path):
    home = Home(few, tmp_path, IDS)
    for number in (1, 2, 3):
        if number > 1:
            next_season(few, number=number, more=0)
        assert home.take_part(1) == 1
    next_season(few, number=4, more=0)
    with pytest.raises(SettingError, match="consent"):
        settled(home)
    accept(home)
    assert home.take_part(1) == 1


def test_client_without_messages_left_continues_in_a_season(few, tmp_path):
    home = Home(few, tmp_path, IDS)
    assert home.take_part(1) == 1
    next_season(few, more=0)

    def act(store, client):
        return refresh_model(store, client, store.identity(), home.notes.append).info.season

    assert home.act(act) == 2
    assert home.take_part(1) == 1


def test_nothing_is_sent_after_the_last_day(federation, tmp_path):
    home = Home(federation, tmp_path, IDS)
    next_season(federation, until="2020-01-31")
    assert home.take_part(1) == 0
    assert federation.uploads == []


def test_season_with_renumbered_items_is_refused(federation, tmp_path):
    home = Home(federation, tmp_path, IDS)
    next_season(federation, ids=[*map(str, range(900, 902)), *map(str, range(100, 100 + ITEMS))])
    with pytest.raises(BadAnswer, match="numbers"):
        settled(home)
    assert home.read(ClientStore.identity).info.n_items == ITEMS


def test_randomized_responses_continue_in_a_season(federation, tmp_path):
    randomized_response = Policy(sharing="randomized-response", pi=0.5, item_epsilon=1.0, basis="shared")
    home = Home(federation, tmp_path, ["100", "101", "104"], randomized_response)

    def chosen(store, client):
        identity = settle(store, client, home.notes.append)
        taken = shared_items(store, identity)
        return [] if taken is None else taken.profile.tolist()

    before = home.act(chosen)
    next_season(federation, more=40, ended=before[:1])
    after = home.act(chosen)
    assert [item for item in after if item < ITEMS] == before[1:], "without the one that has ended"
    assert any(item >= ITEMS for item in after), "new items draw answers of their own"


def test_closed_category_stays_closed_for_new_items():
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


NEXT = [{"id": f"item-{number:02d}"} for number in range(1, 12)] + [{"id": "new"}]


def begin(leader, **spec):
    with opened(leader.store) as connection:
        return begin_season(connection, SeasonSpec(**spec))[0]


@pytest.mark.slow
def test_clients_follow_a_signed_season_and_budgets_add_up(tmp_path):
    with two_servers(tmp_path, sigma=1.0, messages=2) as (leader, _):
        homes = [secure_home(leader, tmp_path, number) for number in range(3)]
        for _ in range(2):
            assert all_take_part(homes) == [1, 1, 1]
        begin(leader, items=NEXT, uploads=1)
        assert all_take_part(homes) == [1, 1, 1]
        for home in homes:
            ledger = home.read(lambda store: store.ledger())
            assert [message.season for message in ledger.messages] == [1, 1, 2]
            costs = [cost_of(message.noise) for message in ledger.messages]
            assert spent_in_total(ledger) == sum(costs)
            mus = home.read(lambda store: [kept.mu for kept in store.seasons()])
            assert np.isclose(mus[0] ** 2, costs[0] + costs[1], rtol=1e-12)
            assert np.isclose(mus[1] ** 2, costs[2], rtol=1e-12)
            told = json.loads(home.run("season", "--json"))
            assert told["in_total"]["epsilon"] == epsilon_of_mu(sum(costs) ** 0.5, 1e-6)
            assert HISTORIES[0][0] not in [one.item for one in home.read(lambda store: recommend(store, 20))]


@pytest.mark.slow
def test_season_that_begins_between_two_answers_is_followed(tmp_path, monkeypatch):
    with two_servers(tmp_path, sigma=1.0, messages=1) as (leader, _):
        homes = [secure_home(leader, tmp_path, number) for number in range(3)]
        assert all_take_part(homes) == [1, 1, 1]
        with Client(leader.address) as client:
            before = fetch_info(client)
        begin(leader, items=NEXT, uploads=1)
        for module in ("client", "enrolment"):
            answers = [before] * 3  # of a worker that does not know the new season yet
            monkeypatch.setattr(
                f"federank.service.client.{module}.fetch_info",
                lambda client, *args, answers=answers, **more: (
                    answers.pop() if answers else fetch_info(client, *args, **more)
                ),
            )
        wait_until(lambda: season_of_leader(leader) != before.season)
        assert all_take_part(homes) == [1, 1, 1]


def season_of_leader(leader):
    with Client(leader.address) as client:
        return fetch_info(client).season


@pytest.mark.slow
def test_less_noise_needs_consent_and_an_own_cap_refuses(tmp_path):
    with two_servers(tmp_path, sigma=4.0, messages=2) as (leader, _):
        home = secure_home(leader, tmp_path)
        begin(leader, epsilon=4.0)
        with pytest.raises(SettingError, match="less noise"):
            home.take_part()
        home.read(ClientStore.write_policy, replace(home.read(ClientStore.policy).policy, epsilon=3.0))
        with pytest.raises(SettingError, match="cap"):
            home.take_part()
        assert home.read(lambda store: store.identity().sums.config.season) == 1


@pytest.mark.slow
def test_season_needs_both_signatures(tmp_path, monkeypatch):
    with two_servers(tmp_path, sigma=1.0, messages=2) as (leader, _):
        home = secure_home(leader, tmp_path)
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
