"""FedRec: federated rating prediction by PMF and SVD++ (Lin et al., IEEE Intelligent Systems, 2020).

A client rates sampled items with virtual ratings, moves its user vector, and sends the gradients of rated and sampled
items (reference.py). The server moves each item by the mean of its gradients. Real clients take part in batch style,
when they can: an iteration, with which the learning rate falls, is over once as many uploads were aggregated as there
are clients, and an item moves by its share of an iteration. The first model predicts every client's mean, or is drawn
as in a simulation.

An upload of SVD++ has a second list, of the rated items' W: no other item has a gradient of W. A server that reads
uploads can read a user's rated items from it, whatever rho is (docs/fedrec.md).

The paper's text and the authors' code differ in five points. Each is a setting, whose first value is the code's:
the published figures come from it.

    item_gradients     `before`         V's gradients are taken with U as it was before its step, or `after` it
    client_rate        `participation`  a client's rate falls each time it takes part, or with every `iteration`
    filling_start      `late`           virtual ratings are predicted from iteration T_predict + 2 on, or T_predict
    local_training     `copy`           passes before a prediction train a copy of the user's vector, or its `own`
    local_ratings      `rated`          these passes go over the user's own ratings, or over `all`, virtual ones too
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np

from federank._numerics.arrays import FloatMatrix, FloatVector, IntVector, LongVector, RealVector
from federank.checks import check_range
from federank.errors import BadMessage, DataError, SettingError
from federank.federation import wire
from federank.federation.method import (
    Client,
    ClientResult,
    DataSummary,
    FederatedMethod,
    ItemGradients,
    ItemSums,
    Records,
    Scale,
    UserVector,
    setting,
)
from federank.federation.rng import IMPLICIT_FACTORS, ITEM_FACTORS, USER_FACTORS, uniform_rows
from federank.federation.wire import Array
from federank.methods.fedrec.reference import (
    ImplicitGradients,
    ImplicitModel,
    ImplicitState,
    ImplicitSums,
    RatingModel,
    RatingRecipe,
    RatingState,
    compute_ratings,
    folded_in,
    implicit_part,
    stepped,
)

if TYPE_CHECKING:
    from federank.federation.server import Guarantee

STANDS_OUT = 8.0
"""Standard deviations of the noise above which the count of an item is used."""
LONGEST_ROW = 4.0
"""Longest item vector that is on the rating scale, as a multiple of the square root of the highest rating."""
SLACK = 1e-3
"""For clients that add 32-bit floats in another order; relative to the longest row."""
_CLOSE = 1e-4  # how far a 32-bit float may be from the step of the scale that it stands for
_ALMOST = 1e-9  # shares of an iteration are added up; the last decimal is not to cost one


@dataclass(frozen=True, kw_only=True)
class FedRecSettings:
    """Settings of simulations and of served federations; the defaults are the authors' values."""

    implicit: ClassVar[bool] = False  # SVD++: items have a second vector
    factors: int = setting(20, 1, 1024)
    """Number of latent factors."""
    seed: int = setting(1, 0, 2**32 - 1)
    """Seed of all random numbers: the same seed gives the same model."""
    filling: Literal["hybrid", "average", "none"] = "hybrid"
    """Virtual ratings: first averages, later predictions (hybrid); the user's average; or none."""
    rho: float = setting(0.0, 0)
    """Number of virtual ratings per real rating, on items that the user has not rated."""
    sampling: Literal["fresh", "fixed"] = setting("fresh", paper=True)
    """Virtual items are drawn again in every round, as published, so that items of all rounds are the rated ones; or
    once per lifetime (fixed)."""
    t_predict: int = setting(5, 0, 10_000, paper=True)
    """Iterations before virtual ratings are predicted (T_predict; hybrid filling only)."""
    t_local: int = setting(15, 0, 10_000, paper=True)
    """Local passes over the user's ratings before virtual ratings are predicted (T_local; hybrid filling only)."""
    learning_rate: float | None = setting(None, positive=True)
    """Learning rate.  [default: the papers' values, 0.8 in batch style and 0.01 in stochastic style]"""
    decay: float = setting(0.9, positive=True, paper=True)
    """Factor of the learning rate after an iteration."""
    regulariser: float = setting(0.001, 0)
    """L2 regularisation of all vectors (lambda)."""
    initial_range: float = setting(0.01, positive=True, paper=True)
    """Initial vectors are uniform in a range of this width around zero."""
    item_gradients: Literal["before", "after"] = setting("before", paper=True)
    """Item gradients use the user's vector before its step (the authors' code) or after it (the paper)."""
    filling_start: Literal["late", "early"] = setting("late", paper=True)
    """Predicted virtual ratings begin with iteration T_predict + 2 (the authors' code) or T_predict (the paper)."""
    local_training: Literal["copy", "own"] = setting("copy", paper=True)
    """Local passes train a copy of the user's vector (the authors' code) or the vector itself (the paper)."""
    lowest: float = 1.0
    """Lowest possible rating."""
    highest: float = 5.0
    """Highest possible rating. Predictions are clipped to the range, in evaluation and recommendations only."""

    def __post_init__(self) -> None:
        super().__post_init__()  # type: ignore[misc]  # of Settings or of FederatedMethod, which are mixed with it
        if not self.lowest < self.highest:
            raise SettingError(
                f"Ratings are declared to lie between {self.lowest} and {self.highest}; a lowest and a greater highest "
                "are needed."
            )
        if self.rho > 0 and self.filling == "none":
            raise SettingError(f"rho is {self.rho:g}, but filling is none; choose average or hybrid, or rho 0.")


