"""PMF and SVD++ as recommenders: learning ratings by the rounds of a federation, and what the rounds cost.

model = PMF(filling="hybrid", rho=3).fit(split.train)
model.predict(user=42, item=50)          a rating, within the declared range
"""

from __future__ import annotations

from dataclasses import fields, replace
from functools import cache
from typing import Any, ClassVar

import numpy as np

from federank._numerics.arrays import FloatMatrix, FloatVector, IntVector, LongVector, RealVector
from federank._numerics.compiling import compiled
from federank.data.interactions import Interactions
from federank.errors import ModelError
from federank.federation import wire
from federank.federation.method import Client, UserVector
from federank.methods.fedrec import method as federated
from federank.methods.fedrec.kernels import choose_one
from federank.methods.fedrec.reference import (
    ImplicitGradients,
    RatingRecipe,
    RatingState,
    compute_ratings,
    folded_in,
    implicit_part,
    normaliser,
)
from federank.methods.fedrec.simulation import PMFSettings, RatingFederation, SVDPlusPlusSettings
from federank.methods.predicting import PredictsRatings, refuse_bad_ratings
from federank.methods.recommender import Arrays, LearnsInRounds, made_from
from federank.simulation.complexity import Cost, Counted, cost_figures, multiplications
from federank.simulation.federated import traffic
from federank.simulation.options import TrainingOptions


class PMF(PredictsRatings, LearnsInRounds):
    """Probabilistic matrix factorisation (Mnih and Salakhutdinov, 2007; Lin et al., 2020); see `PMFSettings`."""

    name = "pmf"
    audit = "federank.methods.fedrec.audit"

    learns_from = "ratings"
    tables: ClassVar = {"item_vectors": 2, "user_vectors": 2}
    method_type: ClassVar[type[federated.PMF]] = federated.PMF
    """The method of real clients that goes on from this model."""
    settings_type: ClassVar[type[PMFSettings]] = PMFSettings
    settings: PMFSettings
    item_vectors: FloatMatrix
    user_vectors: FloatMatrix

    @made_from(PMFSettings)
    def __init__(self) -> None: ...

    def _learn(self, train: Interactions, training_options: TrainingOptions) -> None:
        refuse_bad_ratings(train, self.settings)
        federation = RatingFederation.established(self.settings, train)
        self._play(federation, self.settings.iterations, training_options)
        self.report["ratings"] = round(federation.steps_per_round * federation.round_number)

    @property
    def method(self) -> federated.PMF:
        """The method of real clients, with the settings of this run."""
        own = {part.name: getattr(self.settings, part.name) for part in fields(federated.FedRecSettings)}
        return self.method_type(**own, n_items=self.training.n_items)

    @property
    def state(self) -> RatingState:
        """What was learnt, as the server of a federation has it: it goes on at the rate with which the run ended."""
        return federated.trained_state(self.method, self._tables(), self.settings.iterations)

    def _tables(self) -> dict[str, FloatMatrix]:
        return {"vectors": np.ascontiguousarray(self.item_vectors)}

    def communication(self) -> dict[str, Any]:
        """What the run has sent, in rows and bytes, beside the paper's formula; nothing without a federation."""
        if not self.settings.federated:
            return {}
        data = self._fitted()
        sizes = data.profiles.sizes
        recipe = self.settings.recipe(sizes, data.n_items)
        return count_rating_communication(recipe, sizes, data.n_items, self.report["rounds"], self.settings.rho)

    def complexity(self) -> dict[str, float]:
        """What an iteration costs a client and the server, counted, beside the paper's formulas; SVD++ has none."""
        if not self.settings.federated:
            return {}
        data, settings = self._fitted(), self.settings
        counted = rating_cost(RatingFederation.established(settings, data))
        users = int(np.count_nonzero(data.profiles.sizes))
        formula = fedrec_of_paper(settings, ratings=len(data), users=users, items=data.n_items)
        passes = {"local_passes": passes_of_paper(settings)}
        return cost_figures(counted, None if settings.implicit else formula) | passes

    def _factors_of(self, users: IntVector) -> FloatMatrix:
        """What V is multiplied with to predict these users' ratings of items they have not rated."""
        return self.user_vectors[users]

    def rated(self, profile: IntVector, ratings: FloatVector) -> FloatVector:
        """The vector of a new user with these ratings, by the fold-in of a client."""
        implicit = implicit_part(self._implicit_rows(profile), self.item_vectors.shape[1])
        return folded_in(self.item_vectors[profile], ratings, implicit)

    def _implicit_rows(self, profile: IntVector) -> FloatMatrix:
        """The rows of W of these items; SVD++ has them."""
        return self.item_vectors[profile[:0]]

    def scores_of(self, vector: FloatVector) -> FloatVector:
        """The predicted ratings of the full catalogue for a user with these factors, within the declared range."""
        predicted = np.clip(self.item_vectors @ vector, self.settings.lowest, self.settings.highest)
        scores: FloatVector = predicted.astype(np.float32)
        return scores

    def _predict_pairs(self, users: IntVector, items: IntVector) -> FloatVector:
        """Unclipped predictions of pairs, by number."""
        distinct, positions = np.unique(users, return_inverse=True)
        values: FloatVector = np.einsum("kf,kf->k", self._factors_of(distinct)[positions], self.item_vectors[items])
        return values

    def _score_users(self, users: IntVector) -> FloatMatrix:
        scores: FloatMatrix = self._factors_of(users) @ self.item_vectors.T
        return scores

    def _restore(self, shared: Arrays, private: Arrays) -> None:
        if self.training.ratings is None:
            raise ModelError("The model was learnt from ratings, but the training data in its folder have none.")
        super()._restore(shared, private)


