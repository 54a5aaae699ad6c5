"""Minimum support in a federation: plain and secure rounds learn what the simulation learns, of the same items."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from safetensors.numpy import load
from tests.secagg.worlds import secagg_config
from tests.squares_worlds import encode_update, read_update
from tests.worlds import random_world

import federank as fr
from federank.errors import BadMessage, ModelError, SettingError
from federank.federation.client import History, RoundVector, Terms, User
from federank.federation.server import Guarantee
from federank.methods.frugal.method import Frugal
from federank.methods.frugal.protocol import FrugalUpdate, counts_of
from federank.privacy.ledger import Ledger
from federank.privacy.policy import Policy, SharedProfile
from federank.secagg.config import config_from
from federank.service.client.methods import ClientMethod
from federank.service.server.methods import SERVER_METHODS
from federank.service.server.model_versions import first_model
from federank.service.server.seasons import season_content, season_rows
from federank.service.simulated_clients.methods import SimulatedClients

ITEMS, USERS, MESSAGES, SUPPORT, FACTORS = 90, 80, 4, 9, 6
DATA = random_world(users=USERS, items=ITEMS, interactions=1100, seed=4).compact()
COUNTS = np.bincount(DATA.items, minlength=ITEMS)
SETTINGS = {"factors": FACTORS, "messages": MESSAGES, "min_support": SUPPORT}
WITHOUT_NOISE = Guarantee(sigma=0.0, epsilon=None, delta=1e-6)
FRUGAL_SERVER = SERVER_METHODS["frugal"]
POLICY = Policy(sharing="fixed-subset", pi=1.0, basis="shared")


class Federation:
    """A server's record and simulated clients, without sockets."""

    def __init__(self, data=DATA, clients=None, trained=None, secure=False, **given):
        asked = Frugal(**(SETTINGS | given))
        self.served, self.config = FRUGAL_SERVER, None
        if secure:
            asked = self.served.secured(asked, WITHOUT_NOISE, USERS, data.n_items)
            plan = self.served.settle(asked, data, trained)
            self.config = secagg_config(
                items=data.n_items,
                recipe=plan.recipe,
                columns=plan.columns,
                clip=repr(float(plan.norm_bound)),
                noises=plan.noises,
                power=repr(float(plan.popularity_power)),
                messages=MESSAGES,
                min_support=plan.support,
            )
        self.settings = self.served.settle(asked, data, trained)
        self.published = first_model(self.served.first_content(self.settings, data, trained))
        settings = Frugal.announced(self.settings.public_settings(), data.n_items, secure=secure)
        rules = ClientMethod(settings, secure)
        info = SimpleNamespace(settings=settings, n_items=data.n_items, rules=rules, is_summed=secure)
        ids = [str(item) for item in data.item_ids.tolist()]
        self.info = info
        self.clients = SimulatedClients(info, ids, clients or data, 1, {})

    def received(self):
        """The model as clients read it."""
        now = self.published
        content = self.served.encode(self.settings, now, now.rows_since(None), 0)
        return self.info.rules.read_rows(content).model

    def terms(self):
        """The terms of a secure round on the newest model."""
        stage, rows = self.served.stage(self.published), self.served.rows(self.settings, self.published)
        return Terms(
            self.config,
            SimpleNamespace(
                round=self.published.version,
                stage=stage,
                noise=self.config.noises[stage],
                length=self.config.length_of(stage, rows),
                columns=self.config.columns_of(stage),
            ),
        )

    def play(self, users=None):
        """One round of these clients, or of all that have an upload left."""
        users = self.clients.participants.tolist() if users is None else users
        users = [user for user in users if self.clients.may_take_part(user)]
        model = self.received()
        content = self._secure(users, model) if self.config else self._plain(users, model)
        self.published = self.published.followed_by(content)

    def _plain(self, users, model):
        form = self.served.form(self.settings, self.published.n_items, 100.0)
        form = self.served.form_of(self.settings, form, self.published)
        bodies = [self.clients.message(user, 0, model) for user in users]
        for body in bodies:
            assert self.served.judge(body, form) == 0
            assert self.served.implausible(self.settings, self.published, body) is None
        updates = [self.served.summand(body, form) for body in bodies]
        return self.served.step(self.settings, self.published, USERS, updates)

    def _secure(self, users, model):
        terms = self.terms()
        total = np.zeros(terms.offer.length, dtype=np.int64)
        for user in users:
            total += self.clients.upload(user, model, terms)
        return self.served.step_of_sum(self.settings, self.published, USERS, total, len(users))