def rating_recipe(
    settings: FedRecSettings,
    sizes: LongVector,
    n_items: int,
    *,
    style: str = "batch",
    federated: bool = True,
    client_rate: str = "iteration",
    local_ratings: str = "rated",
) -> RatingRecipe:
    """Resolve the settings for users who have rated this many of `n_items` items; by default for a server's clients."""
    batch, participants = style == "batch", np.flatnonzero(sizes > 0).astype(np.int32)
    # With W beside U a client's step counts twice, so SVD++ in batch style has half the rate of PMF.
    default_rate = (0.4 if settings.implicit else 0.8) if batch else 0.01
    # The paper counts iterations from 1; t_predict + 2 there is t_predict + 1 here.
    start = settings.t_predict + 1 if settings.filling_start == "late" else max(settings.t_predict - 1, 0)
    wanted = np.floor(settings.rho * sizes + 1e-9)  # the last decimal of rho times a size is not to cost an item
    return RatingRecipe(
        settings.seed,
        settings.factors,
        federated,
        batch,
        settings.implicit,
        learning_rate=float(default_rate if settings.learning_rate is None else settings.learning_rate),
        decay=float(settings.decay),
        regulariser=np.float32(settings.regulariser),
        hybrid=settings.filling == "hybrid",
        predict_from=start,
        local_passes=settings.t_local,
        local_own=settings.local_training == "own",
        local_all=local_ratings == "all",
        after=settings.item_gradients == "after" and federated,
        rate_by_participation=client_rate == "participation" and federated and not batch,
        participants=participants,
        virtual=np.minimum(wanted, n_items - sizes).astype(np.int32),
        fixed=settings.sampling == "fixed",
        clients_per_round=len(participants) if batch else 1,
        rounds_per_epoch=1 if batch else len(participants),
    )


