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

from federank._numerics.arrays import FloatMatrix, FloatVector, IntVector
from federank.errors import SettingError
from federank.federation.client import (
    MOST_FACTORS,
    MOST_MESSAGES,
    MOST_PASSES,
    ClientMethod,
    History,
    Model,
    Played,
    RoundVector,
    Rows,
    SecureClientMethod,
    Terms,
    User,
    check_moved,
    clipped_message,
    integer,
    number,
    numbers_in_range,
    refuse_counting,
    solved,
    split,
)
from federank.federation.method import Scale
from federank.federation.rng import USER_FACTORS, words_wrap_around
from federank.federation.wire import Array
from federank.methods.fedrec.method import beside_of, compute_ratings, share_ratings, solved_taste, uniform_rows
from federank.methods.fedrec.settings import (
    RatingFederationSettings,
    RatingRecipe,
    SVDPlusPlusFederationSettings,
    rating_recipe,
)
from federank.methods.fedrec.wire import (
    RatingBroadcast,
    RatingPrivate,
    RatingUpdate,
    check_rating_update,
    columns_of_gradients,
    decode_rating_rows,
    dense_gradients,
    encode_rating_message,
    rating_rows_bytes,
)
from federank.privacy.ledger import Ledger
from federank.privacy.policy import Policy
from federank.secagg.config import GRADIENTS
from federank.secagg.round_config import rating_model_digest


def settings_of(
    kind: type[RatingFederationSettings], recipe: dict[str, Any], _n_items: int
) -> RatingFederationSettings:
    """The settings that a server announces; seed and virtual ratings are the client's own."""
    numbers = ("learning_rate", "decay", "regulariser", "initial_range", "lowest", "highest", "step")
    told: dict[str, Any] = {name: number(recipe.get(name)) for name in numbers}
    words = ("item_gradients", "filling_start", "local_training", "first_prediction")
    told |= {name: str(recipe.get(name)) for name in words}
    told |= {name: integer(recipe.get(name), 0, MOST_PASSES) for name in ("t_predict", "t_local")}
    return kind(factors=integer(recipe.get("factors"), 1, MOST_FACTORS), **told)


def read_rows(settings: RatingFederationSettings, content: bytes, n_items: int) -> Rows:
    """Rows from the wire, once they are sure to be some."""
    implicit = settings.implicit
    rows = decode_rating_rows(content, settings.factors, n_items, implicit=implicit)
    tables: dict[str, Array] = {"vectors": rows.vectors, "heard": rows.heard}
    if implicit:
        tables["implicit"] = rows.implicit_vectors
    model = Model(rows.version, tables, {"iteration": np.array([rows.iteration])})
    return Rows(rows.round_number, rows.items, model)


def implicit_of(model: Model) -> FloatMatrix:
    """W, where it is SVD++; else no rows."""
    return model.tables.get("implicit", model.vectors[:0])


def iteration_of(model: Model) -> int:
    """How many iterations are over."""
    return int(model.overall["iteration"][0])


def scores(_settings: RatingFederationSettings, model: Model, vector: FloatVector) -> FloatVector:
    """Predicted ratings; -inf for items that no upload has ever had."""
    scores: FloatVector = np.where(model.tables["heard"] > 0, model.vectors @ vector, -np.inf)
    return scores


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


def messages(_settings: RatingFederationSettings, _policy: Policy) -> int | None:
    """Uploads are not counted."""
    return None


def recipe_of(settings: RatingFederationSettings, policy: Policy, n_items: int, seed: int, rated: int) -> RatingRecipe:
    """The federation's recipe for one client who takes part with this many ratings, hidden as the owner says."""
    hidden: dict[str, Any] = {"filling": policy.filling, "rho": policy.rho, "sampling": policy.sampling}
    own = replace(settings, seed=seed, **hidden)
    return rating_recipe(own, np.array([rated]), n_items)


class Learnt(NamedTuple):
    """What a device has learnt in a round, before anything of it goes out."""

    vector: RoundVector
    sampled: IntVector  # the items that got a virtual rating
    update: RatingUpdate


