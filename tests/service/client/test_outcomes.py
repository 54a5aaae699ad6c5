"""What a client does about an upload whose round has not ended, was aggregated, or was discarded."""

import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from tests.service.client.homes import HISTORY, Home, all_take_part, secure_home, two_servers
from tests.service.client.worlds import ITEMS, scripted_federation
from tests.service.federations import opened, wait_until

from federank.errors import BadAnswer
from federank.federation.client import History
from federank.secagg.exchange import ABANDONED, AGGREGATED, RoundRecord, sign_record
from federank.secagg.keys import new_private_key
from federank.service.client import client as life
from federank.service.client import outcomes
from federank.service.client.client import take_part
from federank.service.client.federation import Outcome
from federank.service.client.outcomes import wait_after
from federank.service.client.rules import FIRST_WAIT, LONGEST_WAIT
from federank.service.client.state import Upload
from federank.service.client.store import ClientStore
from federank.service.server.store.queries import put_value

DAY = 86_400


class Clock:
    """Time that passes only while someone sleeps."""

    def __init__(self):
        self.now, self.slept = 1_000_000.0, []

    def sleep(self, seconds):
        self.now += seconds
        self.slept.append(seconds)


def play(home, rounds, clock):
    """Take part for some rounds; the times at which uploads left."""
    left = []

    def note(line):
        home.notes.append(line)
        if line.endswith("sent and stored."):
            left.append(clock.now)

    played = {"sleep": clock.sleep, "clock": lambda: clock.now}
    home.act(lambda store, client: take_part(store, client, rounds, note), **played)
    return left


class Ended(Exception):
    """Stands for the owner, who stops the program."""


@pytest.fixture(params=[None, 9], ids=["every round", "few messages"])
def home(request, tmp_path):
    with scripted_federation(request.param) as federation:
        yield Home(federation, tmp_path)


def test_next_upload_waits_for_the_end_of_the_round(home):
    home.federation.outcomes = ["waiting"] * 5
    clock = Clock()
    play(home, 2, clock)
    asked = [path.rpartition("/")[2].partition("?")[0] for _, path in home.federation.asked]
    first, second = (place for place, path in enumerate(asked) if path == "update")
    assert asked[first:second].count("outcome") == 6
    assert "work" not in asked[first : first + 6]
    assert sum(clock.slept) >= 1 + 2 + 4 + 8


def test_waits_double_after_discarded_rounds(home):
    home.federation.outcomes = ["abandoned"] * 4
    left = play(home, 6, Clock())
    assert waits_of(left) == [FIRST_WAIT, 2 * FIRST_WAIT, 4 * FIRST_WAIT, 8 * FIRST_WAIT, 0]


def test_a_wait_outlives_the_program(home):
    home.federation.outcomes = ["abandoned", "abandoned"]
    clock = Clock()
    play(home, 2, clock)
    play(home, 0, clock)
    ended = clock.now
    [left] = play(home, 1, clock)
    assert left - ended == 2 * FIRST_WAIT


def test_waits_are_bounded_and_end_with_an_aggregated_round():
    def uploads(*outcomes):
        return [Upload("t", 0, None, outcome, 100.0) for outcome in outcomes]

    assert wait_after(uploads("counted"), 100.0).left == 0
    assert wait_after(uploads(*["abandoned"] * 60), 100.0).left == LONGEST_WAIT
    assert wait_after(uploads("abandoned", "released", "refused", "unknown"), 100.0).left == 2 * FIRST_WAIT
    assert wait_after(uploads("abandoned", "counted"), 100.0).left == 0
    assert wait_after(uploads("abandoned"), 90.0).left == FIRST_WAIT, "a clock that went back makes no wait longer"


@pytest.fixture(params=[None, 9], ids=["every round", "few messages"])
def daily(request, tmp_path):
    with scripted_federation(request.param) as federation:
        federation.upload_period = DAY
        yield Home(federation, tmp_path)


def waits_of(left):
    return [later - earlier for earlier, later in pairwise(left)]