@dataclass(frozen=True, kw_only=True)
class PMF(FedRecSettings, FederatedMethod):
    """FedRec with probabilistic matrix factorisation: r = U V."""

    name = "pmf"
    records = Records(RatingState, RatingModel, ItemGradients, ItemSums, UserVector)
    sharing_policies = ("fixed-subset",)
    suggestions = ("filling", "rho", "sampling")
    needs_unseen_items = False

    filling: Literal["hybrid", "average", "none"] = "hybrid"
    """Suggested to clients: virtual ratings that are first averages, later predictions (hybrid), averages, or none."""
    rho: float = setting(1.0, 0)
    """Suggested to clients: virtual ratings for every rating that the user has given."""
    sampling: Literal["fresh", "fixed"] = "fixed"
    """Suggested to clients: items with a virtual rating are drawn once for a lifetime (fixed), or again in every round,
    so that what comes back every time is what was rated (fresh)."""
    learning_rate: float | None = setting(None, positive=True)
    """Learning rate.  [default: 1 / the highest rating, and half of that for svdpp]"""
    prior_count: float = setting(10.0, 0)
    """Items move as if this many more clients had reported a gradient of zero: those with few ratings move slowly."""
    first_prediction: Literal["mean", "zero"] = "mean"
    """What a new federation predicts: each client's own mean rating, or about zero, as published."""
    step: float | None = None
    """Smallest difference between two ratings: 1 for full stars, 0.5 for half ones, 0 for any number; as in the data
    if not given."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.step:
            check_range("step", self.step, 0, self.highest - self.lowest)
            steps = (self.highest - self.lowest) / self.step
            if abs(steps - round(steps)) > _CLOSE:
                raise SettingError(
                    f"step is {self.step:g}, which does not lead from {self.lowest:g} to {self.highest:g}; choose one "
                    "that does, or 0 for any number."
                )

    @property
    def scale(self) -> Scale:
        """What ratings there are."""
        return Scale(self.lowest, self.highest, self.step or 0.0)

    def resolve(self, data: DataSummary) -> Self:
        """The learning rate and the step of the scale follow from the ratings."""
        if data.ratings is not None:
            wrong = data.ratings[~((data.ratings >= self.lowest) & (data.ratings <= self.highest))]
            if len(wrong):
                raise DataError(
                    f"There are ratings outside the declared range from {self.lowest:g} to {self.highest:g}, such as "
                    f"{wrong[0]:g}; declare another range, or fix them."
                )
        default = 1.0 if data.ratings is None else step_of(data.ratings, self.lowest)
        # With W beside U a client's step counts twice.
        rate = (0.5 if self.implicit else 1.0) / max(abs(self.lowest), abs(self.highest))
        return replace(
            super().resolve(data),
            step=default if self.step is None else self.step,
            learning_rate=rate if self.learning_rate is None else float(self.learning_rate),
        )

    def secured(self, guarantee: Guarantee, clients: int) -> Self:
        """An upload has a row for every item, so there is nothing to hide among virtual ratings."""
        uploads, clip = (20, 8.0) if guarantee.has_noise else (50, 64.0)
        hidden: dict[str, Any] = {"filling": "none", "rho": 0.0}
        hidden |= {"uploads_per_client": self.uploads_per_client or uploads, "clip": self.clip or clip}
        return super(PMF, replace(self, **hidden)).secured(guarantee, clients)

    def initial_state(self) -> RatingState:
        """Vectors at random, around a mean that predicts every client's mean."""
        V = self._drawn(ITEM_FACTORS, self.n_items)
        if self.first_prediction == "mean":
            V[:, 0] += np.float32(math.sqrt((abs(self.lowest) + abs(self.highest)) / 2))
        zeros = wire.zeros(self.records.state, self)
        W = {"implicit_vectors": self._drawn(IMPLICIT_FACTORS, self.n_items)} if self.implicit else {}
        state: RatingState = replace(zeros, vectors=V, **W)
        return state

    def _drawn(self, purpose: int, rows: int, seed: int | None = None, first_row: int = 0) -> FloatMatrix:
        seed, span = self.seed if seed is None else seed, self.initial_range
        return uniform_rows(rows, self.factors, seed=seed, purpose=purpose, span=span, first_row=first_row)

    def broadcast(self, state: RatingState) -> RatingModel:
        """V, and W for SVD++; which items were reported, and the iteration, which sets the rate."""
        iteration = np.array([int(state.progress[0] + _ALMOST)], dtype=np.int32)
        W = {"implicit_vectors": state.implicit_vectors} if isinstance(state, ImplicitState) else {}
        kind: type[RatingModel] = self.records.sent
        return kind(vectors=state.vectors, reported=state.reported, iteration=iteration, **W)

    def client_update(self, client: Client, broadcast: RatingModel) -> ClientResult:
        """The user vector moves; the gradients of rated and sampled items are sent."""
        recipe = rating_recipe(self, np.array([len(client.items)]), self.n_items)._replace(seed=client.seed)
        if client.state is None:
            client = replace(client, state=UserVector(self._first_vector(client, broadcast)))
        result = compute_ratings(recipe, client, broadcast, int(recipe.virtual[0]))
        return ClientResult(result.update, UserVector(result.vector), client.items, result.sampled)

    def _first_vector(self, client: Client, broadcast: RatingModel) -> FloatVector:
        """The vector of a client's first round: solved from its ratings; drawn where a first model predicts zero."""
        if self.first_prediction == "zero" and not broadcast.iteration[0]:
            vector: FloatVector = self._drawn(USER_FACTORS, 1, client.seed, client.user)[0]
            return vector
        return self.fold_in(client, broadcast) - self._implicit_part(client.items, broadcast)

    def add(self, aggregate: ItemSums, update: ItemGradients) -> None:
        """Sums of gradients, and how many uploads had each item."""
        aggregate.vectors[update.items] += update.vectors
        aggregate.counts[update.items] += 1
        if isinstance(aggregate, ImplicitSums) and isinstance(update, ImplicitGradients):
            aggregate.implicit_vectors[update.implicit_items] += update.implicit_vectors
            aggregate.implicit_counts[update.implicit_items] += 1

    def server_update(self, state: RatingState, aggregate: ItemSums) -> RatingState:
        """Each item moves by the mean of its gradients, times the round's share of an iteration."""
        if not aggregate.count:
            return state
        clients = max(aggregate.enrolled, aggregate.count)
        uploads = max(0.0, 1 - aggregate.count / clients) * float(state.uploads[0]) + aggregate.count
        names = ("vectors", "counts", "reports")
        moved = self._moved(state, aggregate, clients, uploads, names)
        if self.implicit:
            moved |= self._moved(state, aggregate, clients, uploads, tuple(f"implicit_{name}" for name in names))
        reported = (state.reported > 0) | (self._counts(aggregate, "counts") > 0)
        progress = float(state.progress[0]) + aggregate.count / clients
        return replace(
            state,
            reported=reported.astype(np.int8),
            progress=np.array([progress]),
            uploads=np.array([uploads]),
            **moved,
        )

    def _moved(
        self, state: RatingState, aggregate: ItemSums, clients: int, uploads: float, names: tuple[str, ...]
    ) -> dict[str, Array]:
        """One table after the step, and how many uploads of about one iteration had each item."""
        vectors, counted, reports = names
        counts = self._counts(aggregate, counted)
        sums = np.where(counts[:, None] != 0, getattr(aggregate, vectors), 0.0)
        lately = max(0.0, 1 - aggregate.count / clients) * getattr(state, reports) + counts
        among = np.maximum(clients / uploads * lately, counts) + self.prior_count
        recipe = rating_recipe(self, np.ones(1, dtype=np.int64), self.n_items)
        iteration = int(state.progress[0] + _ALMOST)
        return {vectors: stepped(recipe, iteration, getattr(state, vectors), sums, among), reports: lately}

    @staticmethod
    def _counts(aggregate: ItemSums, name: str) -> RealVector:
        """Counts; zero where they do not stand out of the noise."""
        counts: RealVector = getattr(aggregate, name)
        return np.where(counts > STANDS_OUT * aggregate.noise, counts, 0.0)

    def fold_in(self, client: Client, broadcast: RatingModel) -> FloatVector:
        """What predicts the user's ratings best, in closed form."""
        return folded_in(broadcast.vectors[client.items], client.ratings, self._implicit_part(client.items, broadcast))

    def _implicit_part(self, items: IntVector, broadcast: RatingModel) -> FloatVector:
        W = broadcast.implicit
        return implicit_part(W[items] if len(W) else W, self.factors)

    def scores(self, broadcast: RatingModel, factors: Array) -> FloatMatrix:
        """Predicted ratings; -inf for items that no upload has had."""
        scores: FloatMatrix = np.where(broadcast.reported > 0, factors @ broadcast.vectors.T, -np.inf)
        return scores

    def check(self, broadcast: RatingModel, update: ItemGradients) -> None:
        """Without their regularisation, all rows of PMF are multiples of one vector: the user's."""
        if not len(update.items):
            raise BadMessage("An update must be that of some ratings; this one has no item.")
        if self.implicit:
            return
        rows = update.vectors.astype(np.float64) - self.regulariser * broadcast.vectors[update.items]
        lengths = np.linalg.norm(rows, axis=1)
        longest = int(np.argmax(lengths))
        if not lengths[longest]:
            return
        direction = rows[longest] / lengths[longest]
        residuals = np.linalg.norm(rows - np.outer(rows @ direction, direction), axis=1)
        if residuals.max() > SLACK * (lengths[longest] + np.abs(update.vectors).max()):
            raise BadMessage("The rows of an update must come from one user's vector; these do not.")

    def check_step(self, before: RatingModel, after: RatingModel) -> None:
        """No row may become longer than vectors of ratings can be.

        Vectors of users and items have about the same length, at most sqrt(highest) where predictions are on the scale.
        A row of several times that predicts several times the highest rating.
        """
        longest = LONGEST_ROW * math.sqrt(max(abs(self.lowest), abs(self.highest)))
        for table, earlier in ((after.vectors, before.vectors), (after.implicit, before.implicit)):
            lengths, limits = (np.linalg.norm(rows.astype(np.float64), axis=1) for rows in (table, earlier))
            wrong = ~(lengths <= np.maximum(longest, limits))  # so that what is no number is wrong too
            if wrong.any():
                raise BadMessage(
                    f"{np.count_nonzero(wrong)} item vectors are longer than {longest:.3g}, beyond the rating scale."
                )

    def grow(self, state: RatingState, n_items: int) -> RatingState:
        """New items start as the mean of the others."""
        extended: RatingState = wire.extended(state, n_items)
        extended.vectors[len(state.vectors) :] = state.vectors.mean(axis=0)
        return extended

    def exported(self, arrays: dict[str, Array]) -> tuple[dict[str, Any], dict[str, Array]]:
        """The model of a simulation; it knows no steps of a scale, and SVD++ there has one style."""
        settings: dict[str, Any] = {part.name: getattr(self, part.name) for part in fields(FedRecSettings)}
        iterations = {"iterations": max(1, int(arrays["iteration"][0]))}
        named = {"item_vectors": "vectors", "implicit_vectors": "implicit_vectors"}
        return settings | iterations, {name: arrays[own] for name, own in named.items() if own in arrays}


@dataclass(frozen=True, kw_only=True)
class SVDPlusPlus(PMF):
    """FedRec with SVD++: which items a user has rated counts too."""

    name = "svdpp"
    records = Records(ImplicitState, ImplicitModel, ImplicitGradients, ImplicitSums, UserVector)
    implicit = True


def step_of(ratings: FloatVector, lowest: float) -> float:
    """The largest usual step that these ratings keep to: 1, 0.5 or 0.1; 0 where they keep to none."""
    for step in (1.0, 0.5, 0.1):
        places = (ratings.astype(np.float64) - lowest) / step
        if np.all(np.abs(places - np.round(places)) < _CLOSE / step):
            return step
    return 0.0


def trained_state(method: PMF, tables: Mapping[str, FloatMatrix], iterations: int) -> RatingState:
    """The state of a model that was trained in a simulation: a federation goes on at the rate with which it ended."""
    zeros = wire.zeros(method.records.state, method)
    reported = np.ones(method.n_items, dtype=np.int8)
    state: RatingState = replace(zeros, reported=reported, progress=np.array([float(iterations)]), **tables)
    return state
