"""The server that reads messages: what each one of the people it follows has sent, round by round.

The run is played once more by the engine itself; when a round's messages are in, those of the followed are worked out
from what their devices take part with, as the devices do it, and read. Kept are what was ever read of an item, what the
last message alone says (a server that links nothing has no more), and the catalogue scored with that message's vector.
"""

from __future__ import annotations

import numpy as np

from federank.arrays import FloatMatrix, IntVector
from federank.audit.judging import in_blocks
from federank.audit.squares.attacks import read_message
from federank.audit.squares.notes import Notes
from federank.audit.squares.view import WITH, WITHOUT
from federank.data.interactions import Profiles
from federank.engines.squares.compiled import vectors_at_home
from federank.models.squares import Objective
from federank.protocol.squares.distribution import published


class MessageReader(Notes):
    """Reads the messages of the people that are followed, round by round."""

    def watch(self, answering: IntVector) -> None:
        """Read the messages of a round before it is folded: the model is still as its devices were told it."""
        federation = self._federation
        recipe, told = federation.recipe, published(federation.recipe, federation.item_vectors)
        rows = np.flatnonzero(np.isin(self.people, answering)).astype(np.int32)
        for some in in_blocks(rows, recipe.n_items):
            profiles = profiles_of(federation.outward, self.people[some])
            vectors = vectors_at_home(recipe, told, federation.weights, float(federation.regulariser[0]), profiles)
            scores = vectors @ told.T
            strengths = strengths_of(recipe.objective, scores, profiles)
            # From here on only what was sent is used: strengths, vectors, and the public model.
            read = read_message(recipe.objective, strengths, scores)
            self.seen[some] = np.where(read, WITH, np.maximum(self.seen[some], WITHOUT))
            self.seen_last[some] = np.where(read, WITH, WITHOUT)
            self.tastes[some] = scores


def strengths_of(objective: Objective, scores: FloatMatrix, profiles: Profiles) -> FloatMatrix:
    """What these people's messages say of every item, from its score and whether it is in the profile."""
    strengths: FloatMatrix = -objective.unobserved * scores
    for row in range(len(scores)):
        own = profiles.of(row)
        strengths[row, own] = objective.liked * (1 - scores[row, own])
    return strengths


def profiles_of(profiles: Profiles, people: IntVector) -> Profiles:
    """The profiles of these people alone, in their order."""
    parts = [profiles.of(person) for person in people]
    starts = np.concatenate(([0], np.cumsum([len(part) for part in parts]))).astype(np.int64)
    return Profiles(starts, np.concatenate(parts) if parts else np.zeros(0, dtype=np.int32))
