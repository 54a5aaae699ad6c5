"""Virtual devices of few messages: the people of a data set, each with a history and a number of messages for its
lifetime.

They follow the federation's recipe as a simulation does. Devices that have the same version of the model share what
depends on it alone (Y'DY), so that thousands of them can play on a laptop; the message itself is each one's own, made
by the protocol's maths.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from federank._numerics.arrays import FloatMatrix, FloatVector, RealMatrix
from federank.data.interactions import Interactions, Profiles
from federank.data.splits import Split
from federank.errors import DataError, SettingError
from federank.evaluation.metrics import mae, rmse
from federank.federation.rng import words_wrap_around
from federank.methods.fedrec.method import beside_of, compute_ratings, share_ratings
from federank.methods.fedrec.settings import rating_recipe
from federank.methods.fedrec.wire import RatingBroadcast, RatingPrivate, RatingUpdate, encode_rating_message
from federank.methods.frugal.method import FrugalPrivate, FrugalUpdate, send, user_weight
from federank.methods.frugal.objective import gram_matrix, residuals, solve_user
from federank.methods.frugal.private import Directions, Scratch, directions_of, new_scratch, sent_in_stage
from federank.methods.frugal.settings import frugal_recipe
from federank.methods.frugal.simulation import vectors_at_home
from federank.methods.frugal.wire import encode_frugal_update
from federank.methods.predicting import refuse_bad_ratings
from federank.privacy.policy import Policy
from federank.privacy.population import Choices, all_shared_items, shared_profile_of, shared_profiles_of_all
from federank.secagg.config import PRIVATE
from federank.service.client.federation import Facts
from federank.service.client.methods.method import History, Model
from federank.service.client.methods.ratings import at_home, first_vector, starting_vector
from federank.service.client.methods.ratings_in_sums import gradients_message
from federank.service.client.methods.summed import Terms, can_afford, cost_of, spectral_message, split
from federank.service.client.state import suggested_policy
from federank.service.simulated_clients.clients import Devices, VirtualDevices, in_catalogue, vanishes

# Virtual devices of ratings: the people of a data set, each with ratings, a vector of the rounds and draws.


class RatingDevices:
    """The private side of a fleet of ratings."""

    def __init__(self, facts: Facts, ids: list[str], data: Interactions, seed: int, specs: dict[str, Any]) -> None:
        policy = _policy(facts, specs)
        if data.ratings is None:
            raise DataError(f"{data.name} has no ratings, and this federation is of ratings; choose data with some.")
        refuse_bad_ratings(data, facts.settings)
        self.facts = facts
        self.profiles, self.unknown_items, self.ratings = rated_in_catalogue(data, ids)
        choices = Choices.alike(policy, np.full(data.n_users, policy.pi))
        self.shared_profile = all_shared_items(
            shared_profiles_of_all(choices, seed, self.profiles, facts.n_items), self.profiles
        )
        hidden: dict[str, Any] = {"filling": policy.filling, "rho": policy.rho, "sampling": policy.sampling}
        if facts.is_summed:
            hidden = {"filling": "none", "rho": 0.0}
        settings = replace(facts.settings, seed=seed, **hidden)
        self.recipe = rating_recipe(settings, self.shared_profile.sizes, facts.n_items)
        self._messages = facts.rules.messages(facts.settings, policy)
        self._sent: dict[int, int] = {}  # messages of each device, where their number was promised
        self._told: dict[int, float] = {}  # what they have told, as a square of mu
        self.participants = self.recipe.participants
        self._devices = {user: self._device(user, seed) for user in self.participants.tolist()}

    def _device(self, user: int, seed: int) -> RatingPrivate:
        items = np.array(self.shared_profile.of(user))
        ratings = self.history(user).ratings_of(items)
        vector = first_vector(self.facts.settings, seed, user)
        virtual = int(self.recipe.virtual[user])
        return RatingPrivate(user, vector, items, ratings, np.float32(ratings.mean()), virtual, 0)

    def history(self, user: int) -> History:
        """What a person has rated, and how."""
        here = slice(self.profiles.starts[user], self.profiles.starts[user + 1])
        return History(self.profiles.items[here], self.ratings[here])

    def take_over(self, before: RatingDevices) -> None:
        """Everyone keeps what was learnt and sent so far."""
        self._sent, self._told = before._sent, before._told
        for user in self._devices.keys() & before._devices.keys():
            mine, earlier = self._devices[user], before._devices[user]
            mine.vector, mine.participations, mine.sampled = earlier.vector, earlier.participations, earlier.sampled

    def may_take_part(self, user: int) -> bool:
        """Whether a device has a message left, where a number of them was promised."""
        return self._messages is None or self._sent.get(user, 0) < self._messages

    def message(self, user: int, round_number: int, model: Model) -> bytes:
        """One device's part of a round: its vector moves; the bytes that it sends."""
        return encode_rating_message(self._update(user, round_number, model))

    def _update(self, user: int, round_number: int, model: Model) -> RatingUpdate:
        model = model._replace(vectors=model.vectors[:, : self.recipe.factors])
        device = self._devices[user]
        if not device.participations:
            history = History(device.items, device.ratings)
            device.vector = starting_vector(self.facts.settings, self.recipe.seed, user, history, model)
        broadcast = RatingBroadcast(round_number, model.vectors, model.implicit, model.iteration)
        with words_wrap_around():
            return share_ratings(compute_ratings(self.recipe, device, broadcast))

    def upload(self, user: int, model: Model, terms: Terms) -> bytes | None:
        """The same where no single server reads a message: split; nothing where its guarantee has no room."""
        told = self._told.get(user, 0.0)
        if not can_afford(terms.charter, terms.offer, told):
            return None
        self._told[user], self._sent[user] = told + cost_of(terms.offer.noise), self._sent.get(user, 0) + 1
        update = self._update(user, terms.offer.round, model)
        return split(terms, gradients_message(terms, update, implicit=self.recipe.implicit))

    def release(self, user: int, noise: int) -> None:
        """Give back a device's last upload, which is in no sum."""
        self._sent[user] -= 1
        self._told[user] -= cost_of(noise)

    def vanishes(self, user: int, round_number: int, share: float) -> bool:
        """Whether a device is gone before it has answered, by the draw that a simulation's `dropout` makes."""
        return vanishes(self.recipe.seed, user, round_number, share)

    def vectors(self) -> FloatMatrix:
        """Everyone's vector of the rounds."""
        table = np.zeros((len(self.profiles.sizes), self.recipe.factors), dtype=np.float32)
        for user, device in self._devices.items():
            table[user] = device.vector
        return table

    def tastes(self, model: Model) -> FloatMatrix:
        """What everyone's device predicts with: solved for at home, from all ratings."""
        tastes = np.zeros((len(self.profiles.sizes), self.recipe.factors), dtype=np.float32)
        for user in np.flatnonzero(self.profiles.sizes).tolist():
            tastes[user] = at_home(self.facts.settings, self.facts.n_items, 0, user, self.history(user), model)
        return tastes

    def scores(self, model: Model, vectors: FloatMatrix) -> FloatMatrix:
        """By vectors that are solved for at home, from everyone's ratings."""
        del vectors
        scores: FloatMatrix = self.tastes(model) @ model.vectors[:, : self.recipe.factors].T
        return scores

    def errors(self, model: Model, vectors: FloatMatrix, split: Split, ids: list[str]) -> dict[str, float]:
        """MAE and RMSE of held-out ratings: as devices predict (at home), and by the vectors of the rounds.

        The second are the simulation's own. As in `evaluate`, the person's mean stands in where no one has rated the
        item in training.
        """
        data, settings = split.test, self.facts.settings
        assert data.ratings is not None, "a split of rated data is rated"
        people = {person: number for number, person in enumerate(split.train.user_ids.tolist())}
        items = {item: number for number, item in enumerate(ids)}
        pairs = [
            (people.get(person, -1), items.get(str(item), -1))
            for person, item in zip(data.user_ids[data.users].tolist(), data.item_ids[data.items].tolist(), strict=True)
        ]
        users, numbers = np.array(pairs, dtype=np.int64).T
        rated = np.bincount(self.profiles.items, minlength=len(ids)) > 0
        known = (users >= 0) & (numbers >= 0)
        if not known.any():
            return {}
        users, numbers, actual = users[known], numbers[known], data.ratings[known]
        totals = np.add.reduceat(self.ratings, self.profiles.starts[:-1].clip(max=len(self.ratings) - 1))
        means = totals / np.maximum(self.profiles.sizes, 1)
        found: dict[str, float] = {}
        beside = self._beside(model)
        for name, tastes in (("", self.tastes(model)), ("_of_rounds", vectors + beside)):
            told = np.einsum("kf,kf->k", tastes[users], model.vectors[numbers, : self.recipe.factors])
            told = np.clip(np.where(rated[numbers], told, means[users]), settings.lowest, settings.highest)
            found |= {f"mae{name}": mae(told, actual), f"rmse{name}": rmse(told, actual)}
        return {name: round(float(value), 6) for name, value in found.items()}

    def _beside(self, model: Model) -> FloatMatrix | FloatVector:
        if not len(model.implicit):
            return np.zeros(self.recipe.factors, dtype=np.float32)
        return np.array(
            [
                beside_of(model.implicit[self.profiles.of(user)], self.recipe.factors)
                for user in range(len(self.profiles.sizes))
            ]
        )


