"""What learning ratings computes, counted, beside what the paper says it computes (FedRec, 2020, section 3.3).

The paper counts operations on numbers in an iteration in which everybody takes part once, with d factors, m items, n
users, |R| ratings, |I_u| of them the user's, and T_local passes of hybrid filling in its worst case:

    FedRec, batch         device   [T_local (1 + rho) + 2 + 3 rho] d |I_u| + (T_local + 1) d
                          server   1 + d m + d |R| (1 + rho)
    FedRec, stochastic    device   [T_local (1 + rho) + 3 + 4 rho] d |I_u| + T_local d
                          server   n + d |R| (1 + rho)
    FCF                   device   d^2 |I_u| + d^3 + m d
                          server   1 + d n m

Constants are left out there: a dot product and a step both go for d. Here a device's multiplications are counted by
handing the plain forms of its steps (protocol/) arrays that keep count, and the server's by the rows that come to it.
So what can be compared is how a figure grows and which of two methods' is larger, not the figure itself.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from federank.engines.ratings.federation import RatingFederation
from federank.models.squares import Objective, gram_matrix, pulls, solve_person
from federank.protocol.draws import words_wrap_around
from federank.protocol.ratings.computation import compute_ratings
from federank.protocol.ratings.messages import RatingBroadcast, RatingPrivate
from federank.protocol.ratings.recipes import RatingRecipe


class Operations(NamedTuple):
    """Operations of one device in an iteration, and of the server."""

    device: float
    server: float


class _Counter:
    """How many multiplications there have been."""

    made = 0


class _Counted(np.ndarray[Any, Any]):
    """An array that counts the multiplications it takes part in; whatever comes of it counts too."""

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **how: Any) -> Any:
        plain = [part.view(np.ndarray) if isinstance(part, _Counted) else part for part in inputs]
        if how.get("out"):
            how["out"] = tuple(part.view(np.ndarray) if isinstance(part, _Counted) else part for part in how["out"])
        answer = getattr(ufunc, method)(*plain, **how)
        if ufunc is np.multiply and method == "__call__":
            _Counter.made += int(np.size(answer))
        elif ufunc is np.matmul:
            _Counter.made += int(np.size(answer)) * int(np.shape(plain[0])[-1])
        return answer.view(_Counted) if isinstance(answer, np.ndarray) else answer


def rating_operations(federation: RatingFederation, iteration: int) -> Operations:
    """What an iteration takes: the mean over the devices, each once, and the server's part."""
    recipe = federation.recipe
    shared = federation.shared
    shared.round_number = iteration * recipe.rounds_per_epoch
    broadcast = shared.distribute(recipe)
    counted = broadcast._replace(vectors=broadcast.vectors.view(_Counted))
    people = [federation.device(int(user)) for user in recipe.participants]
    with words_wrap_around():
        made = [_of_device(recipe, person, counted) for person in people]
    rows = sum(len(person.items) + person.virtual for person in people)
    # In batch style the server steps every item once, by a mean; else each row that comes is a step.
    steps = len(broadcast.vectors) if recipe.batch else 0
    return Operations(float(np.mean(made)), float(recipe.factors * (rows + steps)))


def _of_device(recipe: RatingRecipe, person: RatingPrivate, broadcast: RatingBroadcast) -> int:
    _Counter.made = 0
    person.vector = person.vector.view(_Counted)
    compute_ratings(recipe, person, broadcast)
    return _Counter.made


def fcf_operations(item_vectors: np.ndarray[Any, Any], profiles: list[np.ndarray[Any, Any]]) -> Operations:
    """The same of FCF on these histories: the solve is d^3; Y'Y, which the paper leaves out, is not counted."""
    vectors = item_vectors.view(_Counted)
    m, d = vectors.shape
    gram = gram_matrix(item_vectors, np.ones(m, dtype=np.float32))
    objective, made = Objective(np.float32(2), np.float32(1)), []
    for profile in profiles:
        _Counter.made = 0
        x = solve_person(objective, 1.0, vectors, np.ones(m, dtype=np.float32), gram, profile)
        pulls(objective, vectors, x, profile)
        made.append(_Counter.made + d**3)
    return Operations(float(np.mean(made)), float(d * m * len(profiles)))


def fedrec_of_paper(
    *, batch: bool, size: float, ratings: int, users: int, items: int, factors: int, rho: float, local_passes: int
) -> Operations:
    """The paper's formulas, for a device with so many rated items."""
    passes, d = local_passes, factors
    if batch:
        device = (passes * (1 + rho) + 2 + 3 * rho) * d * size + (passes + 1) * d
        return Operations(device, 1 + d * items + d * ratings * (1 + rho))
    device = (passes * (1 + rho) + 3 + 4 * rho) * d * size + passes * d
    return Operations(device, users + d * ratings * (1 + rho))


def fcf_of_paper(*, size: float, users: int, items: int, factors: int) -> Operations:
    """The paper's formulas for FCF."""
    d = factors
    return Operations(d**2 * size + d**3 + items * d, 1 + d * users * items)
