"""The server that sees only sums: its tally is that of real messages, and cohorts hide what they should."""

import numpy as np
import pytest
from tests.methods.fpl.audited_runs import play_and_keep
from tests.worlds import federation, random_world, two_tastes

from federank import FPL
from federank.audit.audit import audit_model, audit_training
from federank.errors import SettingError
from federank.federation.rng import words_wrap_around
from federank.methods.fpl.observer import SumsObserver
from federank.methods.fpl.simulation import play_compiled

ALL_USERS = np.arange(12, dtype=np.int32)
SETTINGS = {"pi": 0.5, "triples": 4, "factors": 4, "epochs": 30}


def differences_by_hand(established, rounds, n_items):
    """What a server would work out from the reference engine's messages, all rounds in one block."""
    own, taken_part, total, negative = np.zeros((12, n_items)), np.zeros(12), np.zeros(n_items), np.zeros(4)
    clients = established.recipe.clients_per_round
    kept = play_and_keep(established, rounds)
    for start in range(0, len(kept), clients):
        cohort = kept[start : start + clients]
        biases, vectors = np.zeros(n_items), np.zeros((n_items, 4))
        for _, update in cohort:
            biases[update.items] += update.biases
            vectors[update.items] += update.vectors
        total += biases
        negative += vectors[biases < 0].sum(axis=0)
        for user, _ in cohort:
            own[user] += biases
            taken_part[user] += 1
    return own - np.outer(taken_part, total / rounds), taken_part, negative


@pytest.mark.parametrize("server", ["plain", "adam"])
def test_the_tally_is_that_of_the_reference_engines_messages(server):
    data, settings = random_world(), {"pi": 0.5, "clients_per_round": 4, "triples": 3, "server": server}
    with words_wrap_around():
        expected, taken_part, negative = differences_by_hand(federation(data, **settings), 30, data.n_items)
    observer = SumsObserver(federation(data, **settings), ALL_USERS)
    observer.watch_until(30)
    np.testing.assert_array_equal(observer.taken_part, taken_part)
    np.testing.assert_allclose(observer.total.own, expected, atol=1e-4)
    np.testing.assert_allclose(observer.total.vectors[:4], negative, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("clip_and_noise", [{}, {"clip": 5.0}, {"server": "adam"}, {"server": "adam", "clip": 5.0}])
def test_watching_plays_the_very_run(clip_and_noise):
    data, settings = random_world(), {"pi": 0.5, "clients_per_round": 4, "triples": 3, **clip_and_noise}
    watched, alone = federation(data, **settings), federation(data, **settings)
    observer = SumsObserver(watched, ALL_USERS)
    for until in (20, 130):
        observer.watch_until(until)
    play_compiled(alone, 130)
    np.testing.assert_allclose(watched.item_biases, alone.item_biases, atol=1e-5)
    np.testing.assert_allclose(watched.item_vectors, alone.item_vectors, atol=1e-5)
    assert watched.round_number == observer.round_number == 130


@pytest.mark.slow
def test_clipping_that_clips_nothing_gives_the_same_tally():
    data, settings = random_world(), {"pi": 0.5, "clients_per_round": 4, "triples": 3}
    plain, clipped = (SumsObserver(federation(data, **settings, clip=clip), ALL_USERS) for clip in (None, 1e6))
    for observer in (plain, clipped):
        observer.watch_until(60)
    np.testing.assert_allclose(clipped.chances(ALL_USERS), plain.chances(ALL_USERS), atol=0.01)


@pytest.mark.slow
def test_small_cohorts_hide_little_and_all_at_once_hide_every_user():
    data = two_tastes(people=40, items=60, seen=12)
    found = {}
    for cohort in (2, "all"):
        model = FPL(**SETTINGS, clients_per_round=cohort)
        [found[cohort]], about = audit_training(model, data, sees="sums")
        assert about["sees"] == "sums"
    assert found[2].attacks["membership"]["auc"] > 0.75
    assert found["all"].attacks["membership"]["auc"] == 0.5
    assert found[2].best["gain"] > found["all"].best["gain"]


@pytest.mark.slow
def test_a_sum_over_one_client_is_its_update():
    model = FPL(**(SETTINGS | {"epochs": 3})).fit(two_tastes())
    [as_sums], about = audit_model(model, sees="sums")
    [as_updates], _ = audit_model(model, sees="updates")
    assert about["sees"] == "updates"
    assert as_sums == as_updates


@pytest.mark.slow
def test_the_server_that_sees_one_update_knows_less_than_the_one_that_links_them():
    model = FPL(**(SETTINGS | {"epochs": 3})).fit(two_tastes())
    [alone], _ = audit_model(model, sees="anonymous")
    [linked], _ = audit_model(model, sees="updates")
    assert alone.disclosed_share == linked.disclosed_share
    assert 0 < alone.attacks["sign"]["recall"] < linked.attacks["accumulation"]["recall"]
    assert alone.attacks["fused"]["auc"] < linked.attacks["fused"]["auc"]


@pytest.mark.slow
def test_noise_makes_a_linked_update_tell_less():
    data, found = two_tastes(), {}
    for noise in (0.01, 3.0):
        model = FPL(**(SETTINGS | {"epochs": 10}), clip=1.0, noise=noise).fit(data)
        [found[noise]], about = audit_model(model)
        assert about["sees"] == "sums"
    assert found[3.0].attacks["membership"]["auc"] < found[0.01].attacks["membership"]["auc"]
    with pytest.raises(SettingError, match="one client"):
        audit_model(FPL(**(SETTINGS | {"epochs": 1}), clip=1.0, noise=1.0, clients_per_round=3).fit(data))


@pytest.mark.slow
def test_a_server_that_does_not_exist_is_refused():
    with pytest.raises(SettingError, match="'everything'"):
        audit_model(FPL(**(SETTINGS | {"epochs": 1})).fit(two_tastes()), sees="everything")
