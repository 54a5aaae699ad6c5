"""Two Updates of a device that learns ratings, from two rounds in which it took part one after the other.

The run is played again by the compiled engine up to each of these rounds; there the device answers the Broadcast as the
protocol tells it (protocol/ratings/computation.py), on a copy of its state, so nothing of the run changes. Early rounds
are taken, while vectors still move: late in a run two answers are nearly the same and tell no more than one.
"""

from __future__ import annotations

from federank.arrays import IntVector
from federank.audit.ratings.view import Answer
from federank.engines.ratings import compiled
from federank.engines.ratings.federation import RatingFederation
from federank.protocol.draws import words_wrap_around
from federank.protocol.ratings.computation import compute_ratings
from federank.protocol.ratings.distribution import choose_raters
from federank.protocol.ratings.transmission import share_ratings


def two_answers(
    established: RatingFederation, people: IntVector, first_iteration: int, last_round: int
) -> dict[int, list[Answer]]:
    """The first two Updates of each of these people from an iteration on; of a federation before its first round."""
    recipe, wanted = established.recipe, {int(person) for person in people}
    answers: dict[int, list[Answer]] = {person: [] for person in wanted}
    for number in range(first_iteration * recipe.rounds_per_epoch, last_round):
        with words_wrap_around():
            chosen = [int(user) for user in choose_raters(recipe, number) if int(user) in wanted]
        if chosen:
            compiled.play(established, number - established.round_number)
        for user in chosen:
            answers[user].append(_answer(established, user))
            if len(answers[user]) == 2:
                wanted.discard(user)
        if not wanted:
            break
    return answers


def _answer(federation: RatingFederation, user: int) -> Answer:
    recipe, device = federation.recipe, federation.device(user)
    broadcast = federation.shared.distribute(recipe)
    with words_wrap_around():
        return Answer(share_ratings(compute_ratings(recipe, device, broadcast)), broadcast.vectors)