def _policy(facts: Facts, specs: dict[str, Any]) -> Policy:
    """Everyone's policy: what the federation suggests, with what was wished for in its place."""
    specs = dict(specs)
    if (
        specs.pop("sharing", "fixed-subset") != "fixed-subset"
        or specs.pop("basis", "shared") != "shared"
        or "item_epsilon" in specs
    ):
        raise SettingError(
            "This federation is of ratings: which of them may leave is decided once for its lifetime, and virtual "
            "ratings hide "
            "them. Leave --sharing, --basis and --item-epsilon out; --filling, --rho and --sampling say how."
        )
    if specs.get("filling") == "none":
        specs = {"rho": 0.0} | specs
    return facts.rules.sharing_policy(replace(suggested_policy(facts).policy, **specs))


def rated_in_catalogue(data: Interactions, ids: list[str]) -> tuple[Profiles, int, FloatVector]:
    """Everyone's ratings in the numbers of the federation's catalogue, and how many items it does not have."""
    assert data.ratings is not None
    profiles, unknown = in_catalogue(data, ids)
    own = [str(item) for item in data.item_ids.tolist()]
    if own == ids:
        return profiles, 0, data.ratings
    number_of = {item: number for number, item in enumerate(ids)}
    numbers = np.array([number_of.get(item, -1) for item in own], dtype=np.int32)[data.items]
    known = numbers >= 0
    order = np.lexsort((numbers[known], data.users[known]))
    ratings: FloatVector = data.ratings[known][order]
    return profiles, unknown, ratings


