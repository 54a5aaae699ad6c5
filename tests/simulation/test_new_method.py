"""A family of methods that the project has never seen: a folder of its own, played by the one round and the one
training.

The family here sends one number up and holds one number and a moment of it; nothing outside these lines knows it.
"""

from dataclasses import dataclass, field

import numpy as np
import pytest

from federank.errors import Diverged, SettingError
from federank.simulation.federated import Tables, in_this_process
from federank.simulation.options import TrainingOptions
from federank.simulation.training import save_checkpoint, train


@dataclass
class Momentum:
    """What the server holds: a number, and where it was going."""

    number: np.ndarray
    moment: np.ndarray
    round_number: int

    def distribute(self, _):
        return self.round_number, self.number.copy()

    def aggregate(self, recipe, updates):
        self.moment = recipe["keep"] * self.moment + sum(updates)
        self.number = self.number + self.moment
        self.round_number += 1


class Pulling:
    """Devices that each pull the number towards their own wish."""

    def __init__(self, specs):
        self.specs = specs

    def choose(self, round_number):
        return [round_number % len(self.specs)]

    def train(self, clients, broadcast):
        _, number = broadcast
        for client in clients:
            yield 0.1 * (self.specs[client] - number)


@dataclass
class ReportSpec:
    """Server and devices of a simulation."""

    recipe: dict
    number: np.ndarray = field(default_factory=lambda: np.zeros(1))
    moment: np.ndarray = field(default_factory=lambda: np.zeros(1))
    specs: np.ndarray = field(default_factory=lambda: np.array([3.0, 5.0]))
    round_number: int = 0
    rounds_per_epoch: int = 10
    steps_per_round: float = 1.0

    @property
    def engines(self):
        return {"reference": in_this_process(play)}

    def tables(self):
        return Tables(server={"number": self.number, "moment": self.moment}, devices={"wishes": self.specs})

    def why_diverged(self):
        return f"keep {self.recipe['keep']} is too much."


def play(federation, rounds, threads):
    shared = Momentum(federation.number, federation.moment, federation.round_number)
    for _ in range(rounds):
        clients = Pulling(federation.specs)
        updates = clients.train(clients.choose(shared.round_number), shared.distribute(federation.recipe))
        shared.aggregate(federation.recipe, updates)
    federation.number, federation.moment, federation.round_number = shared.number, shared.moment, shared.round_number


REFERENCE = TrainingOptions(engine="reference")


def test_training_plays_the_rounds_of_a_family_it_has_never_seen():
    federation = ReportSpec({"keep": 0.0})
    train(federation, 20, REFERENCE, "run")
    assert federation.round_number == 200
    assert federation.number[0] == pytest.approx(4.0, abs=0.1)


def test_what_the_server_needs_for_its_next_step_goes_through_a_checkpoint(tmp_path):
    kept = tmp_path / "run.checkpoint"

    class EnoughError(Exception):
        pass

    def stop(epoch):
        if epoch == 2:
            raise EnoughError

    whole, cut, resumed = (ReportSpec({"keep": 0.5}) for _ in range(3))
    train(whole, 4, REFERENCE, "run")
    with pytest.raises(EnoughError):
        train(cut, 4, TrainingOptions(engine="reference", after_epoch=stop), "run")
    save_checkpoint(cut, kept, "run")
    train(resumed, 4, TrainingOptions(engine="reference", checkpoint=kept, resume=True), "run")
    assert cut.moment[0] != 0
    np.testing.assert_array_equal(resumed.number, whole.number)
    np.testing.assert_array_equal(resumed.moment, whole.moment)


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning", "ignore:invalid:RuntimeWarning")
def test_a_family_says_in_its_own_words_why_it_diverged():
    with pytest.raises(Diverged, match=r"1.*200"):
        train(ReportSpec({"keep": 1e200}), 5, REFERENCE, "run")


def test_an_engine_that_a_family_does_not_have_is_refused_with_those_it_has():
    with pytest.raises(SettingError):
        train(ReportSpec({"keep": 0.0}), 1, TrainingOptions(engine="cluster"), "run")