@pytest.fixture(autouse=True)
def no_splitting(monkeypatch):
    """Uploads are added up as integers: splitting and proving are tested elsewhere."""
    monkeypatch.setattr("federank.service.simulated_clients.methods.split", lambda _terms, whole: whole)


def supported(federation):
    return federation.published.content.tables["weights"] > 0


def product(vectors):
    return vectors @ vectors.T


@pytest.mark.parametrize(("kind", "given"), [("plain", {}), ("secure", {"clip": 4.0}), ("private", {})])
def test_all_clients_learn_the_simulations_model(kind, given):
    played = Federation(secure=kind != "plain", **given)
    for _ in range(MESSAGES):
        played.play()
    extra = {"sigma": 0.0} if kind == "private" else given
    bounded = {} if kind == "plain" else {"most_shown": played.settings.most_shown}
    factors = {"factors": played.settings.factors}
    expected = fr.Frugal(**SETTINGS | extra | bounded | factors).fit(DATA)
    model = played.received()
    np.testing.assert_array_equal(supported(played), expected.item_weights > 0)
    assert 50 <= supported(played).sum() < ITEMS
    rounding = 1e-2 if given else 1e-3
    np.testing.assert_allclose(model.tables["weights"], expected.item_weights, rtol=rounding)
    if kind == "private":  # the same integers
        np.testing.assert_array_equal(model.vectors, expected.item_vectors)
    close = product(expected.item_vectors)
    # Rounding alone moves single products by up to .06 of the largest.
    np.testing.assert_allclose(product(model.vectors), close, atol=(0.08 if given else 0.02) * np.abs(close).max())


def test_first_upload_of_each_client_has_counts():
    played = Federation()
    users = played.clients.participants.tolist()
    played.play(users[:40])
    first = np.bincount(np.concatenate([DATA.profiles.of(user) for user in users[:40]]), minlength=ITEMS)
    assert not supported(played).any(), "fewer than 50 items have enough users among the first 40"
    assert FRUGAL_SERVER.progress(played.settings, played.published.content) == {
        "supported_items": 0,
        "items": ITEMS,
        "supported_items_needed": 50,
        "counted_clients": 40,
    }
    played.play(users[40:70])
    more = first + np.bincount(np.concatenate([DATA.profiles.of(user) for user in users[40:70]]), minlength=ITEMS)
    np.testing.assert_array_equal(supported(played), more >= SUPPORT)
    played.play(users)  # seventy cover the supported items, ten carry counts
    np.testing.assert_array_equal(supported(played), COUNTS >= SUPPORT)
    assert played.published.content.state["received"][0] == 70
    played.play(users)
    assert np.abs(played.received().vectors[(COUNTS >= SUPPORT) & (more < SUPPORT)]).sum() > 0


def test_secure_rounds_count_again_after_the_quota():
    played = Federation(secure=True, clip=4.0)
    users, stages = played.clients.participants.tolist(), []
    for number in range(2 * MESSAGES):
        stages.append(played.terms().offer.stage)
        played.play(users[:70] if number < MESSAGES else users[70:])
    assert stages == [0, 1, 1, 1] * 2
    np.testing.assert_array_equal(supported(played), COUNTS >= SUPPORT)


