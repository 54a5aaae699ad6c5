"""A federated method of your own: fill in the steps, and rounds, policies, communication, files and audits work.

    class Mine(fr.FederatedMethod):
        name = "mine"

        def first_shared(self, n_items, rng): ...            what the server starts with
        def compute(self, broadcast, device): ...            on a device: what it tells the server
        def aggregate(self, shared, updates, number): ...    at the server: what it holds then
        def scores(self, broadcast, device): ...             at home: every item, for the device's owner

What crosses between the two is a dictionary of arrays (protocol/steps/device.py). A device takes part with what its
owner's policy allows; anyone who holds something back is recommended to from a state that is learnt at home, from the
full history, after the last round, and never sent.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np

from federank._numerics.arrays import FloatMatrix, FloatVector, IntVector
from federank.data.interactions import Interactions, Profiles
from federank.errors import ModelError, SettingError
from federank.federation.method import Device, FederatedSettings, Message, StepsRecipe, generator
from federank.methods.recommender import Arrays, run_identity
from federank.methods.sharing import (
    ChoosingUsers,
    choices_as_arrays,
    choices_from_arrays,
    messages_allowed,
    refuse_coins,
)
from federank.privacy.population import shared_profiles_of_all
from federank.simulation.custom import StepsFederation
from federank.simulation.options import TrainingOptions
from federank.simulation.training import train as play_epochs

_AT_HOME = 2**31
"""Stands for the round in the random numbers of what is done at home."""


class FederatedMethod(ChoosingUsers):
    """A method with messages of its own, under the round of every other; see the top of the file."""

    in_rounds = True
    can_use = ("checkpoint", "resume", "progress", "after_epoch")
    learns_from = "interactions"
    settings_type = FederatedSettings
    settings: Any
    sends: ClassVar[Literal["changes", "tables"]] = "changes"
    """What messages carry: changes (gradients, votes), or whole tables in the place of those that were told. An audit
    reads tables by how they differ from what was told."""
    home_rounds: ClassVar[int] = 10
    """How often a device computes at home, where its state in rounds does not follow the full history."""

    # The steps: what a method fills in.
    @abstractmethod
    def first_shared(self, n_items: int, rng: np.random.Generator) -> Message:
        """What the server starts with: arrays by name."""

    def first_state(self, device: Device) -> Message:
        """What a device keeps to itself between rounds: arrays by name, of the same shapes for all."""
        del device
        return {}

    def distribute(self, shared: Message, round_number: int) -> Message:
        """1. At the server: what every device of a round is told. All that the server holds, unless told otherwise."""
        del round_number
        return shared

    @abstractmethod
    def compute(self, broadcast: Message, device: Device) -> Message:
        """2. On a device: learn from `device.profile`, change `device.state` in place, answer with a message."""

    def transmit(self, update: Message, device: Device) -> Message:
        """3. On a device: what of that leaves. All of it, unless told otherwise."""
        del device
        return update

    @abstractmethod
    def aggregate(self, shared: Message, updates: Iterable[Message], round_number: int) -> Message:
        """4. At the server: fold a round's messages in, one after the other; what it holds then."""

    @abstractmethod
    def scores(self, broadcast: Message, device: Device) -> FloatVector:
        """At home: the score of every item of the catalogue, for the owner of the device."""

    # What follows is the same for all.
    def recipe(self, train: Interactions) -> StepsRecipe:
        """The settings worked out for this population, with what everyone takes part with."""
        settings: FederatedSettings = self.settings
        refuse_coins(self.choices)
        shared_profile = shared_profiles_of_all(self.choices, settings.seed, train.profiles, train.n_items)
        sizes = (
            Profiles(shared_profile.starts, shared_profile.items).sizes
            if len(shared_profile.starts)
            else train.profiles.sizes
        )
        able = np.flatnonzero((sizes > 0) & (sizes < train.n_items)).astype(np.int32)
        if not len(able):
            raise SettingError("No one can take part: no one shares anything, or everyone has the full catalogue.")
        allowed = messages_allowed(self.choices)
        chances = settings.online, settings.dropout
        return StepsRecipe(train.n_items, settings.rounds, settings.seed, *chances, able, allowed, shared_profile)

    def federation(self) -> StepsFederation:
        """The federation of this model's run before its first round: for audits, which play it once more."""
        data = self._fitted()
        return StepsFederation(self, self.recipe(data), data.profiles)

    def communication(self) -> dict[str, Any]:
        """What the run has sent, counted message by message."""
        self._fitted()
        counted: dict[str, Any] = self.report["sent"]
        return counted

    def _learn(self, train: Interactions, training_options: TrainingOptions) -> None:
        chosen = self._ask_all(self.settings, train)
        federation = StepsFederation(self, self.recipe(train), train.profiles)
        identity = run_identity(self.name + chosen, self.settings, train)
        then = training_options.after_epoch
        if then is not None:

            def follow_first(number: int) -> None:
                self._follow(federation, train)
                then(number)

            training_options = replace(training_options, after_epoch=follow_first)
        seconds = play_epochs(federation, self.settings.rounds, training_options, identity)
        self._follow(federation, train)
        self.report |= {
            "seconds": seconds,
            "rounds": federation.round_number,
            "rounds_per_epoch": 1,
            "messages": int(federation.spent.max(initial=0)),
            "skipped_users": int(train.n_users - len(federation.recipe.participants)),
            "sent": federation.communication(),
        }

    def _follow(self, federation: StepsFederation, train: Interactions) -> None:
        """Keep what devices have now, and let those learn at home who hold something back."""
        self.broadcast, self.states = federation.broadcast(), {n: t.copy() for n, t in federation.states.items()}
        for user in range(train.n_users):
            history = train.profiles.of(user)
            if self.states and not np.array_equal(history, federation.profiles.of(user)):
                for name, array in self._learnt_at_home(user, history).state.items():
                    self.states[name][user] = array

    def _learnt_at_home(self, user: int, history: IntVector) -> Device:
        """A device that has learnt from its owner's full history alone; nothing is sent."""
        rng = generator(self.settings.seed, user, _AT_HOME)
        device = Device(user, history, len(self.item_ids), {}, rng)
        device.state = {name: np.array(array) for name, array in self.first_state(device).items()}
        for _ in range(self.home_rounds if device.state else 0):
            self.compute(self.broadcast, device)
        return device

    def enrolled(self, profile: IntVector) -> FloatVector:
        """The scores of someone new with this history, learnt at home; nothing is sent."""
        return self._checked_scores(self._learnt_at_home(self.training.n_users, profile))

    def scores_of(self, vector: FloatVector) -> FloatVector:
        """The scores of the full catalogue for someone who was enrolled: what `enrolled` gave."""
        return vector

    def _score_users(self, users: IntVector) -> FloatMatrix:
        data = self.training
        rows = np.empty((len(users), data.n_items), dtype=np.float32)
        for row, user in enumerate(users.tolist()):
            state = {name: table[user].copy() for name, table in self.states.items()}
            rng = generator(self.settings.seed, user, _AT_HOME + 1)
            rows[row] = self._checked_scores(Device(user, data.profiles.of(user), data.n_items, state, rng))
        return rows

    def _checked_scores(self, device: Device) -> FloatVector:
        scores = np.asarray(self.scores(self.broadcast, device), dtype=np.float32)
        if scores.shape != (device.n_items,) or not np.isfinite(scores).all():
            raise ModelError(
                f"The scores of {self.name} are of shape {scores.shape}, or not finite; one number for each of the "
                f"{device.n_items:,} items is needed."
            )
        return scores

    def _shared_arrays(self) -> Arrays:
        return dict(self.broadcast)

    def _private_arrays(self) -> Arrays:
        return {f"state.{name}": table for name, table in self.states.items()} | choices_as_arrays(self.choices)

    def _restore(self, shared: Arrays, private: Arrays) -> None:
        self.broadcast = shared
        self.states = {name[6:]: table for name, table in private.items() if name.startswith("state.")}
        if any(len(table) != self.training.n_users for table in self.states.values()):
            raise ModelError("The model's folder has the devices' states of other users.")
        self.choices = choices_from_arrays(private, self.training.n_users, self.settings.policy(0.5))