def test_one_upload_leaves_per_period(daily):
    assert waits_of(play(daily, 4, Clock())) == [DAY] * 3


def test_a_period_outlives_the_program(daily):
    clock = Clock()
    [first] = play(daily, 1, clock)
    clock.sleep(DAY / 4)
    [second] = play(daily, 1, clock)
    assert second - first == DAY


def test_waits_after_discarded_rounds_grow_from_a_period_to_eight(daily):
    daily.federation.outcomes = ["abandoned"] * 5
    assert waits_of(play(daily, 7, Clock())) == [DAY, 2 * DAY, 4 * DAY, 8 * DAY, 8 * DAY, DAY]


def test_added_item_is_in_the_next_upload(tmp_path):
    with scripted_federation(9) as federation:
        federation.upload_period = DAY
        home, clock = Home(federation, tmp_path), Clock()
        play(home, 1, clock)
        home.read(ClientStore.write_history, History(np.array([*HISTORY, ITEMS - 1], dtype=np.int32)))
        assert ITEMS - 1 not in home.read(ClientStore.ledger).entries
        play(home, 1, clock)
        assert home.read(ClientStore.ledger).entries[ITEMS - 1].times_liked == 1


def test_paused_client_uploads_nothing_after_a_period(daily):
    clock = Clock()

    def sleep(seconds):
        clock.sleep(seconds)
        if clock.now > 1_000_000 + DAY / 2:
            policy = daily.read(ClientStore.policy).policy
            if not policy.paused:
                daily.read(ClientStore.write_policy, replace(policy, paused=True))
        if clock.now > 1_000_000 + DAY / 2 + 60:
            raise Ended

    with pytest.raises(Ended):
        daily.take_part(None, sleep=sleep, clock=lambda: clock.now)
    clock.sleep(DAY)
    play(daily, 1, clock)
    assert len(daily.federation.uploads) == 1


@pytest.mark.parametrize("period", [-1, "1d", True])
def test_wrong_periods_are_refused(daily, period):
    daily.federation.upload_period = period
    with pytest.raises(BadAnswer):
        play(daily, 1, Clock())


def test_discarded_plain_upload_stays_charged(tmp_path):
    with scripted_federation(3) as federation:
        home = Home(federation, tmp_path)
        federation.outcomes = ["abandoned"] * 3
        assert len(play(home, 9, Clock())) == 3
        status = json.loads(home.run("status", "--json"))
        assert (status["messages_sent"], status["messages_left"]) == (3, 0)
        assert status["outcomes"] == ["abandoned"] * 3
        assert sum("stays charged" in line for line in home.notes) == 3


def test_open_outcome_is_asked_for_by_the_next_program(home):
    home.federation.outcomes = ["waiting"]
    play(home, 1, Clock())
    assert home.outcomes() == [None]
    assert [sent["outcome"] for sent in json.loads(home.run("export"))["uploads"]] == ["waiting"]
    play(home, 0, Clock())
    assert home.outcomes() == ["counted"]


def test_last_upload_is_asked_about_until_its_round_ends(tmp_path):
    with scripted_federation(1) as federation:
        home, clock = Home(federation, tmp_path), Clock()
        federation.outcomes = ["waiting"] * 4

        def sleep(seconds):
            clock.sleep(seconds)
            if home.outcomes() == ["counted"]:
                raise Ended

        with pytest.raises(Ended):
            home.take_part(None, sleep=sleep, clock=lambda: clock.now)
        assert clock.now - 1_000_000 >= 100, "it is not asked all the time"


# Under secure aggregation, with a real leader and a real helper.


def discarded(leader, home):
    """Have a client take part in a round that ends with too few; the round's number."""
    assert home.take_part() == 1
    with opened(leader.store) as connection, connection.transaction():
        [number] = connection.one("SELECT MAX(number) FROM rounds WHERE state = 'open'")
        put_value(connection, "close", number)
    return number


def ask(home):
    """Ask about the last upload until its round has ended."""
    return wait_until(lambda: home.take_part(0) == 0 and home.outcomes()[-1])


