"""Poisoned federations in a rehearsal: lies work without the defences, and are stopped by them."""

import json
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
from click.testing import CliRunner

from federank.audit.audit import play, rehearse_poisoning
from federank.audit.poisoning import Attack, PoisonSettings, make_world, measured
from federank.cli import federank
from federank.data.splits import split_random
from federank.data.synthetic import city
from federank.errors import BadMessage, SettingError
from federank.methods.fpl.method import FPL, FPLModel
from federank.methods.fpl.poisoning import POISONING_ATTACKS, PoisoningAttack
from federank.methods.frugal.bounds import bound_rows
from federank.methods.frugal.records import SummedMessages


@pytest.fixture(scope="module")
def town():
    return split_random(city(people=200, places=300, checkins=4000), 0.2, seed=1)


def test_the_target_is_in_no_honest_history_and_malicious_clients_come_on_top(town):
    settings = PoisonSettings(share=0.1)
    world = make_world(town, settings)
    assert (world.honest, world.malicious_users) == (200, 22)
    honest = world.profiles.items[: world.profiles.starts[world.honest]]
    assert world.target not in honest
    assert world.target not in world.test.items
    assert world.target in world.profiles.items[world.profiles.starts[world.honest] :]
    assert make_world(town, settings, malicious_users=False).malicious_users == 0


def test_exposure_rank_and_precision_are_those_of_the_lists(town):
    world = make_world(town, PoisonSettings())
    scores = np.zeros((world.honest, world.n_items), dtype=np.float32)
    scores[:, world.target] = 1.0
    assert measured(world, scores)[:2] == (1.0, 1.0)
    truth = np.zeros_like(scores)
    for person in range(world.honest):
        truth[person, world.test.of(person)] = 1.0
    found = measured(world, truth)
    assert found.exposure < 0.5
    assert found.precision > 0.3


@pytest.mark.parametrize("aim", ["push", "sabotage"])
def test_an_adaptive_lie_is_one_that_the_equations_give(aim):
    rng = np.random.default_rng(0)
    vectors, biases = rng.normal(size=(80, 3)).astype(np.float32), rng.normal(size=80).astype(np.float32)
    method, model = FPL(n_items=80, factors=3, triples=12), FPLModel(vectors, biases)
    poisoning_attack = PoisoningAttack(method, vectors, biases, 7, 2.0, 100.0, np.ones(3, np.float32), rng)
    method.check(model, POISONING_ATTACKS["adaptive", aim](poisoning_attack))
    with pytest.raises(BadMessage):
        method.check(model, POISONING_ATTACKS["loud", "push"](poisoning_attack))


@pytest.mark.slow
@pytest.mark.parametrize("attack", ["loud", "histories", "adaptive"])
def test_a_push_works_without_defences_and_is_stopped_by_them(attack):
    found = rehearse_poisoning(split_random(city(), 0.2, seed=1), PoisonSettings(attack=attack, share=0.05)).figures()
    assert found["exposure_undefended"] > 0.9
    assert found["exposure"] <= 0.05
    assert found["precision@10_honest_defended"] >= 0.98 * found["precision@10_honest"]


@pytest.mark.slow
def test_frugal_is_pushed_by_too_long_messages_alone_and_those_are_refused_where_they_are_readable(town):
    loud = rehearse_poisoning(town, PoisonSettings(method="frugal", attack="loud")).figures()
    assert loud["exposure_undefended"] > 0.5
    assert loud["exposure"] == 0.0
    for attack in ("histories", "adaptive"):
        assert rehearse_poisoning(town, PoisonSettings(method="frugal", attack=attack)).figures()["exposure"] <= 0.1


@pytest.mark.slow
def test_the_command_prints_what_a_script_needs():
    command = ["audit", "poison", "--data", "city", "--rounds", "2", "--reports", "20", "--share", "0.05", "--json"]
    done = CliRunner().invoke(federank, command)
    assert done.exit_code == 0, done.output
    figures = json.loads(done.stdout)
    names = ("exposure", "exposure_undefended", "precision@10", "precision@10_undefended", "precision@10_honest")
    assert all(0 <= figures[name] <= 1 for name in names)
    table = CliRunner().invoke(federank, [word for word in command if word != "--json"])
    assert "Attacked, defended" in table.output


