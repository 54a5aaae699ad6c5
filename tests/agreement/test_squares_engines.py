"""One recipe of few messages through both engines: the same scores, for every server step and policy.

The engines differ in the order and precision of their sums. Item vectors are known up to the sign and the rotation of
directions that are equally strong, and they are rounded to bytes for Broadcasts; what must agree is what people see.
"""

import numpy as np
import pytest
from tests.squares_worlds import some_people, squares_federation

from federank.methods.frugal import engines
from federank.methods.frugal import simulation as compiled
from federank.privacy.policy import Policy

PEOPLE = some_people()


def policies():
    fixed_subset = Policy(sharing="fixed-subset", pi=0.4, basis="shared")
    randomized_response = Policy(sharing="randomized-response", pi=0.6, item_epsilon=2.0, basis="shared")
    paused = Policy(sharing="fixed-subset", pi=1.0, basis="shared", paused=True)
    return [(fixed_subset, randomized_response, paused)[user % 3] for user in range(PEOPLE.n_users)]


SETTINGS = {
    "spectral": {"messages": 3},
    "as they are": {"messages": 3, "encoding": "float32"},
    "a fixed lambda": {"messages": 3, "regulariser": 2.0},
    "cohorts": {"messages": 2, "cohorts": 4},
    "solve": {"messages": 3, "alpha": 2.0, "damping": 0.5},
    "solve in cohorts": {"messages": 2, "cohorts": 3, "alpha": 1.0, "damping": 0.5},
    "adam": {"messages": 4, "server": "adam", "regulariser": 1.0, "alpha": 1.0, "encoding": "float32"},
    "weight 0": {"messages": 4, "server": "adam", "regulariser": 1.0, "unobserved_weight": 0.0, "encoding": "float32"},
    "clipped": {"messages": 3, "clip": 0.7},
    "solve, clipped": {"messages": 4, "alpha": 1.0, "clip": 0.7},
    "away": {"messages": 2, "rounds": 6, "online": 0.6},
    "lost": {"messages": 3, "dropout": 0.4},
    "policies": {"messages": 3, "policies": policies()},
    "noise": {"messages": 4, "sigma": 0.05, "encoding": "float32"},
    "noise and policies": {"messages": 3, "sigma": 0.1, "policies": policies(), "dropout": 0.2},
    "integers without noise": {"messages": 4, "sigma": 0.0},
    "own budgets": {"messages": 3, "allowed": np.arange(PEOPLE.n_users) % 4},
}


def pair(name):
    return tuple(squares_federation(PEOPLE, **SETTINGS[name]) for _ in range(2))


def scores(federation):
    return compiled.home_vectors(federation) @ federation.state.vectors.T


@pytest.mark.parametrize("name", SETTINGS)
def test_engines_learn_the_same_scores(name):
    fast, plain = pair(name)
    rounds = fast.schedule.rounds
    compiled.play(fast, rounds)
    engines.play_reference(plain, rounds)
    assert fast.round_number == plain.round_number == rounds
    np.testing.assert_array_equal(fast.sent, plain.sent)
    # A score is of size one; one step of a byte of an item vector is a hundredth of its largest number.
    tolerance = 2e-2 if fast.method.encoding == "int8" else 1e-3
    np.testing.assert_allclose(scores(fast), scores(plain), atol=tolerance)
    assert np.abs(scores(fast)).max() > 0.1


@pytest.mark.parametrize("name", ["spectral", "cohorts", "solve in cohorts", "solve, clipped", "noise"])
def test_threads_change_no_bit(name):
    one, two = pair(name)
    compiled.play(one, one.schedule.rounds, threads=1)
    compiled.play(two, two.schedule.rounds, threads=3)
    np.testing.assert_array_equal(one.state.vectors, two.state.vectors)


@pytest.mark.parametrize("name", ["spectral", "cohorts", "solve in cohorts", "adam"])
def test_rounds_may_be_cut_anywhere(name):
    one, two = pair(name)
    compiled.play(one, one.schedule.rounds)
    for _ in range(two.schedule.rounds):
        compiled.play(two, 1)
    np.testing.assert_array_equal(one.state.vectors, two.state.vectors)
