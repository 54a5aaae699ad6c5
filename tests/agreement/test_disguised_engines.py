"""Clipped and noisy rounds on both engines: the same clipping to the last bits, the same noise in distribution."""

import numpy as np
import pytest
from tests.worlds import federation, random_world

from federank.methods.fpl.simulation import play_compiled, play_reference

pytestmark = pytest.mark.slow

DATA = random_world()
WIDE = random_world(users=20, items=1000, interactions=3000)
EVERYONE = {"clients_per_round": "all", "triples": 3}


@pytest.mark.parametrize(
    "settings",
    [
        {"clip": 0.3, **EVERYONE},
        {"clip": 0.3, "triples": 1},
        {"clip": 0.3, "triples": 4, "dropout": 0.5, "clients_per_round": 4},
        {"clip": 0.5, "pi": 0.5, "sharing": "randomized-response", "item_epsilon": 1.0, **EVERYONE},
        {"clip": 1e9, "order": "as-printed", **EVERYONE},
        {"clip": 0.3, "server": "adam", "dropout": 0.5, **EVERYONE},
        {"clip": 0.3, "weight_decay": 0.5, **EVERYONE},
        {"weights": "mean", **EVERYONE},
        {"weights": "profile", "clip": 0.3, "triples": 4, "dropout": 0.5, "clients_per_round": 4},
        {"weights": "profile", "server": "adam", **EVERYONE},
    ],
    ids=str,
)
def test_engines_clip_alike(settings):
    one, other = (federation(DATA, **settings) for _ in range(2))
    before = one.item_vectors.copy()
    play_compiled(one, 30)
    play_reference(other, 30)
    for name in one.tables().all:
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), atol=2e-5)
    assert not np.allclose(one.item_vectors, before)
    assert one.round_number == 30
    assert not one.item_vectors[:, 4:].any()


def test_a_mean_of_updates_is_their_sum_over_their_number():
    summed, mean = federation(DATA, **EVERYONE), federation(DATA, weights="mean", **EVERYONE)
    before = summed.item_vectors.copy()
    clients = summed.recipe.clients_per_round
    play_compiled(summed, 1)
    play_compiled(mean, 1)
    np.testing.assert_allclose(summed.item_vectors - before, clients * (mean.item_vectors - before), atol=2e-6)


def test_where_a_client_is_alone_in_a_round_every_weight_is_one():
    plain, weighted = federation(DATA, triples=2), federation(DATA, triples=2, weights="profile")
    play_compiled(plain, 30)
    play_compiled(weighted, 30)
    np.testing.assert_array_equal(plain.item_vectors, weighted.item_vectors)


def test_a_clip_that_is_never_reached_changes_nothing():
    plain, clipped = federation(DATA, **EVERYONE), federation(DATA, clip=1e9, **EVERYONE)
    play_compiled(plain, 30)
    play_compiled(clipped, 30)
    np.testing.assert_allclose(plain.item_vectors, clipped.item_vectors, atol=2e-5)


@pytest.mark.parametrize("play", [play_compiled, play_reference], ids=["compiled", "reference"])
@pytest.mark.parametrize(("noise_on", "deviation"), [("all-rows", 2 * np.sqrt(6)), ("sums", 2.0)])
def test_the_noise_of_a_round_has_the_same_deviation_on_both_engines(play, noise_on, deviation):
    noise = np.array([_noise_of_a_round(play, noise_on, seed) for seed in range(5)])
    assert noise.std() == pytest.approx(deviation, rel=5 / np.sqrt(2 * noise.size))
    assert abs(noise.mean()) < 5 * deviation / np.sqrt(noise.size)


@pytest.mark.parametrize("play", [play_compiled, play_reference], ids=["compiled", "reference"])
@pytest.mark.parametrize("noise_on", ["all-rows", "sums"])
def test_a_client_that_drops_out_sends_no_noise(play, noise_on):
    lost = federation(DATA, clip=1.0, noise=2.0, noise_on=noise_on, dropout=1.0, **EVERYONE)
    vectors, biases = lost.item_vectors.copy(), lost.item_biases.copy()
    play(lost, 3)
    np.testing.assert_array_equal(lost.item_vectors, vectors)
    np.testing.assert_array_equal(lost.item_biases, biases)
    assert lost.round_number == 3


def _noise_of_a_round(play, noise_on, seed):
    """What noise adds to the sum of a round's Updates (items x factors)."""
    settings = {"clip": 1.0, "clients_per_round": 6, "triples": 1, "seed": seed}
    quiet, noisy = federation(WIDE, **settings), federation(WIDE, noise=2.0, noise_on=noise_on, **settings)
    play(quiet, 1)
    play(noisy, 1)
    return (noisy.item_vectors - quiet.item_vectors)[:, :4] / quiet.recipe.learning_rate
