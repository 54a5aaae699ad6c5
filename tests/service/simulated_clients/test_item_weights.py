"""Item-item weights in a federation: clients score with them as in a simulation, and send nothing for them."""

from dataclasses import replace

import numpy as np
import pytest
from tests.service.simulated_clients.test_minimum_support import DATA, ITEMS, Federation, no_splitting

import federank as fr
from federank.errors import BadMessage, SettingError
from federank.federation.client import History
from federank.federation.method import configuration
from federank.federation.server import Guarantee
from federank.methods.frugal.item_weights import most_bytes, no_weights
from federank.methods.frugal.method import Frugal
from federank.service.operator import recommender_of
from federank.service.server.methods import SERVER_METHODS
from federank.service.server.model_versions import content_from, stored_content

RIDGE = {"item_weights": "ridge", "min_support": 1}
assert no_splitting  # a fixture that every test here uses


def played(rounds=4, **given):
    federation = Federation(**RIDGE | given)
    for _ in range(rounds):
        federation.play()
    return federation


def trained(settings):
    given = {name: getattr(settings, name) for name in ("factors", "clip", "most_shown")}
    return fr.Frugal(**RIDGE | {"messages": 4} | given).fit(DATA)


@pytest.mark.parametrize("given", [{}, {"secure": True, "clip": 1.0}], ids=["plain", "secure"])
def test_clients_score_as_in_the_simulation(given):
    federation = played(**given)
    model, rules, settings = federation.received(), federation.info.rules, federation.info.settings
    expected = trained(federation.settings)
    for user in (0, 5, 9):
        history = History(DATA.profiles.of(user))
        found = rules.scores(model, rules.home_vector(1, user, history, model))
        wanted = expected._score_users(np.array([user]))[0]
        assert np.corrcoef(found, wanted)[0, 1] > (0.8 if given else 0.999)
        low_rank = model.vectors @ rules.home_vector(1, user, history, model)[: settings.factors]
        assert np.abs(found - low_rank).max() > 0.1 * np.abs(low_rank).max()
    np.testing.assert_allclose(federation.clients.scores(model, None)[9], found, atol=1e-6)


def test_weights_are_sent_with_changed_rows():
    federation = played()
    now, served, rules = federation.published, federation.served, federation.info.rules
    full = served.encode(federation.settings, now, now.rows_since(None), 0)
    nothing = served.encode(federation.settings, now, now.rows_since(now.version), 0)
    assert len(nothing) < 1000 < len(full) <= rules.model_bytes
    have = federation.received()
    rows = rules.read_rows(nothing)
    assert have.merged(rows.items, rows.model).overall.keys() == have.overall.keys()
    assert most_bytes(ITEMS) > len(full) - len(
        played(item_weights="none").served.encode(
            replace(federation.settings, item_weights="none"), now, now.rows_since(None), 0
        )
    )


def test_unannounced_weights_are_refused():
    federation = played()
    content = federation.served.encode(federation.settings, federation.published, np.arange(ITEMS, dtype=np.int32), 0)
    with pytest.raises(BadMessage):
        replace(federation.info.settings, item_weights="none").read(content)


def test_digest_of_the_model_is_the_same_on_both_sides():
    from federank.federation.secure import model_digest

    federation = played(secure=True, clip=1.0)
    model = federation.received()
    held = model_digest(model.version, {**model.tables, **model.overall})
    assert held == federation.served.digest(federation.settings, federation.published)


def test_sums_are_of_the_newest_uploads():
    federation = played(rounds=1)
    first = federation.published.content.state["seen"]
    assert first.shape == (ITEMS, 4 * (federation.settings.factors + 1))
    assert first[:, : federation.settings.factors].any()
    assert not first[:, federation.settings.factors + 1 :].any()
    stored = content_from(stored_content(federation.published.content))
    np.testing.assert_array_equal(stored.state["seen"], first)


def test_an_export_is_a_model_with_weights():
    federation = played()
    now = federation.published
    tables = now.content.tables | {f"overall.{name}": part for name, part in now.content.overall.items()}
    about = {"method": "frugal", "name": "a", "version": 4, "settings": configuration(federation.settings)}
    model = recommender_of(about, tables, [{"id": number, "title": "", "categories": []} for number in range(ITEMS)])
    assert len(model.ridge.items) > ITEMS


def test_a_larger_catalogue_has_no_weights_for_new_items():
    federation = played()
    larger = federation.served.extend(federation.settings, federation.published.content, ITEMS + 2)
    method = replace(federation.settings, n_items=ITEMS + 2)
    content = federation.served.encode(
        method,
        federation.published.followed_by(federation.published.content)._replace(
            content=larger, changed=np.zeros(ITEMS + 2, dtype=np.int64)
        ),
        np.arange(ITEMS + 2, dtype=np.int32),
        0,
    )
    near = method.read(content).part.item_weights
    assert (len(near.scales), near.scales[ITEMS:].tolist()) == (ITEMS + 2, [0.0, 0.0])
    np.testing.assert_array_equal(no_weights(3).extended(5).starts, np.zeros(6))


@pytest.mark.parametrize("wrong", [{"alpha": 1.0}, {"damping": 0.5}])
def test_weights_that_no_sums_give_are_refused(wrong):
    with pytest.raises(SettingError):
        Frugal(item_weights="ridge", **wrong)


def test_weights_under_noise_are_refused():
    noisy, served = Guarantee(sigma=1.0, epsilon=None, delta=1e-6), SERVER_METHODS["frugal"]
    for clip in (None, 3.0):
        with pytest.raises(SettingError):
            served.secured(Frugal(item_weights="ridge", factors=4, clip=clip), noisy, 80, ITEMS)
