"""What an iteration of learning ratings costs, counted, beside the paper's formulas (FedRec, 2020, section 3.3).

The paper counts operations on numbers in an iteration in which everybody takes part once, with d factors, m items, n
users, |R| ratings, |I_u| of them the user's, and T_local passes of hybrid filling in its worst case:

    batch         device   [T_local (1 + rho) + 2 + 3 rho] d |I_u| + (T_local + 1) d
                  server   1 + d m + d |R| (1 + rho)
    stochastic    device   [T_local (1 + rho) + 3 + 4 rho] d |I_u| + T_local d
                  server   n + d |R| (1 + rho)
    either        bytes of a device   4 d |I_u| (1 + rho) up, 4 d m down

Constants are left out there: a dot product and a step both go for d. Here a device's multiplications are counted by
handing the plain form of its round (protocol/) arrays that keep count, and the server's by the rows that come to it.

What a device multiplies is linear in its ratings and in its virtual ratings. So devices with one or two of each are
counted, and what larger ones take follows; the tests count whole populations device by device and find the same.

The formulas are for PMF. For SVD++ the paper has none, and a device's multiplications are not counted: the plain form
does the long way what the compiled engine does by a short cut (models/svdpp.py).
"""

from __future__ import annotations

import numpy as np

from federank.arrays import IntVector, LongVector, RealVector
from federank.engines.complexity import Cost, Counted, multiplications
from federank.engines.ratings.federation import RatingFederation
from federank.protocol.draws import words_wrap_around
from federank.protocol.ratings.computation import compute_ratings
from federank.protocol.ratings.messages import RatingPrivate, rating_broadcast_bytes, rating_update_bytes
from federank.protocol.ratings.recipes import RatingSettings


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
        device_operations=None if recipe.implicit else float(np.mean(of_devices(federation, sizes, virtual))),
        server_operations=float(recipe.factors * (int(rows.sum()) + steps)),
    )


def of_devices(federation: RatingFederation, sizes: LongVector, virtual: IntVector) -> RealVector:
    """The multiplications of devices with so many ratings and virtual ratings each, by those of small devices."""

    def counted(own: int, sampled: int) -> int:
        items = np.arange(own, dtype=np.int32)
        vector = federation.user_vectors[0, : federation.recipe.factors].copy()
        ratings = np.ones(own, dtype=np.float32)
        return of_device(federation, RatingPrivate(0, vector, items, ratings, np.float32(1), sampled, 0))

    def linear(sampled: int) -> RealVector:
        """Beginning with one rating, and with so many virtual ones."""
        first = counted(1, sampled)
        own, other = counted(2, sampled) - first, counted(1, sampled + 1) - first
        answer: RealVector = first + own * (sizes - 1.0) + other * (virtual - float(sampled))
        return answer

    # Who has no virtual ratings trains nothing locally, so they have a line of their own.
    return np.where(virtual > 0, linear(1), linear(0))


def of_device(federation: RatingFederation, person: RatingPrivate) -> int:
    """The multiplications of one device in a round, once virtual ratings are predicted."""
    recipe, shared = federation.recipe, federation.shared
    shared.round_number = recipe.predict_from * recipe.rounds_per_epoch
    told = shared.distribute(recipe)
    person.vector = person.vector.view(Counted)
    with words_wrap_around():
        return multiplications(
            lambda: compute_ratings(recipe, person, told._replace(vectors=told.vectors.view(Counted)))
        )


def fedrec_of_paper(settings: RatingSettings, *, ratings: int, users: int, items: int) -> Cost:
    """The paper's formulas, for devices that have so many ratings in the mean."""
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
