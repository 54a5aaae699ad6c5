"""What learning ratings sends, beside what the paper says it sends (FedRec, 2020, section 3.3).

An upload has a row for every rated and every sampled item, so its size depends on the user alone; how often each
user is drawn depends on the seed alone. A run's traffic is counted from the two. The paper counts 4 bytes for each
number of an iteration in which every user takes part once, with d factors, m items, n users and |R| ratings:

    4 d (|R| (1 + rho) + m n)

It has no formula for SVD++, which also sends W down, and the rated items' rows of W up. What really crosses the wire
is more than the formula: item numbers, and the frame of a message. And it is less where a user has rated so much that
fewer than rho |I_u| items are left to sample.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from federank._numerics.arrays import IntVector, LongVector, RealVector
from federank._numerics.compiling import compiled
from federank.federation.rng import words_wrap_around
from federank.federation.wire import Array, encode_parts
from federank.methods.fedrec.kernels import choose_one
from federank.methods.fedrec.reference import RatingPrivate, compute_ratings
from federank.methods.fedrec.settings import RatingRecipe, RatingSettings
from federank.methods.fedrec.simulation import RatingFederation
from federank.simulation.complexity import Cost, Counted, multiplications
from federank.simulation.federated import traffic


@cache
def rating_update_bytes(rows: int, implicit_rows: int, factors: int) -> int:
    """How many bytes an upload of this many rows takes on the wire."""
    return len(encode_parts(_rows("", rows, factors) | _rows("implicit_", implicit_rows, factors)))


def _rows(name: str, rows: int, factors: int) -> dict[str, Array]:
    tables = {f"{name}items": np.zeros(rows, np.int32), f"{name}vectors": np.zeros((rows, factors), np.float32)}
    return tables if rows else {}


@cache
def rating_broadcast_bytes(n_items: int, factors: int, *, implicit: bool) -> int:
    """How many bytes the full model takes on the wire."""
    names = ("vectors", "implicit_vectors") if implicit else ("vectors",)
    table = np.zeros((n_items, factors), np.float32)
    return len(encode_parts(dict.fromkeys(names, table), {"round": 0}))


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


# What an iteration of learning ratings costs, counted, beside the paper's formulas (FedRec, 2020, section 3.3).


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
        items = np.arange(own, dtype=np.int32)
        vector = federation.user_vectors[0, : federation.recipe.factors].copy()
        ratings = np.ones(own, dtype=np.float32)
        return of_client(federation, RatingPrivate(0, vector, items, ratings, np.float32(1), sampled, 0))

    def linear(sampled: int) -> RealVector:
        """Beginning with one rating, and with this many virtual ones."""
        first = counted(1, sampled)
        own, other = counted(2, sampled) - first, counted(1, sampled + 1) - first
        answer: RealVector = first + own * (sizes - 1.0) + other * (virtual - float(sampled))
        return answer

    # Who has no virtual ratings trains nothing locally, so they have a line of their own.
    return np.where(virtual > 0, linear(1), linear(0))


def of_client(federation: RatingFederation, client: RatingPrivate) -> int:
    """The multiplications of one client in a round, once virtual ratings are predicted."""
    recipe, first = federation.recipe, federation.recipe.predict_from
    client.vector = client.vector.view(Counted)
    broadcast = federation.broadcast
    broadcast = broadcast._replace(
        round_number=first * recipe.rounds_per_epoch, iteration=first, vectors=broadcast.vectors.view(Counted)
    )
    with words_wrap_around():
        return multiplications(lambda: compute_ratings(recipe, client, broadcast))


def fedrec_of_paper(settings: RatingSettings, *, ratings: int, users: int, items: int) -> Cost:
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


def passes_of_paper(settings: RatingSettings) -> int:
    """T_local, as far as there are virtual ratings to predict."""
    return settings.t_local if settings.filling == "hybrid" and settings.rho > 0 else 0