def status_of(home):
    return json.loads(home.run("status", "--json"))


@pytest.mark.slow
def test_discarded_upload_in_no_sum_is_not_charged(tmp_path):
    with two_servers(tmp_path, sigma=1.0) as (leader, _):
        home = secure_home(leader, tmp_path)
        discarded(leader, home)
        assert ask(home) == "released"
        status = status_of(home)
        assert (status["messages_sent"], status["messages_left"], status["epsilon"]) == (0, 5, 0)
        assert len(home.read(ClientStore.ledger).entries) == 3, "what has left stays in the ledger"


@pytest.mark.slow
@pytest.mark.parametrize(
    "change", ["none", "forged", "another round", "another offer", "summed", "another federation config"]
)
def test_discarded_upload_without_the_helpers_record_stays_charged(tmp_path, monkeypatch, change):
    with two_servers(tmp_path) as (leader, helper):
        home = secure_home(leader, tmp_path)
        number = discarded(leader, home)
        pinned = home.read(ClientStore.identity).sums
        [sent] = home.read(ClientStore.uploads)
        config, nothing = pinned.config.digest().hex(), {"messages": 0, "set": "", "sum": ""}
        record = RoundRecord(config=config, offer=sent.offer, round=number, state=ABANDONED, **nothing)
        changed = {
            "another round": {"round": number + 1},
            "another offer": {"offer": "0" * 64},
            "summed": {"state": AGGREGATED},
            "another federation config": {"config": "0" * 64},
        }
        record = replace(record, **changed.get(change, {}))
        key = new_private_key() if change == "forged" else helper.service.helper.identity.private
        given = "" if change == "none" else sign_record(key, record).decode()
        monkeypatch.setattr(outcomes, "fetch_outcome", lambda *_: Outcome("abandoned", "", given))
        home.take_part(0)
        assert home.outcomes() == ["abandoned"]
        assert home.read(ClientStore.ledger).spent == 1


@pytest.fixture
def late(tmp_path, monkeypatch):
    """Has a client upload when its round was aggregated without it; the answer to it may be changed."""
    with two_servers(tmp_path, rounds={"over_selection": 1.4}) as (leader, _):
        home, *others = (secure_home(leader, tmp_path, number) for number in range(4))
        send, fetch = life.send_update, outcomes.fetch_outcome

        def upload(changed=lambda told, _: told):
            def after_the_others(client, *given):
                monkeypatch.setattr(life, "send_update", send)
                assert all_take_part(others) == [1, 1, 1]
                for other in others:
                    ask(other)
                [sent] = home.read(ClientStore.uploads)
                monkeypatch.setattr(outcomes, "fetch_outcome", lambda *asked: changed(fetch(*asked), sent))
                return send(client, *given)

            monkeypatch.setattr(life, "send_update", after_the_others)
            assert home.take_part() == 0
            return home

        yield upload


@pytest.mark.slow
def test_late_upload_in_no_sum_is_not_charged(late):
    home = late()
    assert ask(home) == "late"
    status = status_of(home)
    assert (status["messages_sent"], status["messages_left"], status["outcomes"]) == (0, 5, ["late"])
    assert wait_after(home.read(ClientStore.uploads), 1e12).rounds == 0, "no round was discarded"


@pytest.mark.slow
@pytest.mark.parametrize("change", ["member", "other members", "no members", "forged", "another offer"])
def test_late_upload_without_proof_stays_charged(late, change):
    def changed(told, sent):
        edits = {
            "member": {"members": told.members + sent.identifier},
            "other members": {"members": told.members[:-32] + "0" * 32},
            "no members": {"members": ""},
            "forged": {"record": told.record.replace('"messages":3', '"messages":4')},
            "another offer": {"record": told.record.replace(sent.offer, "0" * 64)},
        }
        return told._replace(**edits[change])

    home = late(changed)
    assert ask(home) == "unknown"
    assert home.read(ClientStore.ledger).spent == 1