def test_popularity_round_is_repeated_for_too_few_items():
    played = Federation(secure=True)
    users = played.clients.participants.tolist()
    played.play(users[:30])
    assert (played.terms().offer.stage, supported(played).sum()) == (0, 0)
    played.play(users[30:])
    assert played.terms().offer.stage == 1
    whole = Federation(secure=True)
    whole.play(users)
    np.testing.assert_array_equal(supported(played), supported(whole))


def test_clients_send_counts_once():
    played = Federation()
    asked = FRUGAL_SERVER.uploads_now
    assert asked(played.settings, played.published) == 1
    played.play()
    assert asked(played.settings, played.published) is None


@pytest.mark.parametrize("secure", [False, True])
def test_clients_upload_is_the_simulated_one(secure, monkeypatch):
    monkeypatch.setattr("federank.service.client.methods.split", lambda _terms, whole: whole.tobytes())
    played = Federation(secure=secure, **({"clip": 4.0} if secure else {}))
    user, ledger = 3, Ledger()
    profile = DATA.profiles.of(user)
    real = np.ones(len(profile), dtype=np.bool_)
    taken = SharedProfile(profile, real, real, True)
    kept = RoundVector(np.zeros(FACTORS, dtype=np.float32), None, frozenset())
    for number in range(2):
        model, terms = played.received(), played.terms() if secure else None
        person = User(1, user, POLICY, taken, kept, terms)
        made = played.info.rules.play(person, model, ledger, number)
        covered = profile if number == 0 else profile[COUNTS[profile] >= SUPPORT]
        np.testing.assert_array_equal(made.recorded, covered)
        assert ledger.messages[-1].items == len(covered)
        assert made.rows == (ITEMS if number == 0 else np.count_nonzero(COUNTS >= SUPPORT))
        if secure:
            assert len(made.body) == 4 * terms.offer.length
        else:
            update = read_update(made.body, FACTORS, ITEMS, min_support=2)
            twin = Federation()
            for _ in range(number):
                twin.play()
            again = read_update(twin.clients.message(user, 0, twin.received()), FACTORS, ITEMS, min_support=2)
            np.testing.assert_allclose(update.strengths, again.strengths, rtol=1e-5, atol=1e-6)
        played.play()


def test_items_without_support_are_recommended_to_no_client():
    played = Federation()
    for _ in range(MESSAGES):
        played.play()
    model = played.received()
    history = DATA.profiles.of(0)
    rules = played.info.rules
    scores = rules.scores(model, rules.home_vector(1, 0, History(history), model))
    np.testing.assert_array_equal(np.isfinite(scores), COUNTS >= SUPPORT)
    np.testing.assert_array_equal(np.isfinite(played.clients.scores(model, None)[0]), COUNTS >= SUPPORT)
    expected = fr.Frugal(**SETTINGS).fit(DATA)
    best = np.argsort(-expected.enrolled(history) @ expected.item_vectors.T)[:5]
    assert set(best.tolist()) <= set(np.flatnonzero(np.isfinite(scores)).tolist())


def test_the_broadcast_has_rows_of_supported_items_alone():
    played = Federation()
    now = played.published
    empty = played.served.encode(played.settings, now, now.rows_since(None), 0)
    assert len(empty) < 1000
    played.play()
    now = played.published
    model = played.received()
    arrays = load(played.served.encode(played.settings, now, now.rows_since(None), 0))
    np.testing.assert_array_equal(arrays["items"], np.flatnonzero(COUNTS >= SUPPORT))
    assert arrays["codes"].shape == (np.count_nonzero(COUNTS >= SUPPORT), FACTORS)
    np.testing.assert_array_equal(model.tables["weights"], now.content.tables["weights"])
    assert not model.vectors[model.tables["weights"] == 0].any()


