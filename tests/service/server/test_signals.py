"""What the operator sees of a server step: how far it changed the model, and what the bounds did."""

import numpy as np
import pytest

import federank as fr
from federank.federation.server import Content
from federank.methods.frugal.method import FrugalPrivate, compute_frugal, send
from federank.methods.frugal.server import FRUGAL_SERVER
from federank.privacy.policy import SharedProfile
from federank.service.server.model_versions import first_model, signals_of
from federank.service.server.rounds import capped_items

ITEMS, FACTORS = 300, 8


def model(vectors):
    return first_model(Content({"vectors": np.asarray(vectors, dtype=np.float32)}))


@pytest.fixture
def vectors():
    return np.random.default_rng(1).normal(size=(ITEMS, FACTORS))


def rotation():
    return np.linalg.qr(np.random.default_rng(2).normal(size=(FACTORS, FACTORS)))[0]


def test_a_pushed_row_shows_whatever_the_basis(vectors):
    pushed = vectors.copy()
    pushed[7] *= -4
    signals = signals_of(model(vectors), model(pushed @ rotation()))
    assert signals.rows[0][0] == 7
    assert signals.largest_move > 3
    assert signals.drift < 0.3


def test_a_diverged_model_has_no_finite_drift(vectors):
    broken = vectors.copy()
    broken[3] = np.nan
    assert not np.isfinite(signals_of(model(vectors), model(broken)).drift)


@pytest.mark.parametrize("most_shown", [0.1, 1.0])
def test_the_exposure_cap_reports_how_many_items_it_has_shortened(most_shown):
    town = fr.city(people=120, places=250, checkins=4000)
    settings = FRUGAL_SERVER.settle(
        FRUGAL_SERVER.settings(factors=FACTORS, most_shown=most_shown, broadcast="float32", min_support=1), town, None
    )
    now = first_model(FRUGAL_SERVER.first_content(settings, town, None))
    for number in range(2):
        recipe = FRUGAL_SERVER.recipe(settings, town.n_items, town.n_users)
        rows = FRUGAL_SERVER.encode(settings, now, now.rows_since(None), number)
        broadcast = FRUGAL_SERVER.decode(settings, rows, town.n_items)
        updates = []
        for user in range(town.n_users):
            profile = np.unique(town.items[town.users == user]).astype(np.int32)
            everything = np.ones(len(profile), dtype=np.bool_)
            client = FrugalPrivate(user, profile, SharedProfile(profile, everything, everything, True), 1)
            updates.append(send(recipe, client, *compute_frugal(recipe, client, broadcast)))
        now = now.followed_by(FRUGAL_SERVER.fold(recipe, now, number, updates))
    assert (capped_items(now) > 0) == (most_shown < 1)
