"""Ratings (FedRec) on a device: PMF, and SVD++ where items have a second vector.

    own vector        that of the last round, unless the owner has taken back something that it was learnt from. Where
                      there is none, it is solved from the ratings that may leave, or drawn as a simulation draws it
                      where the first model predicts zero and nothing was learnt yet
    computation       rated items that may leave, and virtual ratings of sampled ones; the own vector moves, gradients
                      come out
    transmission      rated and sampled items in one ascending list
    ledger            which were rated and which were sampled is written down: only the owner can tell

All that leaves is a function of the shared profile, its ratings and draws. Predictions are made at home, from the
vector that explains all ratings best (protocol/ratings/home.py). The maths are the protocol's own; the simulation plays
the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from federank._numerics.arrays import FloatVector, IntVector
from federank.errors import SettingError
from federank.federation.rng import USER_FACTORS, words_wrap_around
from federank.methods.fedrec.method import beside_of, compute_ratings, share_ratings, solved_taste, uniform_rows
from federank.methods.fedrec.settings import (
    RatingFederationSettings,
    RatingRecipe,
    Scale,
    SVDPlusPlusFederationSettings,
    rating_recipe,
)
from federank.methods.fedrec.wire import (
    RatingBroadcast,
    RatingPrivate,
    RatingUpdate,
    check_rating_update,
    decode_rating_rows,
    encode_rating_message,
    rating_rows_bytes,
)
from federank.privacy.ledger import Ledger
from federank.privacy.policy import Policy
from federank.service.client.http import number, whole
from federank.service.client.methods.method import (
    History,
    Method,
    Model,
    Played,
    RoundVector,
    Rows,
    User,
    check_moved,
    numbers_in_range,
    refuse_counting,
    solved,
)
from federank.service.client.rules import MOST_FACTORS, MOST_PASSES

_NO_BIASES: FloatVector = np.zeros(0, dtype=np.float32)


def settings_of(kind: type[RatingFederationSettings], recipe: dict[str, Any], n_items: int) -> RatingFederationSettings:
    """The settings that a server's recipe says; seed and virtual ratings are the device's own business."""
    del n_items
    numbers = ("learning_rate", "decay", "regulariser", "initial_range", "lowest", "highest", "step")
    told: dict[str, Any] = {name: number(recipe.get(name)) for name in numbers}
    words = ("item_gradients", "filling_start", "local_training", "first_prediction")
    told |= {name: str(recipe.get(name)) for name in words}
    told |= {name: whole(recipe.get(name), 0, MOST_PASSES) for name in ("t_predict", "t_local")}
    return kind(factors=whole(recipe.get("factors"), 1, MOST_FACTORS), **told)


def read_rows(content: bytes, factors: int, n_items: int, *, implicit: bool) -> Rows:
    """Rows from the wire, once they are sure to be some."""
    rows = decode_rating_rows(content, factors, n_items, implicit=implicit)
    heard = rows.heard.astype(np.float32)
    model = Model(rows.version, rows.vectors, _NO_BIASES, heard, 0.0, rows.implicit_vectors, rows.iteration)
    return Rows(rows.round_number, rows.items, model)


def first_vector(settings: RatingFederationSettings, seed: int, user: int) -> FloatVector:
    """The vector that a device begins with, before it has learnt anything."""
    span = settings.initial_range
    drawn = uniform_rows(1, settings.factors, seed=seed, purpose=USER_FACTORS, span=span, first_row=user)
    vector: FloatVector = drawn[0]
    return vector


def refuse_other_sharing(policy: Policy, hidden: str = "", say: str = "") -> None:
    """What may leave of ratings is decided once for its lifetime, and stands for the history."""
    if policy.sharing != "fixed-subset" or policy.basis != "shared":
        raise SettingError(
            f"In a federation of ratings it is decided once for its lifetime which of your ratings may leave{hidden}; "
            f"choose "
            f"--sharing fixed-subset with the basis shared, or leave both out{say}."
        )


def sharing_policy(policy: Policy) -> Policy:
    """Decisions for its lifetime, and virtual ratings in the place of decoys."""
    refuse_other_sharing(policy, ", and virtual ratings hide them", ", and say --filling and --rho")
    if policy.filling is None:
        raise SettingError(
            "This federation is of ratings: say which virtual ratings go among yours, with --filling hybrid, average "
            "or none, and --rho, how many for each of your own."
        )
    refuse_counting(policy)
    return policy


def messages(settings: RatingFederationSettings, policy: Policy) -> int | None:
    """No number is promised."""
    del settings, policy
    return None


def recipe_of(settings: RatingFederationSettings, policy: Policy, n_items: int, seed: int, rated: int) -> RatingRecipe:
    """The federation's recipe for one person who takes part with this many ratings, hidden as the owner says."""
    hidden: dict[str, Any] = {"filling": policy.filling, "rho": policy.rho, "sampling": policy.sampling}
    own = replace(settings, seed=seed, **hidden)
    return rating_recipe(own, np.array([rated]), n_items)