class SVDPlusPlus(PMF):
    """SVD++ (Koren, 2008; Lin et al., 2020) without biases; see `SVDPlusPlusSettings`."""

    name = "svdpp"
    method_type = federated.SVDPlusPlus
    settings_type = SVDPlusPlusSettings
    tables: ClassVar = {"item_vectors": 2, "implicit_vectors": 2, "user_vectors": 2}
    implicit_vectors: FloatMatrix
    """W: what having rated an item says about a user."""

    @made_from(SVDPlusPlusSettings)
    def __init__(self) -> None: ...

    def _factors_of(self, users: IntVector) -> FloatMatrix:
        rated = self.training.matrix()[users]
        norms = 1 / np.sqrt(np.maximum(rated.sum(axis=1), 1))
        factors: FloatMatrix = self.user_vectors[users] + (norms[:, None] * (rated @ self.implicit_vectors)).astype(
            "f4"
        )
        return factors

    def _tables(self) -> dict[str, FloatMatrix]:
        return super()._tables() | {"implicit_vectors": np.ascontiguousarray(self.implicit_vectors)}

    def _implicit_rows(self, profile: IntVector) -> FloatMatrix:
        return self.implicit_vectors[profile]

    def _predict_pairs(self, users: IntVector, items: IntVector) -> FloatVector:
        """An item that the user has rated does not speak for itself (Eq. 2)."""
        values = super()._predict_pairs(users, items)
        known, n_items = self.training, self.training.n_items
        # Rows are sorted by user and item, so their keys ascend.
        keys, wanted = known.users.astype(np.int64) * n_items + known.items, users.astype(np.int64) * n_items + items
        rated = keys[np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)] == wanted
        for k in np.flatnonzero(rated):
            user, item, profile = users[k], items[k], known.profiles.of(users[k])
            others = profile[profile != item]
            factors = self.user_vectors[user] + normaliser(len(others)) * self.implicit_vectors[others].sum(axis=0)
            values[k] = factors @ self.item_vectors[item]
        return values


# What learning ratings costs, beside what the paper says that it costs (FedRec, 2020, section 3.3).
#
# An upload has a row for every rated and every sampled item, so its size depends on the user alone; how often each user
# is drawn depends on the seed alone. The communication of a run is counted from the two. The paper counts 4 bytes for
# each number of an iteration in which every user takes part once, with d factors, m items, n users and |R| ratings:
#
#     4 d (|R| (1 + rho) + m n)
#
# It has no formula for SVD++, which also sends W down, and the rated items' rows of W up. What crosses the wire is more
# than the formula: item numbers, and the frame of a message. And it is less where a user has rated so much that fewer
# than rho |I_u| items are left to sample.


@cache
def rating_update_bytes(rows: int, implicit_rows: int, factors: int) -> int:
    """Bytes of an upload with this many rows."""
    method = federated.SVDPlusPlus(n_items=2, factors=factors)
    return wire.size(wire.zeros(ImplicitGradients, method, rows=rows, implicit_rows=implicit_rows))


@cache
def rating_broadcast_bytes(n_items: int, factors: int, *, implicit: bool) -> int:
    """Bytes of the full model."""
    names = ("vectors", "implicit_vectors") if implicit else ("vectors",)
    table = np.zeros((n_items, factors), np.float32)
    return len(wire.encode_parts(dict.fromkeys(names, table), {"round": 0}))


def bytes_of_paper(n_ratings: int, rho: float, n_items: int, n_users: int, factors: int) -> float:
    """The paper's bytes of an iteration, up and down together."""
    return 4 * factors * (n_ratings * (1 + rho) + n_items * n_users)


