"""Distribution, when ratings are learnt: who takes part, and what they are sent.

In batch style everyone takes part (FedRec, 2020, Algorithm 1); in stochastic style one user, drawn uniformly and with
replacement over rounds (Algorithm 4).
"""

from __future__ import annotations

from typing import Any

from federank.arrays import FloatMatrix, IntVector
from federank.models.rows import inlined
from federank.protocol.draws import SELECT, SERVER, below, words
from federank.protocol.ratings.messages import RatingBroadcast
from federank.protocol.ratings.recipes import RatingRecipe


@inlined
def choose_one(seed: Any, round_number: Any, participants: Any) -> Any:
    """The position, among the participants, of the one client of a stochastic round."""
    word, _, _, _ = words(seed, SERVER, SELECT, round_number, 0)
    return below(word, len(participants))


def choose_raters(recipe: RatingRecipe, round_number: int) -> IntVector:
    """The devices that take part in this round."""
    if recipe.batch:
        return recipe.participants
    position = choose_one(recipe.seed, round_number, recipe.participants)
    return recipe.participants[position : position + 1]


def make_rating_broadcast(round_number: int, vectors: FloatMatrix, implicit_vectors: FloatMatrix) -> RatingBroadcast:
    """The whole shared model, as a copy that no later round can change."""
    return RatingBroadcast(round_number, vectors.copy(), implicit_vectors.copy())
