"""A new person: a vector of their own, from their own history and the shared model as it is.

Methods of pairs take a few steps; those of squares solve for it.

What a device does on its first day. It needs the public item factors and the person's history, sends nothing, and
leaves the shared model alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

import numpy as np

from federank.arrays import FloatMatrix, FloatVector, IntVector
from federank.checks import whole
from federank.data.interactions import Interactions, Profiles
from federank.engines.pairs.home import home_vectors
from federank.errors import SettingError
from federank.models.topn import top_n
from federank.protocol.draws import USER_FACTORS, words_wrap_around
from federank.protocol.initial import normal_rows
from federank.protocol.messages import Broadcast, Private
from federank.protocol.pairs.computation import compute
from federank.protocol.pairs.recipes import FPLSettings, recipe_for
from federank.recommenders.factors import PairwiseFactors
from federank.recommenders.few_messages import FewMessages
from federank.recommenders.recommendations import Recommendations, Recommended, match_ids


@dataclass(frozen=True, eq=False)
class Person:
    """Somebody with a vector and a history of their own, and a copy of the shared model."""

    model: PairwiseFactors | FewMessages
    vector: FloatVector
    profile: IntVector

    def recommend(self, n: int = 10) -> list[Recommended]:
        """The n best items that this person does not have yet."""
        whole("n", n, 1)
        seen = Profiles(np.array([0, len(self.profile)], dtype=np.int64), self.profile)
        n = min(n, len(self.model.item_ids))
        items, scores = top_n(self.model.scores_of(self.vector)[None, :], np.zeros(1, dtype=np.int32), seen, n)
        one = np.array([0])
        return Recommendations(one, items, scores, self.model.item_ids, self.model.training.titles).of(0)

    def score(self, items: Sequence[Any]) -> FloatVector:
        """This person's scores of these items, by original ids."""
        return self.model.scores_of(self.vector)[
            np.array([self.model.training.item_index(item) for item in items], dtype=np.int32)
        ]


def can_enrol(model: Any) -> TypeGuard[PairwiseFactors | FewMessages]:
    """Whether a model can take in somebody new."""
    return isinstance(model, PairwiseFactors | FewMessages)


def recommend_to_strangers(
    model: PairwiseFactors | FewMessages, data: Interactions, users: IntVector, n: int
) -> Recommendations:
    """The n best items for people of other data, each with the vector that a device would work out at home."""
    there = match_ids(data.item_ids, model.item_ids).astype(np.int32)
    starts, items = [0], []
    for user in users:
        known = there[data.profiles.of(int(user))]
        items.append(np.sort(known[known >= 0]))
        starts.append(starts[-1] + len(items[-1]))
    profiles = Profiles(np.array(starts, dtype=np.int64), np.concatenate(items) if items else np.zeros(0, np.int32))
    vectors = _home_vectors(model, profiles)
    numbers, n = np.arange(len(users), dtype=np.int32), min(n, len(model.item_ids))
    scores = np.stack([model.scores_of(vector) for vector in vectors]) if len(users) else np.zeros((0, n), np.float32)
    best, their_scores = top_n(scores, numbers, profiles, n)
    return Recommendations(data.user_ids[users], best, their_scores, model.item_ids, model.training.titles)


def _home_vectors(model: PairwiseFactors | FewMessages, profiles: Profiles) -> FloatMatrix:
    if isinstance(model, FewMessages):
        return np.stack([model.enrolled(profiles.of(user)) for user in range(len(profiles.sizes))])
    settings = replace(model.pairs(), **_ALONE)
    settings = replace(settings, triples=1, clients_per_round=1)
    recipe = recipe_for(settings, profiles.sizes, len(model.item_biases), np.zeros(len(profiles.sizes)))
    everybody = np.arange(len(profiles.sizes), dtype=np.int32)
    return home_vectors(recipe, profiles, model.item_vectors, model.item_biases, everybody)


_ALONE: dict[str, Any] = {
    name: FPLSettings.__dataclass_fields__[name].default
    for name in ("trace", "pi", "sharing", "epsilon", "basis", "budget", "policies")
}
"""Settings that are about what leaves a device: nothing does."""


def enrol(model: PairwiseFactors | FewMessages, history: Sequence[Any], *, steps: int = 400, seed: int = 1) -> Person:
    """Give a new person a vector from the items of their history: solved for, or learnt in this many steps."""
    if not isinstance(model, PairwiseFactors | FewMessages):
        raise SettingError(f"A {type(model).__name__} cannot take in somebody new; Frugal, FCF, FPL and BPR can.")
    data = model.training
    profile = np.unique(np.array([data.item_index(item) for item in history], dtype=np.int32))
    if not 0 < len(profile) < data.n_items:
        raise SettingError(
            f"The history has {len(profile):,} of the {data.n_items:,} items of the catalogue; at least one it has and "
            "one it has not are needed to learn from."
        )
    whole("steps", steps, 1)
    if isinstance(model, FewMessages):
        return Person(model, model.enrolled(profile), profile)
    settings = replace(model.pairs(), **_ALONE)
    settings = replace(settings, triples=steps, seed=seed, clients_per_round=1)
    recipe = recipe_for(settings, np.array([len(profile)]), data.n_items, np.zeros(1))
    first = normal_rows(1, settings.factors, seed=seed, purpose=USER_FACTORS, scale=settings.initial_scale)[0]
    nothing = np.zeros(len(profile), dtype=np.bool_)
    device = Private(user=0, vector=first, profile=profile, pi=0.0, allowed=nothing, triples=steps)
    everything = np.arange(data.n_items, dtype=np.int32)
    with words_wrap_around():
        compute(recipe, device, Broadcast(0, 0, everything, model.item_vectors, model.item_biases))
    return Person(model, device.vector, profile)
