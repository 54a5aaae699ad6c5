"""Distribution: the server asks one cohort, and tells it the item vectors.

Round t asks cohort t mod cohorts; of its people, those who are there and have a message left. Who is asked follows from
the seed and the round alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from federank.arrays import FloatMatrix, FloatVector, IntVector
from federank.protocol.draws import DROPOUT, ONLINE, happens, words, words_wrap_around
from federank.protocol.squares.messages import SquaresBroadcast, restored, rounded
from federank.protocol.squares.recipes import SquaresRecipe


def choose_cohort(recipe: SquaresRecipe, round_number: int, spent: IntVector) -> IntVector:
    """The people who take part in this round, ascending."""
    asked = recipe.participants[recipe.cohort[recipe.participants] == round_number % recipe.cohorts]
    able: IntVector = asked[spent[asked] < recipe.messages[asked]]
    if len(recipe.trace):
        there = recipe.trace[round_number % len(recipe.trace), able]
    elif recipe.online < 1.0:
        there = happens(words_of_people(recipe.seed, able, ONLINE, round_number), recipe.online)
    else:
        return able
    present: IntVector = able[there]
    return present


def attendance(recipe: SquaresRecipe, n_users: int) -> NDArray[np.bool_]:
    """Rounds x users: who takes part when, over a whole run; nobody more often than they allow."""
    there: NDArray[np.bool_] = np.zeros((recipe.rounds, n_users), dtype=np.bool_)
    spent = np.zeros(n_users, dtype=np.int32)
    for number in range(recipe.rounds):
        asked = choose_cohort(recipe, number, spent)
        there[number, asked] = True
        spent[asked] += 1
    return there


def who_answers(recipe: SquaresRecipe, round_number: int, people: IntVector) -> IntVector:
    """Those of the asked whose message arrives."""
    if recipe.dropout <= 0:
        return people
    answering: IntVector = people[~happens(words_of_people(recipe.seed, people, DROPOUT, round_number), recipe.dropout)]
    return answering


def words_of_people(seed: int, people: IntVector, purpose: int, round_number: int) -> Any:
    """One random word for each of these people."""
    with words_wrap_around():
        return words(np.uint32(seed), people.astype(np.uint32), purpose, np.uint32(round_number), np.uint32(0))[0]


def published(recipe: SquaresRecipe, vectors: FloatMatrix) -> FloatMatrix:
    """The item vectors as devices read them: rounded where Broadcasts carry bytes."""
    return restored(*rounded(vectors)) if recipe.as_codes else vectors.copy()


def make_squares_broadcast(
    recipe: SquaresRecipe,
    round_number: int,
    regulariser: float,
    vectors: FloatMatrix,
    weights: FloatVector,
    items: IntVector | None = None,
) -> SquaresBroadcast:
    """The item vectors, or these rows of them, as a copy that no later round can change."""
    told = np.arange(len(vectors), dtype=np.int32) if items is None else items
    rows = vectors[told]
    head = round_number, round_number, regulariser, told, weights[told]
    if recipe.as_codes:
        codes, scales = rounded(rows)
        return SquaresBroadcast(*head, codes, scales, rows[:0])
    no_codes: NDArray[np.int8] = np.zeros((len(rows), 0), dtype=np.int8)
    return SquaresBroadcast(*head, no_codes, np.zeros(0, dtype=np.float32), rows)