@pytest.mark.parametrize("wrong", [{"share": 1.5}, {"attack": "rude"}, {"aim": "fame"}, {"rounds": 0}])
def test_settings_that_cannot_be_are_refused(wrong):
    with pytest.raises(SettingError):
        PoisonSettings(**wrong)


def test_every_attack_but_histories_has_a_lie_for_each_aim():
    told = [attack for attack in get_args(Attack) if attack not in ("histories", "twin")]
    assert set(POISONING_ATTACKS) == {(attack, aim) for attack in told for aim in ("push", "sabotage")}


@pytest.mark.slow
def test_where_norms_are_checked_bounds_on_rows_stop_the_long_and_not_who_knows_of_them(town):
    def rehearsed(attack, bounds):
        settings = PoisonSettings(method="frugal", attack=attack, share=0.02, sees="checked", bounds=bounds)
        return rehearse_poisoning(town, settings)

    loud, adaptive = rehearsed("loud", "rows"), rehearsed("adaptive", "rows")
    assert loud.undefended.exposure > 0.5, "as loud as passes is loud enough"
    assert loud.defended.exposure < 0.05
    assert adaptive.defended.exposure > 0.5
    assert loud.honest_defended.precision > 0.98 * loud.honest.precision


def test_a_norm_is_checked_of_messages_that_are_summed():
    with pytest.raises(SettingError):
        PoisonSettings(method="fpl", sees="checked")
    with pytest.raises(SettingError, match="checked sums"):
        PoisonSettings(method="frugal", sees="sums", bounds="rows")
    with pytest.raises(SettingError):
        PoisonSettings(method="frugal", sees="checked", epsilon=4.0)
    with pytest.raises(SettingError):
        PoisonSettings(method="frugal", recipe="private")
    with pytest.raises(SettingError, match="twin"):
        PoisonSettings(method="frugal", attack="twin")


def test_honest_users_may_be_recommended_from_item_weights(town):
    settings = PoisonSettings(method="frugal", attack="twin", sees="checked", share=0.02)
    world = make_world(town, settings, malicious_users=False)
    plain = play(world, settings, None)
    weighted = play(world, replace(settings, item_weights="ridge"), None)
    assert weighted.precision != plain.precision
    assert weighted.precision == pytest.approx(plain.precision, rel=0.3)


@pytest.mark.parametrize("beside", [{"method": "fpl"}, {"method": "frugal", "sees": "checked", "recipe": "private"}])
def test_only_frugals_own_recipe_has_item_weights(beside):
    with pytest.raises(SettingError, match="item_weights"):
        PoisonSettings(item_weights="ridge", **beside)


@pytest.mark.slow
@pytest.mark.parametrize("sums", [{}, {"recipe": "private"}, {"recipe": "private", "epsilon": 8.0}])
@pytest.mark.parametrize("attack", ["adaptive", "twin"])
def test_bounds_on_sums_hold_back_who_knows_of_them_though_they_cannot_stop_a_twin(attack, sums):
    settings = PoisonSettings(method="frugal", attack=attack, sees="checked", share=0.05, **sums)
    found = rehearse_poisoning(split_random(city(), 0.2, seed=1), settings)
    if attack == "adaptive":
        assert found.defended.exposure < 0.7 * found.undefended.exposure
    assert found.defended.exposure < 0.5
    assert found.honest_defended.precision > 0.98 * found.honest.precision


def test_a_row_of_a_sum_is_no_longer_than_the_users_who_have_the_item_make_it():
    rng = np.random.default_rng(2)
    has, tastes = rng.random((200, 300)) < 0.3, rng.normal(size=(200, 3))
    vectors = np.column_stack((tastes + 1.0, np.ones(200)))
    sums = SummedMessages(has.T.astype(float) @ vectors, vectors.T @ vectors, 200)
    told = np.zeros((300, 3), dtype=np.float32)
    calm = bound_rows(sums, told)
    assert np.allclose(np.sort(np.abs(calm.residuals - sums.residuals).sum(axis=1))[:250], 0.0), (
        "most rows are left alone"
    )
    pushed = sums.residuals.copy()
    pushed[7, :-1] *= 100
    bounded = bound_rows(sums._replace(residuals=pushed), told).residuals
    assert np.linalg.norm(bounded[7, :-1]) < 2 * np.linalg.norm(sums.residuals[7, :-1])
    pushed[7, -1] = 10_000
    assert bound_rows(sums._replace(residuals=pushed), told).residuals[7, -1] <= 200, "no one has an item twice"
