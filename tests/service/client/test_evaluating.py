"""A client that evaluates: one item is withheld from training, and a few randomised answers leave per lifetime."""

import pytest
from tests.service.client.homes import HISTORY, Home
from tests.service.client.worlds import ITEMS, scripted_federation

from federank.errors import SettingError
from federank.privacy.accountant import MOST_ANSWERS
from federank.service.client import client as evaluating
from federank.service.client.client import found, send_evaluation
from federank.service.client.federation import Ticket
from federank.service.client.store import ClientStore


@pytest.fixture(params=[None, 5], ids=["pairs", "few messages"])
def federation(request):
    with scripted_federation() as federation:
        federation.messages = request.param
        yield federation


def enrolled(federation, folder, *, evaluates, history=HISTORY, **more):
    return Home(federation, folder, history, evaluates=evaluates, **more)


def answers(federation):
    return [path for method, path in federation.asked if (method, path) == ("POST", "/api/v1/hits")]


def test_withheld_item_is_in_no_upload(federation, tmp_path):
    home = enrolled(federation, tmp_path, evaluates=True)
    with ClientStore(home.path) as store:
        held_back = store.held_back()
        assert held_back in HISTORY
        assert store.profile().tolist() == HISTORY, "it stays in the owner's history"
        assert set(store.training_history().items.tolist()) == set(HISTORY) - {held_back}
    assert home.take_part(2) == 2
    assert held_back not in home.read(ClientStore.ledger).really_liked()
    assert len(answers(federation)) >= 1
    assert any("was not counted" in note for note in home.notes), "by a server without evaluation"


def test_answers_are_bounded_per_version_and_lifetime(federation, tmp_path):
    home = enrolled(federation, tmp_path, evaluates=True)
    with ClientStore(home.path) as store, home.client(token="t1") as client:
        for version in range(1, MOST_ANSWERS + 3):
            store.write_model(store.model(store.identity().info)._replace(version=version))
            federation.fault("POST", "/hits", (201, {}, b'{"counted": true}'))
            ticket = Ticket("a-ticket", 1, version, 60.0, 10)
            send_evaluation(store, client, store.identity(), ticket, lambda _: None)
            again = send_evaluation(store, client, store.identity(), ticket, lambda _: None)
            assert again is False, "once per version"
    assert len(answers(federation)) == MOST_ANSWERS


def test_hit_is_an_item_in_the_top_ten(federation, tmp_path, monkeypatch):
    with ClientStore(enrolled(federation, tmp_path, evaluates=True).path) as store:
        identity, held_back = store.identity(), store.held_back()
        model = store.model(identity.info)
        assert ITEMS - len(HISTORY) + 1 <= evaluating.FIRST
        assert found(store, identity, model, held_back), "among so few items, everything is"
        monkeypatch.setattr(evaluating, "FIRST", 0)
        assert not found(store, identity, model, held_back)


def test_evaluation_needs_consent_and_two_items(federation, tmp_path):
    home = enrolled(federation, tmp_path, evaluates=False)
    with ClientStore(home.path) as store:
        assert store.held_back() is None
        assert store.training_history().items.tolist() == HISTORY
    assert home.take_part(1) == 1
    assert answers(federation) == []
    with pytest.raises(SettingError):
        enrolled(federation, tmp_path, evaluates=True, history=[3], name="other")
