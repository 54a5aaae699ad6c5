"""Each attack's idea, on worlds where its outcome is known."""

from dataclasses import replace

import numpy as np
import pytest
from tests.methods.fpl.audited_runs import everybody_alike
from tests.worlds import federation, random_world

from federank.methods.fpl.attacks import ATTACKS, CERTAIN, fused, profile_sizes, recovered_vectors
from federank.methods.fpl.observer import Observer, views
from federank.methods.fpl.simulation import play_compiled

ONE_BY_ONE = ATTACKS["updates"]


def watched(data, rounds, **settings):
    """A run that has been played and watched: the federation and the server's view of everyone."""
    established = federation(data, **settings)
    play_compiled(established, rounds)
    people = established.recipe.participants
    observer = Observer(established, people)
    observer.watch_until(rounds)
    [(_, view)] = views("updates", established, observer, None, people, everybody_alike(data, settings), (None, None))
    return established, view


def claimed(guess, person):
    """The items that a guess claims about a person."""
    return set(np.argsort(-guess.scores[person], kind="stable")[: guess.sizes[person]].tolist())


def histories(data):
    return [set(data.profiles.of(user).tolist()) for user in range(data.n_users)]


@pytest.mark.parametrize("name", ["sign", "accumulation", "frequency"])
def test_every_positive_that_was_sent_is_known_for_sure(name):
    data = random_world()
    _, view = watched(data, 200, pi=0.5, triples=4)
    guess = ONE_BY_ONE[name](view)
    assert guess.sizes.sum() > 0
    for person, history in enumerate(histories(data)):
        assert claimed(guess, person) <= history


def test_the_signs_of_vectors_alone_tell_positives_from_negatives():
    data = random_world()
    _, view = watched(data, 200, pi=0.5, triples=6)
    without_biases = view._replace(updates=[replace(update, biases=0 * update.biases) for update in view.updates])
    guess = ONE_BY_ONE["vector_signs"](without_biases)
    owned = [len(claimed(guess, person) & history) for person, history in enumerate(histories(data))]
    assert sum(owned) > 0.9 * guess.sizes.sum() > 0


def test_rows_that_all_have_the_same_signs_are_taken_for_negatives():
    _, view = watched(random_world(), 200, pi=0.0, triples=6)
    assert ONE_BY_ONE["vector_signs"](view).sizes.sum() == 0


def test_waiting_long_enough_discloses_everything_at_any_pi_above_zero():
    data = random_world()
    _, view = watched(data, 3000, pi=0.1, triples=4)
    guess = ONE_BY_ONE["accumulation"](view)
    assert [claimed(guess, person) for person in range(data.n_users)] == histories(data)


def test_signs_tell_nothing_when_pi_is_zero():
    _, view = watched(random_world(), 200, pi=0.0, triples=4)
    for name in ("sign", "accumulation", "frequency"):
        assert ONE_BY_ONE[name](view).sizes.sum() == 0


@pytest.mark.parametrize("name", ["absence", "fused"])
def test_the_complete_history_shows_as_a_hole_though_pi_is_zero(name):
    data = random_world()
    _, view = watched(data, 1000, pi=0.0, triples=8)
    guess = ONE_BY_ONE[name](view)
    assert [claimed(guess, person) for person in range(data.n_users)] == histories(data)


def test_one_negative_row_gives_the_vector_exactly_where_one_pair_was_drawn():
    established, view = watched(random_world(), 500, pi=0.0)
    assert all(len(update.items) == 1 for update in view.updates)
    np.testing.assert_allclose(view.vectors, established.user_vectors[:, :4], atol=1e-5)


def test_one_negative_row_gives_the_vector_nearly_where_many_pairs_were_drawn():
    established, view = watched(random_world(), 500, pi=0.3, triples=8)
    moved = np.abs(view.vectors - established.user_vectors[:, :4]).max()
    assert 0 < moved < 0.2 * np.abs(established.user_vectors).max()


def test_a_row_that_is_all_rounding_gives_no_vector():
    _, view = watched(random_world(), 50, pi=0.0)
    tiny = [replace(update, biases=np.full_like(update.biases, -1e-20)) for update in view.updates]
    assert not recovered_vectors(tiny, view.broadcast, np.float32(0.001)).any()


def test_the_popularity_attacker_guesses_the_same_for_every_user():
    _, view = watched(random_world(), 200, pi=1.0)
    guess = ONE_BY_ONE["popularity"](view)
    assert (guess.scores == guess.scores[0]).all()
    assert (guess.sizes == view.typical_size).all()


def test_together_certain_items_come_first_and_excluded_ones_last():
    data = random_world()
    _, view = watched(data, 60, pi=0.3, triples=2)
    guess, certain = fused(view), view.times_positive > 0
    assert certain.any()
    assert view.seen_negative.any()
    assert not (certain | view.seen_negative).all()
    for person in range(data.n_users):
        unsure = ~certain[person] & ~view.seen_negative[person]
        scores = guess.scores[person]
        assert (scores[certain[person]] > CERTAIN / 2).all()
        assert (np.abs(scores[unsure]) < CERTAIN / 2).all()
        assert (scores[view.seen_negative[person]] < -CERTAIN / 2).all()


def test_negatives_tell_how_many_items_a_user_has():
    data = random_world(users=6, items=400, interactions=300)
    _, view = watched(data, 1700, pi=0.0, triples=5)
    assert (view.negative_rows >= 3 * data.n_items).all()
    found = profile_sizes(view, np.zeros(6, dtype=np.int64))
    np.testing.assert_allclose(found, data.profiles.sizes, atol=12)