class FrugalDevices:
    """The private side of a fleet of few messages: histories, and how many messages each device has sent."""

    def __init__(self, facts: Facts, ids: list[str], data: Interactions, seed: int, specs: dict[str, Any]) -> None:
        specs = dict(specs)
        if specs.pop("basis", "shared") != "shared" or specs.get("sharing") == "all":
            raise SettingError(
                "This federation's devices send few messages: what stands for a history in them is decided once for "
                "life. Choose --sharing fixed-subset or randomized-response, and the basis shared."
            )
        settings = replace(facts.settings, seed=seed, **specs)
        self.profiles, self.unknown_items = in_catalogue(data, ids)
        choices = Choices.alike(settings.policy(0.5), np.full(data.n_users, float(specs.get("pi", 1.0))))
        shared_profile = shared_profiles_of_all(choices, seed, self.profiles, facts.n_items)
        self.recipe = frugal_recipe(settings, self.profiles.sizes, facts.n_items, shared_profile=shared_profile)
        self.participants = self.recipe.participants
        self._devices = {
            user: FrugalPrivate(
                user,
                self.profiles.of(user),
                shared_profile_of(shared_profile, self.profiles, user),
                int(self.recipe.messages[user]),
            )
            for user in self.participants.tolist()
        }
        self._gram: tuple[int, RealMatrix] | None = None
        self._shared: tuple[int, Directions, Scratch] | None = None
        self._told: dict[int, float] = {}  # what each device's messages have told, as a square of mu
        gram_matrix(np.zeros((1, 1), dtype=np.float32), np.ones(1, dtype=np.float32))  # compiled now

    def take_over(self, before: FrugalDevices) -> None:
        """What has been sent stays sent."""
        for user, device in self._devices.items():
            device.spent = before._devices[user].spent if user in before._devices else 0

    def may_take_part(self, user: int) -> bool:
        """Whether a device has a message left."""
        device = self._devices[user]
        return device.spent < device.messages

    def message(self, user: int, round_number: int, model: Model) -> bytes:
        """One device's part of a round: the bytes that it sends; it has one message less."""
        del round_number
        return encode_frugal_update(self._update(user, model))

    def _update(self, user: int, model: Model) -> FrugalUpdate:
        device, vectors = self._devices[user], model.vectors[:, : self.recipe.factors]
        profile = device.shared_profile.profile
        if self._gram is None or self._gram[0] != model.version:
            self._gram = model.version, gram_matrix(np.ascontiguousarray(vectors), model.weights)
        objective, gram = self.recipe.objective, self._gram[1]
        vector = solve_user(objective, model.regulariser, vectors, model.weights, gram, profile)
        scale = user_weight(self.recipe, len(profile))
        return send(self.recipe, device, residuals(objective, vectors, vector, profile), vector, scale)

    def upload(self, user: int, model: Model, terms: Terms) -> bytes | None:
        """One device's part of a round that no single server reads, split; nothing where its guarantee has no room.

        Rounding follows the draws of a simulation, so that without noise the model is the simulation's. What splits a
        message is the operating system's.
        """
        device, offer = self._devices[user], terms.offer
        if not can_afford(terms.charter, offer, self._told.get(user, 0.0)):
            return None
        self._told[user] = self._told.get(user, 0.0) + cost_of(offer.noise)
        if terms.charter.recipe == PRIVATE:
            known, workspace = self._known(model, terms)
            profile = device.shared_profile.profile
            update = sent_in_stage(offer.stage, device, profile, self.recipe.seed, known, workspace)
            return split(terms, update.whole)
        return split(terms, spectral_message(terms, self._update(user, model)))

    def release(self, user: int, noise: int) -> None:
        """Give back a device's last upload, which is in no sum."""
        self._devices[user].spent -= 1
        self._told[user] -= cost_of(noise)

    def _known(self, model: Model, terms: Terms) -> tuple[Directions, Scratch]:
        """What all devices of a round work out alike, and room for a message."""
        if self._shared is None or self._shared[0] != model.version:
            vectors = np.ascontiguousarray(model.vectors[:, : self.recipe.factors])
            workspace = new_scratch(terms.charter.items, terms.offer.columns)
            self._shared = model.version, directions_of(vectors, model.weights), workspace
        return self._shared[1:]

    def vanishes(self, user: int, round_number: int, share: float) -> bool:
        """Whether a device is gone before it has answered, by the draw that a simulation's `dropout` makes."""
        return vanishes(self.recipe.seed, user, round_number, share)

    def vectors(self) -> FloatMatrix:
        """None are kept from round to round."""
        return np.zeros((len(self.profiles.sizes), 0), dtype=np.float32)

    def scores(self, model: Model, vectors: FloatMatrix) -> FloatMatrix:
        """By vectors that are solved for at home, from everyone's full history."""
        del vectors
        own = vectors_at_home(self.recipe, model.vectors, model.weights, model.regulariser, self.profiles)
        scores: FloatMatrix = own @ model.vectors.T
        return scores


def virtual_devices(facts: Facts, ids: list[str], data: Interactions, seed: int, specs: dict[str, Any]) -> Devices:
    """The devices of everyone in a data set, of the federation's method."""
    made: Devices = DEVICES_OF[facts.method](facts, ids, data, seed, specs)
    return made


DEVICES_OF: dict[str, type[Any]] = {
    "frugal": FrugalDevices,
    "fpl": VirtualDevices,
    "pmf": RatingDevices,
    "svdpp": RatingDevices,
}