def test_uploads_of_another_form_are_refused():
    played = Federation()
    kind, form = played.served, played.served.form(played.settings, ITEMS, 100.0)
    before = played.served.form_of(played.settings, form, played.published)
    residuals = FrugalUpdate.of(np.zeros(ITEMS, np.float32), np.zeros(FACTORS, np.float32), 1.0)
    with pytest.raises(BadMessage):
        kind.judge(encode_update(residuals), before)
    played.play()
    after = played.served.form_of(played.settings, form, played.published)
    with pytest.raises(BadMessage):
        kind.judge(encode_update(residuals), after)
    counts = FrugalUpdate.of(counts_of(ITEMS, DATA.profiles.of(0)), np.zeros(0, np.float32), 1.0)
    assert kind.judge(encode_update(counts), after) == 0
    twice = replace(counts, strengths=2 * counts.strengths)
    with pytest.raises(BadMessage):
        kind.judge(encode_update(twice), after)
    full = Federation(min_support=1)
    whole = full.served.form_of(full.settings, full.served.form(full.settings, ITEMS, 100.0), full.published)
    with pytest.raises(BadMessage):
        kind.judge(encode_update(counts), whole)


def test_items_of_a_trained_model_are_supported():
    trained = fr.Frugal(**SETTINGS).fit(DATA)
    played = Federation(trained=trained)
    np.testing.assert_array_equal(supported(played), trained.item_weights > 0)
    before = product(played.received().vectors)
    played.play()  # counts alone: the model stays
    np.testing.assert_array_equal(product(played.received().vectors), before)
    played.play()
    assert not np.array_equal(product(played.received().vectors), before)
    with pytest.raises(ModelError):
        Federation(trained=trained, min_support=40)


@pytest.mark.parametrize("given", [{}, {"secure": True, "clip": 4.0}, {"secure": True}], ids=["plain", "clip", "plan"])
def test_new_season_counts_again(given):
    played = Federation(**given)
    played.play()
    played.play()
    then = [{"id": item, "categories": ["one"]} for item in range(ITEMS)]
    now = [*then[:-1], then[-1] | {"ended": True}, {"id": ITEMS, "categories": ["one"]}]
    begun = season_content(played.served, played.settings, played.published.content, season_rows(then, now))
    expected = (COUNTS >= SUPPORT if not given or "clip" in given else supported(played)).copy()
    expected[-1] = False
    np.testing.assert_array_equal(begun.tables["weights"] > 0, np.append(expected, False))
    assert not begun.tables["vectors"][ITEMS:].any()
    if played.config:
        after = replace(played.config, items=ITEMS + 1, season=2, before="a" * 64)
        begun = played.served.new_plan(played.settings, played.config.noises, after.noises, begun)
        assert begun.overall["stage"][0] == 0
    if "counted" in begun.state:
        assert not begun.state["counted"].any()
        assert len(begun.state["counted"]) == ITEMS + 1


def test_small_catalogues_and_noisy_counts_are_refused():
    small = random_world(users=80, items=40, interactions=900, seed=4).compact()
    with pytest.raises(SettingError):
        FRUGAL_SERVER.settle(Frugal(**SETTINGS), small, None)
    noisy = Guarantee(sigma=1.0, epsilon=None, delta=1e-6)
    with pytest.raises(SettingError):
        FRUGAL_SERVER.secured(Frugal(**SETTINGS, clip=3.0), noisy, USERS, ITEMS)
    usual = FRUGAL_SERVER.secured(Frugal(factors=FACTORS, clip=3.0), noisy, USERS, ITEMS)
    assert usual.min_support == 1


def test_a_config_names_minimum_support_only_where_there_is_one():
    without, having = secagg_config(), secagg_config(recipe="spectral", messages=3, noises=(0,) * 3, min_support=5)
    assert b"min_support" not in without.to_bytes()
    assert config_from(having.to_bytes()) == having
    with pytest.raises(BadMessage):
        config_from(having.to_bytes().replace(b'"min_support":5', b'"min_support":1'))
    lengths = [length for length in range(having.length_of(1) + 3) if having.allows_length(1, length)]
    assert lengths == [having.length_of(1, rows) for rows in range(1, having.items + 1)]
    assert [length for length in range(500) if having.allows_length(0, length)] == [having.items]
