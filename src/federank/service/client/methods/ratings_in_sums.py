"""Ratings on a device where no single server reads a message (protocol/ratings/sums.py): PMF and SVD++.

    computation       as everywhere in ratings, from those that may leave; there are no virtual ratings
    transmission      a row for every item, gradients and a count, clipped as a whole, in integers, split in two
    ledger            the message is written down: the how-many-th it is, and which rated items it was made from

Which items are rated shows in no message, so nothing has to be hidden among others. What a lifetime's messages may tell
together is the federation config's guarantee, and a device counts them.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from federank._numerics.arrays import IntVector
from federank.errors import SettingError
from federank.methods.fedrec.settings import (
    RatingFederationSettings,
    RatingRecipe,
    SVDPlusPlusFederationSettings,
    rating_recipe,
)
from federank.methods.fedrec.wire import RatingUpdate, columns_of_gradients, dense_gradients
from federank.privacy.ledger import Ledger
from federank.privacy.policy import Policy
from federank.secagg.config import GRADIENTS
from federank.secagg.round_config import rating_model_digest
from federank.service.client.http import number, whole
from federank.service.client.methods import ratings
from federank.service.client.methods.method import Method, Model, Played, Summed, User
from federank.service.client.methods.summed import Terms, clipped_message, split
from federank.service.client.rules import MOST_MESSAGES

_TOLD = (
    *("factors", "learning_rate", "decay", "regulariser", "initial_range", "t_predict", "t_local", "item_gradients"),
    *("filling_start", "local_training", "lowest", "highest", "step", "messages", "clip", "first_prediction"),
)


def settings_of(kind: type[RatingFederationSettings], recipe: dict[str, Any], n_items: int) -> RatingFederationSettings:
    """The settings that a server's recipe says: how many messages there are in a lifetime, and how long one may be
    too.
    """
    return replace(
        ratings.settings_of(kind, recipe, n_items),
        filling="none",
        rho=0.0,
        messages=whole(recipe.get("messages"), 1, MOST_MESSAGES),
        clip=number(recipe.get("clip")),
    )


def sharing_policy(policy: Policy) -> Policy:
    """Decisions for its lifetime; there is nothing to hide ratings from."""
    ratings.refuse_other_sharing(policy)
    if policy.filling not in (None, "none"):
        raise SettingError(
            "No single server reads a message of this federation, so virtual ratings hide nothing and would only blur "
            "what it learns; choose --filling none, or leave it out."
        )
    return policy


def messages(settings: RatingFederationSettings, policy: Policy) -> int | None:
    """As many as the federation promised, or fewer where the owner allows fewer."""
    promised = int(settings.messages or 0)
    return promised if policy.messages is None else min(promised, policy.messages)


def recipe_of(settings: RatingFederationSettings, n_items: int, seed: int, rated: int) -> RatingRecipe:
    """The federation's recipe for one person who takes part with this many ratings."""
    return rating_recipe(replace(settings, seed=seed), np.array([rated]), n_items)


def play(person: User, model: Model, ledger: Ledger, round_number: int) -> Played:
    """Play a round and record its message in the ledger; what goes out is split already."""
    settings, profile, terms = person.settings, person.taken.profile, person.terms
    assert terms is not None, "a federation of sums has terms for every round"
    recipe = recipe_of(settings, person.n_items, person.seed, len(profile))
    learnt = ratings.learn(person, recipe, model, np.zeros(0, dtype=np.int32), round_number)
    body = split(terms, gradients_message(terms, learnt.update, implicit=settings.implicit))
    allowed = int(messages(settings, person.policy) or 0)
    ledger.record_message(round_number, person.taken, ledger.spent + 1, allowed, terms.offer.noise)
    return Played(learnt.vector, body, person.n_items, profile)


def gradients_message(terms: Terms, update: RatingUpdate, *, implicit: bool) -> IntVector:
    """An Update as a message that names every item, in integers, clipped to the federation config's length."""
    return clipped_message(terms, dense_gradients(update, terms.charter.items, implicit=implicit))


def _shape(settings: RatingFederationSettings) -> tuple[str, int, str]:
    columns = columns_of_gradients(settings.factors, implicit=settings.implicit)
    return GRADIENTS, columns, repr(float(settings.clip or 0))


def _digest(model: Model) -> bytes:
    return rating_model_digest(model.version, model.iteration, model.weights, model.vectors, model.implicit)


def _summed(kind: type[RatingFederationSettings]) -> Method:
    return replace(
        ratings.rating_method(kind),
        settings_of=partial(settings_of, kind),
        sharing_policy=sharing_policy,
        messages=messages,
        play=play,
        counts_messages=True,
        needs_others=False,
        summed=Summed(told=_TOLD, shape=_shape, digest=_digest),
    )


SUMMED_PMF, SUMMED_SVDPP = _summed(RatingFederationSettings), _summed(SVDPlusPlusFederationSettings)