def play(client: User, model: Model, ledger: Ledger, round_number: int) -> Played:
    """Play a round and record it in the ledger."""
    recipe = recipe_of(client.settings, client.policy, client.n_items, client.seed, len(client.taken.profile))
    vector, sampled, update = learn(client, recipe, model, ledger.sampled(), round_number)
    ledger.record(round_number, client.taken, client.taken.profile, sampled)
    return Played(vector, encode_rating_message(update), len(update.items), update.items)


def learn(client: User, recipe: RatingRecipe, model: Model, sampled_before: IntVector, round_number: int) -> Learnt:
    """A device's computation in a round, checked: nothing that is no number may leave."""
    settings, policy, profile = client.settings, client.policy, client.taken.profile
    mean = np.float32(client.ratings.mean())
    private = RatingPrivate(
        client.user,
        _vector_of_round(client, model),
        profile,
        client.ratings,
        mean,
        int(recipe.virtual[0]),
        0,
        sampled_before,
    )
    broadcast = RatingBroadcast(round_number, model.vectors, implicit_of(model), iteration_of(model))
    with words_wrap_around(), np.errstate(invalid="ignore", over="ignore"):
        gradients = compute_ratings(recipe, private, broadcast)
        update = share_ratings(gradients)
    with numbers_in_range():
        check_rating_update(update, settings.factors, client.n_items, implicit=settings.implicit)
    check_moved(private.vector)
    learnt = RoundVector(private.vector.astype(np.float32), policy.basis, frozenset(profile.tolist()))
    return Learnt(learnt, gradients.items[len(profile) :], update)


def _vector_of_round(client: User, model: Model) -> FloatVector:
    """The vector that the round begins with."""
    if client.kept.stands(client.policy.basis, client.taken.profile):
        return client.kept.values.copy()
    history = History(client.taken.profile, client.ratings)
    return starting_vector(client.settings, client.seed, client.user, history, model)


def starting_vector(
    settings: RatingFederationSettings, seed: int, user: int, history: History, model: Model
) -> FloatVector:
    """The vector of a client's first round: solved from its ratings; drawn where a first model predicts zero."""
    if settings.first_prediction == "zero" and iteration_of(model) == 0:
        return first_vector(settings, seed, user)
    beside = beside_of(_implicit_rows(model, history.items), settings.factors)
    return _taste(model, history, beside) - beside


def at_home(settings: RatingFederationSettings, _seed: int, _user: int, history: History, model: Model) -> FloatVector:
    """What the item vectors are multiplied with to predict: from all ratings, in closed form; it is never sent."""
    return _taste(model, history, beside_of(_implicit_rows(model, history.items), settings.factors))


def _taste(model: Model, history: History, beside: FloatVector) -> FloatVector:
    return solved(lambda: solved_taste(model.vectors[history.items], history.ratings, beside))


def _implicit_rows(model: Model, items: Any) -> Any:
    W = implicit_of(model)
    return W[items] if len(W) else W


def scale(settings: RatingFederationSettings) -> Scale | None:
    """What ratings there are."""
    return settings.scale


def rating_method(kind: type[RatingFederationSettings]) -> ClientMethod:
    """PMF or SVD++, as its record of settings says."""
    of_kind: Callable[[dict[str, Any], int], Any] = partial(settings_of, kind)
    return ClientMethod(
        settings_of=of_kind,
        model_bytes=lambda settings, n_items: rating_rows_bytes(n_items, settings.factors, implicit=settings.implicit),
        read_rows=read_rows,
        first_vector=first_vector,
        sharing_policy=sharing_policy,
        messages=messages,
        play=play,
        home_vector=at_home,
        scores=scores,
        counts_messages=False,
        is_home_alone=True,
        scale=scale,
    )


PMF_CLIENT, SVDPP_CLIENT = rating_method(RatingFederationSettings), rating_method(SVDPlusPlusFederationSettings)


# Under secure aggregation: computation as above, without virtual ratings. An upload has a row for every item, gradients
# and a count, clipped as a whole. Which items are rated shows in no upload, so nothing has to be hidden among others.


