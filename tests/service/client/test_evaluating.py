"""A device that evaluates: one item is in nothing that it learns from, and few randomised answers ever leave."""

import random

import pytest
from tests.service.client.worlds import ITEMS, scripted_federation

from federank.errors import SettingError
from federank.privacy.accountant import MOST_ANSWERS
from federank.privacy.policy import Policy
from federank.service.client import client as evaluating
from federank.service.client.client import found, send_evaluation, take_part
from federank.service.client.enrolment import enrol
from federank.service.client.federation import Ticket
from federank.service.client.http import Client
from federank.service.client.state import ChosenPolicy
from federank.service.client.store import DeviceStore

HISTORY = [1, 4, 6, 9]
POLICY = ChosenPolicy(Policy(sharing="fixed-subset", pi=1.0, basis="shared"), "owner")


@pytest.fixture(params=[None, 5], ids=["pairs", "few messages"])
def federation(request):
    with scripted_federation() as federation:
        federation.messages = request.param
        yield federation


def client_of(federation):
    return Client(federation.address, token="t1", sleep=lambda _: None)


def enrolled(federation, folder, *, evaluates, history=HISTORY):
    (folder / "me.csv").write_text("item\n" + "".join(f"{100 + item}\n" for item in history))
    path, bits = folder / "device.sqlite", random.Random(1).getrandbits
    with client_of(federation) as client:
        enrol(client, path, folder / "me.csv", lambda *_: POLICY, evaluates=evaluates, random_bits=bits)
    return path


def answers(federation):
    return [path for method, path in federation.asked if (method, path) == ("POST", "/api/v1/hits")]


def test_the_item_that_is_held_back_is_in_nothing_that_leaves(federation, tmp_path):
    path, told = enrolled(federation, tmp_path, evaluates=True), []
    with DeviceStore(path) as store, client_of(federation) as client:
        held_back = store.held_back()
        assert held_back in HISTORY
        assert store.profile().tolist() == HISTORY, "it stays in the owner's history"
        assert set(store.training_profile().tolist()) == set(HISTORY) - {held_back}
        assert take_part(store, client, 2, told.append) == 2
        assert held_back not in store.ledger().really_liked()
    assert len(answers(federation)) >= 1
    assert any("was not counted" in line for line in told), "a server that knows nothing of it does no harm"


def test_one_answer_leaves_about_a_version_and_few_in_a_lifetime(federation, tmp_path):
    path = enrolled(federation, tmp_path, evaluates=True)
    with DeviceStore(path) as store, client_of(federation) as client:
        for version in range(1, MOST_ANSWERS + 3):
            store.write_model(store.model(store.identity().info)._replace(version=version))
            federation.fault("POST", "/hits", (201, {}, b'{"counted": true}'))
            ticket = Ticket("a-ticket", 1, version, 60.0, 10)
            send_evaluation(store, client, store.identity(), ticket, lambda _: None)
            again = send_evaluation(store, client, store.identity(), ticket, lambda _: None)
            assert again is False, "once per version"
    assert len(answers(federation)) == MOST_ANSWERS


def test_the_truth_is_whether_the_item_is_among_the_first_ten(federation, tmp_path, monkeypatch):
    path = enrolled(federation, tmp_path, evaluates=True)
    with DeviceStore(path) as store:
        identity, held_back = store.identity(), store.held_back()
        model = store.model(identity.info)
        assert ITEMS - len(HISTORY) + 1 <= evaluating.FIRST
        assert found(store, identity, model, held_back), "among so few items, everything is"
        monkeypatch.setattr(evaluating, "FIRST", 0)
        assert not found(store, identity, model, held_back)


def test_no_client_answers_who_has_not_agreed_and_one_item_is_too_few(federation, tmp_path):
    path = enrolled(federation, tmp_path, evaluates=False)
    with DeviceStore(path) as store, client_of(federation) as client:
        assert store.held_back() is None
        assert store.training_profile().tolist() == HISTORY
        assert take_part(store, client, 1, lambda _: None) == 1
    assert answers(federation) == []
    (tmp_path / "other").mkdir()
    with pytest.raises(SettingError, match="two are needed"):
        enrolled(federation, tmp_path / "other", evaluates=True, history=[3])
