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

from federank._numerics.arrays import FloatMatrix, FloatVector
from federank.data.interactions import Interactions, Profiles
from federank.data.splits import Split
from federank.errors import DataError, SettingError
from federank.federation.client import History, Model, Terms, can_afford, cost_of, split
from federank.federation.rng import words_wrap_around
from federank.federation.simulated import Population, in_catalogue
from federank.methods.fedrec.client import (
    at_home,
    first_vector,
    gradients_message,
    implicit_of,
    iteration_of,
    starting_vector,
)
from federank.methods.fedrec.method import beside_of, compute_ratings, share_ratings
from federank.methods.fedrec.settings import rating_recipe
from federank.methods.fedrec.wire import RatingBroadcast, RatingPrivate, RatingUpdate, encode_rating_message
from federank.methods.predicting import refuse_bad_ratings
from federank.privacy.policy import Policy
from federank.privacy.population import Choices, all_shared_items, shared_profiles_of_all

# Virtual devices of ratings: the people of a data set, each with ratings, a vector of the rounds and draws.


class FedRecClients:
    """The private side of a fleet of ratings."""

    def __init__(self, population: Population) -> None:
        facts, ids, data, seed, specs, suggested = population
        self.seed = seed
        policy = facts.rules.sharing_policy(_policy(suggested(), specs))
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

    def take_over(self, before: FedRecClients) -> None:
        """Everyone keeps what was learnt so far; uploads count again from 0."""
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
        device = self._devices[user]
        if not device.participations:
            history = History(device.items, device.ratings)
            device.vector = starting_vector(self.facts.settings, self.recipe.seed, user, history, model)
        broadcast = RatingBroadcast(round_number, model.vectors, implicit_of(model), iteration_of(model))
        with words_wrap_around():
            return share_ratings(compute_ratings(self.recipe, device, broadcast))

    def upload(self, user: int, model: Model, terms: Terms) -> bytes | None:
        """The same where no single server reads a message: split; nothing where its guarantee has no room."""
        told = self._told.get(user, 0.0)
        if not can_afford(terms.config, terms.offer, told):
            return None
        self._told[user], self._sent[user] = told + cost_of(terms.offer.noise), self._sent.get(user, 0) + 1
        update = self._update(user, terms.offer.round, model)
        return split(terms, gradients_message(terms, update, implicit=self.recipe.implicit))

    def release(self, user: int, noise: int) -> None:
        """Give back a device's last upload, which is in no sum."""
        self._sent[user] -= 1
        self._told[user] -= cost_of(noise)

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
            tastes[user] = at_home(self.facts.settings, 0, user, self.history(user), model)
        return tastes

    def scores(self, model: Model, _vectors: FloatMatrix) -> FloatMatrix:
        """By vectors that are solved for at home, from all ratings."""
        scores: FloatMatrix = self.tastes(model) @ model.vectors.T
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
            told = np.einsum("kf,kf->k", tastes[users], model.vectors[numbers])
            told = np.clip(np.where(rated[numbers], told, means[users]), settings.lowest, settings.highest)
            errors = told - actual
            found |= {
                f"mae{name}": float(np.abs(errors).mean()),
                f"rmse{name}": float(np.sqrt(np.square(errors).mean())),
            }
        return {name: round(float(value), 6) for name, value in found.items()}

    def _beside(self, model: Model) -> FloatMatrix | FloatVector:
        W = implicit_of(model)
        if not len(W):
            return np.zeros(self.recipe.factors, dtype=np.float32)
        return np.array(
            [beside_of(W[self.profiles.of(user)], self.recipe.factors) for user in range(len(self.profiles.sizes))]
        )


def _policy(suggested: Policy, specs: dict[str, Any]) -> Policy:
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
    return replace(suggested, **specs)


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


SIMULATED = {"pmf": FedRecClients, "svdpp": FedRecClients}
