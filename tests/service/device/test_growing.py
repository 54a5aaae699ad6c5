"""A device follows a catalogue that grows: it goes on with what it has, whether it joined before or after."""

import json
import random
import threading

import httpx
import pytest
from tests.service.device.worlds import FACTORS, ITEMS, rows, scripted_federation
from tests.service.federations import Served

from federank.errors import BadAnswer
from federank.privacy.policy import Policy
from federank.service.client.client import refresh_model, shared_items, take_part
from federank.service.client.enrolment import closed_to_new_items, enrol, settle
from federank.service.client.federation import Catalogue, read_ticket
from federank.service.client.http import Client
from federank.service.client.owner import recommend
from federank.service.client.state import ChosenPolicy
from federank.service.client.store import DeviceStore

EVERYTHING = Policy(sharing="fixed-subset", pi=1.0, basis="shared")


class Home:
    """A device at home, with a real file and a real line."""

    def __init__(self, address, folder, items, name="device", policy=EVERYTHING):
        self.address, self.path, self.told = address, folder / f"{name}.sqlite", []
        profile = folder / f"{name}.csv"
        profile.write_text("item\n" + "".join(f"{item}\n" for item in items))
        with self.client() as client:
            chosen = ChosenPolicy(policy, "owner")
            enrol(client, self.path, profile, lambda *_: chosen, random_bits=random.Random(name).getrandbits)

    def client(self):
        return Client(self.address, token=None, note=self.told.append)

    def run(self, act):
        with DeviceStore(self.path) as store, self.client() as client:
            client.token = store.identity().token
            return act(store, client)

    def take_part(self, rounds):
        return self.run(lambda store, client: take_part(store, client, rounds, self.told.append))

    def listed(self):
        return self.run(lambda store, _: [suggestion.item for suggestion in recommend(store, 100)])


def add_items(server, *items):
    headers = {"Authorization": f"Bearer {server.token}"}
    with httpx.Client(base_url=f"{server.admin_address}/admin/api/v1", headers=headers, timeout=30) as operator:
        answer = operator.post("/items", json={"items": [{"id": item, "categories": ["New"]} for item in items]})
        assert answer.status_code == 202, answer.text
        for _ in range(600):
            if not (found := operator.get("/items").json())["waiting"]:
                return found
            threading.Event().wait(0.05)
    raise AssertionError("the items have not been added")


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fpl", "frugal"])
def test_devices_from_before_and_after_take_part_in_a_federation_that_has_grown(tmp_path, method):
    (tmp_path / "data.csv").write_text(
        "user,item\n" + "".join(f"{user},place-{item}\n" for user in range(3) for item in range(user, 9 + user))
    )
    flags = ("--data", "data.csv", "--method", method, "--factors", "3", "--target", "1", "--rehearsal", "--quiet")
    store = f"sqlite:///{tmp_path / 'federation.sqlite'}"
    with Served(store, *flags, folder=tmp_path) as server:
        old = Home(server.address, tmp_path, ["place-1", "place-2", "place-3"], "old")
        assert old.take_part(1) == 1
        before = old.run(lambda store, _: store.ledger().to_rows())
        found = add_items(server, "place-90", "place-91")
        assert found["items"] == 13
        assert old.listed(), "it recommends from what it has"
        add_items(server, "place-92")
        old.take_part(0)
        assert any("has grown by 3 to 14 items" in line for line in old.told)
        listed = old.listed()
        assert {"place-90", "place-91"} <= set(listed)
        assert listed[0] not in ("place-90", "place-91"), "what is new is not first"
        new = Home(server.address, tmp_path, ["place-1", "place-90"], "new")
        assert new.take_part(1) == 1
        assert old.take_part(1) == 1
        after = {row["item"] for row in old.run(lambda store, _: store.ledger().to_rows())}
        assert {row["item"] for row in before} <= after, "what has left stays written down"
        assert old.take_part(1) == 1, "and it goes on"


@pytest.fixture
def federation():
    with scripted_federation() as federation:
        yield federation


def extended(federation, more=2, ids=None):
    """Let the scripted federation's catalogue grow."""
    items = federation.catalogue()["items"]
    items += [{"id": str(900 + n), "title": f"New {n}", "categories": ["Food"]} for n in range(more)]
    if ids is not None:
        items = [item | {"id": identity} for item, identity in zip(items, ids, strict=True)]
    catalogue = {"digest": "d" * 16, "items": items}
    facts = federation.facts() | {"items": len(items), "catalogue": "d" * 16, "version": 1}
    federation.version = 1
    federation.facts, federation.catalogue = (lambda: facts), (lambda: catalogue)
    federation.rows = lambda: rows(range(len(items)), federation.version, federation.version, FACTORS)
    return federation


def test_a_device_that_takes_part_no_more_follows_too(federation, tmp_path):
    home = Home(federation.address, tmp_path, ["100", "101"])
    extended(federation)

    def act(store, client):
        identity = refresh_model(store, client, store.identity(), home.told.append)
        return identity.facts.n_items, store.identity().facts.n_items, store.model(identity.facts).version

    assert home.run(act) == (ITEMS + 2, ITEMS + 2, 1)


def test_a_catalogue_in_which_known_items_have_other_numbers_is_refused_and_nothing_changes(federation, tmp_path):
    home = Home(federation.address, tmp_path, ["100", "101"])
    order = [str(900 + n) for n in range(2)] + [str(100 + n) for n in range(ITEMS)]
    extended(federation, ids=order)
    with pytest.raises(BadAnswer, match="other numbers"):
        home.run(lambda store, client: settle(store, client, home.told.append))
    assert home.run(lambda store, _: store.identity().facts.n_items) == ITEMS


def test_what_was_chosen_for_life_stays_chosen_when_the_catalogue_grows(federation, tmp_path):
    randomized_response = Policy(sharing="randomized-response", pi=0.5, item_epsilon=1.0, basis="shared")
    home = Home(federation.address, tmp_path, ["100", "101", "104"], policy=randomized_response)

    def chosen(store, client):
        identity = settle(store, client, home.told.append)
        taken = shared_items(store, identity)
        return [] if taken is None else taken.profile.tolist()

    before = home.run(chosen)
    extended(federation, more=40)
    after = home.run(chosen)
    assert [item for item in after if item < ITEMS] == before
    assert any(item >= ITEMS for item in after), "new items draw answers of their own"


def test_a_category_of_which_nothing_may_leave_stays_closed_for_new_items():
    known = Catalogue(["a", "b", "c"], ["A", "B", "C"], [["Food"], ["Food", "Shop"], ["Shop"]])
    now = Catalogue([*known.ids, "d", "e"], [*known.titles, "D", "E"], [*known.categories, ["Food"], ["Shop"]])
    closed = Policy(sharing="fixed-subset", pi=1.0, basis="shared", never_items=frozenset({0, 1}))
    assert closed_to_new_items(closed, known, now).never_items == {0, 1, 3}
    assert closed_to_new_items(EVERYTHING, known, now) == EVERYTHING


def test_a_ticket_says_how_many_items_its_round_has():
    told = {"ticket": "t", "round": 1, "version": 1, "deadline_seconds": 1.0, "most_rows": 4}
    assert read_ticket(json.dumps(told).encode()).items is None, "a server of before says nothing of it"
    assert read_ticket(json.dumps(told | {"items": 12}).encode()).items == 12
    with pytest.raises(BadAnswer):
        read_ticket(json.dumps(told | {"items": -1}).encode())