def count_rating_communication(
    recipe: RatingRecipe, sizes: LongVector, n_items: int, rounds: int, rho: float
) -> dict[str, Any]:
    """The traffic of the first rounds of a run: totals, means per round, and the paper's measure beside them."""
    times = np.zeros(len(sizes), dtype=np.int64)
    if recipe.batch:
        times[recipe.participants] = rounds
    else:
        _count_choices(recipe.seed, recipe.participants, rounds, times)
    rows = sizes + recipe.virtual
    implicit_rows = sizes if recipe.implicit else np.zeros_like(sizes)
    per_update = np.array(
        [rating_update_bytes(int(a), int(b), recipe.factors) for a, b in zip(rows, implicit_rows, strict=True)]
    )
    talks = int(times.sum())
    rows_down = talks * n_items * (2 if recipe.implicit else 1)
    bytes_down = talks * rating_broadcast_bytes(n_items, recipe.factors, implicit=recipe.implicit)
    return {
        "rounds": rounds,
        "downloads": talks,
        "uploads": talks,
        "up": traffic(int((times * (rows + implicit_rows)).sum()), int((times * per_update).sum()), rounds),
        "down_dense": traffic(rows_down, bytes_down, rounds),
        "papers": {
            "bytes_per_iteration": bytes_of_paper(int(sizes.sum()), rho, n_items, len(sizes), recipe.factors),
            "counted_per_iteration": (bytes_down + int((times * per_update).sum())) / rounds * recipe.rounds_per_epoch,
        },
    }


@compiled
def _count_choices(seed: int, participants: IntVector, rounds: int, times: LongVector) -> None:
    """How often each user is drawn in the first rounds."""
    for r in range(rounds):
        times[participants[choose_one(seed, r, participants)]] += 1


def rating_cost(federation: RatingFederation) -> Cost:
    """What an iteration costs once virtual ratings are predicted, which is the most that one does."""
    recipe, n_items = federation.recipe, len(federation.item_vectors)
    sizes, virtual = federation.profiles.sizes[recipe.participants], recipe.virtual[recipe.participants]
    implicit = sizes if recipe.implicit else np.zeros_like(sizes)
    messages = [
        rating_update_bytes(int(rows), int(beside), recipe.factors)
        for rows, beside in zip(sizes + virtual, implicit, strict=True)
    ]
    rows = sizes + virtual + implicit
    # In batch style the server steps every item once, by a mean; else each row that comes is a step.
    steps = n_items if recipe.batch else 0
    return Cost(
        vectors_up=float(np.mean(rows)),
        vectors_down=n_items * (2 if recipe.implicit else 1),
        bytes_up=float(np.mean(messages)),
        bytes_up_written_out=float(np.mean(messages)),
        bytes_down=rating_broadcast_bytes(n_items, recipe.factors, implicit=recipe.implicit),
        device_operations=None if recipe.implicit else float(np.mean(of_clients(federation, sizes, virtual))),
        server_operations=float(recipe.factors * (int(rows.sum()) + steps)),
    )


def of_clients(federation: RatingFederation, sizes: LongVector, virtual: IntVector) -> RealVector:
    """The multiplications of clients with this many ratings and virtual ratings each, by those of small clients."""

    def counted(own: int, sampled: int) -> int:
        own_ratings = np.arange(own, dtype=np.int32), np.ones(own, dtype=np.float32)
        vector = UserVector(federation.user_vectors[0, : federation.recipe.factors])
        return of_client(federation, Client(federation.recipe.seed, 0, 0, *own_ratings, state=vector), sampled)

    def linear(sampled: int) -> RealVector:
        """Beginning with one rating, and with this many virtual ones."""
        first = counted(1, sampled)
        own, other = counted(2, sampled) - first, counted(1, sampled + 1) - first
        answer: RealVector = first + own * (sizes - 1.0) + other * (virtual - float(sampled))
        return answer

    # Who has no virtual ratings trains nothing locally, so they have a line of their own.
    return np.where(virtual > 0, linear(1), linear(0))


def of_client(federation: RatingFederation, client: Client, virtual: int) -> int:
    """The multiplications of one client in a round, once virtual ratings are predicted."""
    recipe, first, broadcast = federation.recipe, federation.recipe.predict_from, federation.broadcast
    counted, iteration = broadcast.vectors.view(Counted), np.array([first], dtype=np.int32)
    broadcast = replace(broadcast, vectors=counted, iteration=iteration)
    vector = UserVector(client.state.vector.copy().view(Counted))
    client = replace(client, round=first * recipe.rounds_per_epoch, state=vector)
    return multiplications(lambda: compute_ratings(recipe, client, broadcast, virtual))


def fedrec_of_paper(settings: PMFSettings, *, ratings: int, users: int, items: int) -> Cost:
    """The paper's formulas, for clients that have this many ratings in the mean."""
    size, d, rho, batch = ratings / users, settings.factors, settings.rho, settings.style == "batch"
    passes = passes_of_paper(settings)
    device = (passes * (1 + rho) + (2 + 3 * rho if batch else 3 + 4 * rho)) * d * size + passes * d
    server = d * ratings * (1 + rho)
    return Cost(
        vectors_up=size * (1 + rho),
        vectors_down=items,
        bytes_up=4 * d * size * (1 + rho),
        bytes_up_written_out=4 * d * size * (1 + rho),
        bytes_down=4 * d * items,
        device_operations=device + d if batch else device,
        server_operations=server + (1 + d * items if batch else users),
    )


def passes_of_paper(settings: PMFSettings) -> int:
    """T_local, as far as there are virtual ratings to predict."""
    return settings.t_local if settings.filling == "hybrid" and settings.rho > 0 else 0