_TOLD = (
    *("factors", "learning_rate", "decay", "regulariser", "initial_range", "t_predict", "t_local", "item_gradients"),
    *("filling_start", "local_training", "lowest", "highest", "step", "messages", "clip", "first_prediction"),
)


def secure_settings_of(
    kind: type[RatingFederationSettings], recipe: dict[str, Any], n_items: int
) -> RatingFederationSettings:
    """The settings that a server's recipe says: how many messages there are in a lifetime, and how long one may be
    too.
    """
    return replace(
        settings_of(kind, recipe, n_items),
        filling="none",
        rho=0.0,
        messages=integer(recipe.get("messages"), 1, MOST_MESSAGES),
        clip=number(recipe.get("clip")),
    )


def secure_sharing_policy(policy: Policy) -> Policy:
    """Decisions for its lifetime; there is nothing to hide ratings from."""
    refuse_other_sharing(policy)
    if policy.filling not in (None, "none"):
        raise SettingError(
            "No single server reads a message of this federation, so virtual ratings hide nothing and would only blur "
            "what it learns; choose --filling none, or leave it out."
        )
    return policy


def promised_messages(settings: RatingFederationSettings, policy: Policy) -> int | None:
    """As many as the federation promised, or fewer where the owner allows fewer."""
    promised = int(settings.messages or 0)
    return promised if policy.messages is None else min(promised, policy.messages)


def secure_recipe_of(settings: RatingFederationSettings, n_items: int, seed: int, rated: int) -> RatingRecipe:
    """The federation's recipe for one client who takes part with this many ratings."""
    return rating_recipe(replace(settings, seed=seed), np.array([rated]), n_items)


def secure_play(client: User, model: Model, ledger: Ledger, round_number: int) -> Played:
    """Play a round and record its message in the ledger; what goes out is split already."""
    settings, profile, terms = client.settings, client.taken.profile, client.terms
    assert terms is not None, "a federation of sums has terms for every round"
    recipe = secure_recipe_of(settings, client.n_items, client.seed, len(profile))
    learnt = learn(client, recipe, model, np.zeros(0, dtype=np.int32), round_number)
    body = split(terms, gradients_message(terms, learnt.update, implicit=settings.implicit))
    allowed = int(promised_messages(settings, client.policy) or 0)
    ledger.record_message(round_number, client.taken, ledger.spent + 1, allowed, terms.offer.noise)
    return Played(learnt.vector, body, client.n_items, profile)


def gradients_message(terms: Terms, update: RatingUpdate, *, implicit: bool) -> IntVector:
    """An Update as a message that names every item, in integers, clipped to the federation config's length."""
    return clipped_message(terms, dense_gradients(update, terms.config.items, implicit=implicit))


def _shape(settings: RatingFederationSettings) -> tuple[str, int, str]:
    columns = columns_of_gradients(settings.factors, implicit=settings.implicit)
    return GRADIENTS, columns, repr(float(settings.clip or 0))


def _digest(model: Model) -> bytes:
    W = implicit_of(model)
    return rating_model_digest(model.version, iteration_of(model), model.tables["heard"], model.vectors, W)


def _summed(kind: type[RatingFederationSettings]) -> ClientMethod:
    return replace(
        rating_method(kind),
        settings_of=partial(secure_settings_of, kind),
        sharing_policy=secure_sharing_policy,
        messages=promised_messages,
        play=secure_play,
        counts_messages=True,
        needs_others=False,
        summed=SecureClientMethod(told=_TOLD, shape=_shape, digest=_digest),
    )


SECURE_PMF_CLIENT, SECURE_SVDPP_CLIENT = _summed(RatingFederationSettings), _summed(SVDPlusPlusFederationSettings)
CLIENTS = {"pmf": PMF_CLIENT, "svdpp": SVDPP_CLIENT}
SECURE_CLIENTS = {"pmf": SECURE_PMF_CLIENT, "svdpp": SECURE_SVDPP_CLIENT}