class Learnt(NamedTuple):
    """What a device has learnt in a round, before anything of it goes out."""

    vector: RoundVector
    sampled: IntVector  # the items that got a virtual rating
    update: RatingUpdate


def play(person: User, model: Model, ledger: Ledger, round_number: int) -> Played:
    """Play a round and record it in the ledger."""
    recipe = recipe_of(person.settings, person.policy, person.n_items, person.seed, len(person.taken.profile))
    vector, sampled, update = learn(person, recipe, model, ledger.sampled(), round_number)
    ledger.record(round_number, person.taken, person.taken.profile, sampled)
    return Played(vector, encode_rating_message(update), len(update.items), update.items)


def learn(person: User, recipe: RatingRecipe, model: Model, sampled_before: IntVector, round_number: int) -> Learnt:
    """A device's computation in a round, checked: nothing that is no number may leave."""
    settings, policy, profile = person.settings, person.policy, person.taken.profile
    mean = np.float32(person.ratings.mean())
    private = RatingPrivate(
        person.user,
        _vector_of_round(person, model),
        profile,
        person.ratings,
        mean,
        int(recipe.virtual[0]),
        0,
        sampled_before,
    )
    broadcast = RatingBroadcast(round_number, model.vectors, model.implicit, model.iteration)
    with words_wrap_around(), np.errstate(invalid="ignore", over="ignore"):
        gradients = compute_ratings(recipe, private, broadcast)
        update = share_ratings(gradients)
    with numbers_in_range():
        check_rating_update(update, settings.factors, person.n_items, implicit=settings.implicit)
    check_moved(private.vector)
    learnt = RoundVector(private.vector.astype(np.float32), policy.basis, frozenset(profile.tolist()))
    return Learnt(learnt, gradients.items[len(profile) :], update)


def _vector_of_round(person: User, model: Model) -> FloatVector:
    """The vector that the round begins with."""
    if person.kept.stands(person.policy.basis, person.taken.profile):
        return person.kept.values.copy()
    history = History(person.taken.profile, person.ratings)
    return starting_vector(person.settings, person.seed, person.user, history, model)


def starting_vector(
    settings: RatingFederationSettings, seed: int, user: int, history: History, model: Model
) -> FloatVector:
    """The vector of a client's first round: solved from its ratings; drawn where a first model predicts zero."""
    if settings.first_prediction == "zero" and model.iteration == 0:
        return first_vector(settings, seed, user)
    beside = beside_of(_implicit_rows(model, history.items), settings.factors)
    return _taste(model, history, beside) - beside


def at_home(
    settings: RatingFederationSettings, n_items: int, seed: int, user: int, history: History, model: Model
) -> FloatVector:
    """What the item vectors are multiplied with to predict: from all ratings, in closed form; it is never sent."""
    del n_items, seed, user
    return _taste(model, history, beside_of(_implicit_rows(model, history.items), settings.factors))


def _taste(model: Model, history: History, beside: FloatVector) -> FloatVector:
    return solved(lambda: solved_taste(model.vectors[history.items], history.ratings, beside))


def _implicit_rows(model: Model, items: Any) -> Any:
    return model.implicit[items] if len(model.implicit) else model.implicit


def scale(settings: RatingFederationSettings) -> Scale | None:
    """What ratings there are."""
    return settings.scale


def rating_method(kind: type[RatingFederationSettings]) -> Method:
    """PMF or SVD++, as its record of settings says."""
    of_kind: Callable[[dict[str, Any], int], Any] = partial(settings_of, kind)
    return Method(
        settings_of=of_kind,
        model_bytes=partial(rating_rows_bytes, implicit=kind.implicit),
        read_rows=partial(read_rows, implicit=kind.implicit),
        first_vector=first_vector,
        sharing_policy=sharing_policy,
        messages=messages,
        play=play,
        home_vector=at_home,
        counts_messages=False,
        is_home_alone=True,
        scale=scale,
    )


PMF, SVDPP = rating_method(RatingFederationSettings), rating_method(SVDPlusPlusFederationSettings)
