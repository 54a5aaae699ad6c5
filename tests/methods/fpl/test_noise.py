"""Clipping and noise: lengths, deviations, what they hide, and the figure that may be stated for it."""

import sys

import numpy as np
import pytest
import scipy
from tests.worlds import federation, random_world

from federank.errors import SettingError
from federank.federation import wire
from federank.methods.fpl.method import FPLUpdate
from federank.methods.fpl.recommender import FPL, privacy_figure
from federank.methods.fpl.settings import FPLSettings, participations
from federank.methods.fpl.simulation import clip_and_noise
from federank.privacy.accountant import epsilon_of
from federank.simulation.options import TrainingOptions

DATA = random_world()
LARGE = FPLUpdate(
    np.array([2, 5, 9], np.int32), np.full((3, 4), 3.0, np.float32), np.array([0.5, -0.25, -0.25], np.float32)
)


def length(update):
    return np.sqrt(np.square(update.vectors).sum() + np.square(update.biases).sum())


def recipe(**settings):
    return federation(DATA, **settings).recipe


def sent(update, **settings):
    one = federation(DATA, **settings)
    return clip_and_noise(one.method, one.recipe, 3, 7, update)


def test_a_long_update_is_scaled_to_the_clip_and_a_short_one_left_alone():
    assert length(LARGE) > 2
    short = sent(LARGE, clip=2.0)
    assert length(short) == pytest.approx(2.0, rel=1e-6)
    np.testing.assert_allclose(short.vectors / short.biases[0], LARGE.vectors / LARGE.biases[0], rtol=1e-6)
    assert sent(LARGE, clip=100.0) is LARGE


def test_without_clip_or_noise_an_update_is_sent_as_it_is():
    assert sent(LARGE) is LARGE


def test_noise_on_all_rows_hides_which_rows_there_are():
    noisy = sent(LARGE, clip=1.0, noise=0.5)
    wire.checked(noisy, FPLUpdate, federation(DATA).method)
    assert noisy.items.tolist() == list(range(DATA.n_items))
    assert np.count_nonzero(noisy.vectors) == noisy.vectors.size


@pytest.mark.parametrize(
    ("settings", "deviation"),
    [({"noise": 0.5}, 1.0), ({"noise": 3.0}, 6.0), ({"noise": 0.5, "noise_on": "sums", "clients_per_round": 4}, 0.5)],
)
def test_noise_has_the_deviation_it_should(settings, deviation):
    chosen = federation(random_world(items=500, interactions=2000), clip=2.0, **settings)
    nothing = FPLUpdate(np.zeros(0, np.int32), np.zeros((0, 4), np.float32), np.zeros(0, np.float32))
    rounds = [(user, number) for user in range(3) for number in range(4)]
    noisy = [clip_and_noise(chosen.method, chosen.recipe, *key, nothing) for key in rounds]
    values = np.concatenate([np.concatenate((update.vectors.ravel(), update.biases)) for update in noisy])
    assert values.std() == pytest.approx(deviation, rel=5 / np.sqrt(2 * len(values)))
    assert abs(values.mean()) < 5 * deviation / np.sqrt(len(values))
    assert len(np.unique(values)) > 0.99 * len(values)  # every user and round has noise of its own


def test_every_users_rounds_are_counted():
    established = federation(DATA, clients_per_round=3)
    counts = participations(established.recipe, DATA.n_users, 40)
    assert counts.sum() == 120
    assert counts.min() > 0


def test_the_figure_is_that_of_a_gaussian_mechanism_that_hides_any_other_history():
    from dp_accounting import dp_event, rdp

    accountant = rdp.RdpAccountant()
    accountant.compose(dp_event.GaussianDpEvent(4.0), 10)
    assert epsilon_of(8.0, 10, 1e-6) == accountant.get_epsilon(1e-6)
    assert epsilon_of(8.0, 0, 1e-6) == 0
    # Composition of Gaussians is one Gaussian of z / sqrt(rounds), whose exact delta is known (Balle and Wang, 2018).
    epsilon, z = epsilon_of(8.0, 10, 1e-6), 4.0 / np.sqrt(10)
    exact = scipy.stats.norm.cdf(1 / (2 * z) - epsilon * z) - np.exp(epsilon) * scipy.stats.norm.cdf(
        -1 / (2 * z) - epsilon * z
    )
    assert exact <= 1e-6


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"clip": 1.0}, "have no noise"),
        ({"clip": 1.0, "noise": 2.0, "noise_on": "sums", "dropout": 0.1}, "less noise than planned"),
        ({"clip": 1.0, "noise": 2.0, "noise_on": "sums", "online": 0.5}, "less noise than planned"),
    ],
)
def test_no_figure_is_stated_for_noise_that_does_not_hide_what_is_seen(settings, reason):
    found = privacy_figure(FPLSettings(**settings), recipe(**settings), np.array([3, 4]))
    assert found["epsilon"] is None
    assert reason in found["reason"]


def test_the_figure_grows_with_rounds_and_shrinks_with_noise():
    settings = FPLSettings(clip=1.0, noise=20.0)
    found = privacy_figure(settings, recipe(clip=1.0, noise=20.0), np.array([0, 3, 4, 50]))
    assert found["rounds"] == 50
    assert found["epsilon_median"] == epsilon_of(20.0, 4, 1e-6) < found["epsilon"] == epsilon_of(20.0, 50, 1e-6)
    assert epsilon_of(40.0, 50, 1e-6) < found["epsilon"]


def test_without_dp_accounting_a_run_with_noise_ends_before_it_has_begun(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    epsilon_of.cache_clear()
    epochs = []
    with pytest.raises(SettingError, match=r"\[privacy\]"):
        FPL(factors=4, clip=1.0, noise=3.0).fit(DATA, training_options=TrainingOptions(after_epoch=epochs.append))
    assert not epochs
    # without noise there is nothing to state
    FPL(factors=4, clip=1.0, epochs=1).fit(DATA, training_options=TrainingOptions(after_epoch=epochs.append))
    assert epochs == [1]


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"noise": 1.0}, "there is no clip"),
        ({"clip": 0.0}, "clip is 0.0"),
        ({"clip": 1.0, "noise": -1.0}, "noise is -1.0"),
        ({"clip": 1.0, "noise_on": "some"}, "noise_on is 'some'"),
        ({"clip": 1.0, "delta": 0.0}, "delta is 0.0"),
    ],
)
def test_noise_that_makes_no_sense_is_refused(wrong, complaint):
    with pytest.raises(SettingError, match=complaint):
        FPLSettings(**wrong)
