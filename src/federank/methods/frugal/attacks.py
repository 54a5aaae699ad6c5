"""Attacks on few messages: which items someone has, and which of those that they held back.

popularity   the same guess for everyone, from what the sums of all messages say; what others gain is counted from it
reading      a message is w_i = c_i (p_i - x . y_i) for every item, and tells x; y is public. So p comes back exactly:
             everything that the message was made from, after one message
vector       the message's own vector scores the full catalogue as the device would; what was held back is of the
             same taste
neighbours   what was read of everyone is a data set like any other: those with alike items have alike
fused        all of these, with what is known of the person's policy
membership   sums: items are counted more often in the rounds of people who have them (sums.py)
sum_vector   sums: the same with the scores that the vectors of a sum give together
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from federank._numerics.arrays import FloatMatrix, FloatVector, IntVector, LongVector, RealVector
from federank.audit.observer import KnownPolicies
from federank.audit.scoring import BASELINE, Attack, Guess, claim, claim_typical, standardised
from federank.methods.frugal.objective import Objective
from federank.methods.frugal.records import SummedMessages
from federank.methods.frugal.simulation import FrugalFederation

# What a honest-but-curious server of few messages knows about some people: one row per person.


UNSEEN, WITHOUT, WITH = 0, 1, 2
"""What a message says of an item: nothing, that it was not in what the message was made from, that it was."""


class MessagesView(NamedTuple):
    """What the server knows that reads single messages."""

    seen: NDArray[np.uint8]  # people x items: UNSEEN, WITHOUT or WITH
    tastes: FloatMatrix  # people x items: the catalogue scored with the vector of the person's last message
    neighbours: FloatMatrix  # people x items: what those have whose messages were made from alike items
    popularity: FloatVector  # items: what the sums of all messages say of everyone
    typical_size: int  # of a history
    policies: KnownPolicies


class SumsView(NamedTuple):
    """What the server knows that has only sums of rounds, and who was in each."""

    counts: FloatMatrix  # people x items: how much of the items' counts in sums goes back to this person
    tastes: FloatMatrix  # people x items: the same of the scores that the vectors of sums give
    popularity: FloatVector
    typical_size: int


AnyFrugalView = MessagesView | SumsView


_INFORMATIVE = 0.01
"""Below this difference of what is sent of own items and of others, what is read says little of how many there are."""
_NEVER_SURE = 1e-6
"""Policies are known, but not whether a person keeps to the one they name."""


def read_message(objective: Objective, strengths: FloatMatrix, scores: FloatMatrix) -> NDArray[np.bool_]:
    """Which items messages were made from: `strengths` as they were sent, `scores` as x . y gives them."""
    # An own item's strength is liked (1 - score), any other's is -unobserved score: whichever is nearer.
    own, other = objective.liked * (1 - scores), -objective.unobserved * scores
    read: NDArray[np.bool_] = np.abs(strengths - own) < np.abs(strengths - other)
    return read


def popularity(view: AnyFrugalView) -> Guess:
    """Rank everything by how often it is counted in all sums."""
    return claim_typical(np.tile(view.popularity, (len(view.tastes), 1)), view.typical_size)


def reading(view: MessagesView) -> Guess:
    """Claim everything that a message was made from."""
    return claim(view.seen == WITH)


def vector(view: MessagesView) -> Guess:
    """Rank the catalogue with the vector that was sent."""
    return claim_typical(view.tastes, view.typical_size)


def neighbours(view: MessagesView) -> Guess:
    """Rank by what those have who have alike."""
    return claim_typical(view.neighbours, view.typical_size)


def fused(view: MessagesView) -> Guess:
    """Taste and neighbours as the prior, reading as the evidence; claims as many as what was read stands for."""
    pi = np.clip(view.policies.liked, _NEVER_SURE, 1 - _NEVER_SURE)[:, None]
    q = np.clip(view.policies.unliked, _NEVER_SURE, 1 - _NEVER_SURE)[:, None]
    evidence = np.where(view.seen == WITH, np.log(pi / q), np.log((1 - pi) / (1 - q)))
    prior = standardised(view.tastes) + standardised(view.neighbours)
    scores = (prior + np.where(view.seen == UNSEEN, 0, evidence)).astype(np.float32)
    return Guess(scores, _sizes_behind(view))


def _sizes_behind(view: MessagesView) -> LongVector:
    """How long histories are that would be read so: of n items pi n are read, and of all others a share q."""
    read, covered = (view.seen == WITH).sum(axis=1), (view.seen != UNSEEN).sum(axis=1)
    pi, q = view.policies.liked, view.policies.unliked
    informative = (covered > 0) & (pi - q > _INFORMATIVE)
    share = (read / np.maximum(covered, 1) - q) / np.where(informative, pi - q, 1)
    sizes = np.rint(np.clip(share, 0, 1) * view.seen.shape[1]).astype(np.int64)
    found: LongVector = np.where(informative, np.maximum(sizes, read * (q == 0)), view.typical_size)
    return found


def membership(view: SumsView) -> Guess:
    """Rank by how much of each item's counts goes back to the person."""
    return claim_typical(view.counts, view.typical_size)


def sum_vector(view: SumsView) -> Guess:
    """Rank by how much of the sums' tastes goes back to the person."""
    return claim_typical(view.tastes, view.typical_size)


_READING: dict[str, Attack] = {
    BASELINE: popularity,
    "reading": reading,
    "vector": vector,
    "neighbours": neighbours,
    "fused": fused,
}
_ADDING_UP: dict[str, Attack] = {BASELINE: popularity, "membership": membership, "sum_vector": sum_vector}
FRUGAL_ATTACKS: dict[str, dict[str, Attack]] = {
    **dict.fromkeys(("updates", "plain", "both", "anonymous"), _READING),
    **dict.fromkeys(("sums", "leader", "helper", "outsider"), _ADDING_UP),
}
"""What each kind of observer tries."""


# The server that has only sums: what the two sums of a round tell about one of its members.


_LEAST = 1e-6


class SumsReader:
    """Notes about the sums of rounds."""

    def __init__(self, federation: FrugalFederation) -> None:
        self._federation = federation
        self._members: list[IntVector] = []
        self._weights: list[float] = []  # of the members of each round together
        self._counts: list[RealVector] = []
        self._tastes: list[RealVector] = []
        self._informs_counts: list[bool] = []
        self._informs_tastes: list[bool] = []

    def watch(self, answering: IntVector, sums: SummedMessages) -> None:
        """Take down the sums of a round before it is folded: the model is still as sent to its devices."""
        if not len(answering):
            return
        federation, items = self._federation, self._federation.items
        if federation.is_private:
            self._take_down(answering, items, sums)
            return
        if not federation.stage:
            self._note(answering, sums.messages, sums.residuals[:, 0], None)
            return
        objective, sent_vectors = federation.method.objective, federation.model.vectors[items].astype(np.float64)
        back = sums.residuals + float(objective.unobserved) * sent_vectors @ sums.squares[:-1]
        back /= float(objective.liked)
        weight = float(sums.squares[-1, -1])
        counts = weight * self.popularity().astype(np.float64)  # what a round says nothing of is as it was
        counts[items] = back[:, -1]
        self._note(answering, weight, counts, self._placed(items, sent_vectors @ back[:, :-1].sum(axis=0)))

    def _take_down(self, answering: IntVector, items: IntVector, sums: SummedMessages) -> None:
        """Sums of integers: the first round's say what people have, the later ones' what goes together."""
        first = sums.residuals.shape[1] == 1 and not self._members
        along = sums.residuals.sum(axis=0)
        length = float(np.linalg.norm(along))
        tastes = sums.residuals @ along / length if length > 0 else np.zeros(len(sums.residuals))
        self._note(answering, sums.messages, sums.residuals[:, 0] if first else None, self._placed(items, tastes))

    def _note(self, answering: IntVector, weight: float, counts: RealVector | None, tastes: RealVector | None) -> None:
        """What a round says, of counts and of tastes; None where it says nothing of them."""
        nothing = np.zeros(self._federation.method.n_items)
        self._members.append(answering)
        self._weights.append(float(weight))
        self._counts.append(nothing if counts is None else counts)
        self._tastes.append(nothing if tastes is None else tastes)
        self._informs_counts.append(counts is not None)
        self._informs_tastes.append(tastes is not None)

    def _placed(self, items: IntVector, values: RealVector) -> RealVector:
        """Numbers of these items among those of the full catalogue."""
        table = np.zeros(self._federation.method.n_items)
        table[items] = values
        return table

    def popularity(self) -> FloatVector:
        """The share of everyone who has each item, as far as sums show."""
        weight, total = 0.0, np.zeros(self._federation.method.n_items)
        for one, informative, counts in zip(self._weights, self._informs_counts, self._counts, strict=True):
            weight += one if informative else 0.0
            total += counts
        mean: FloatVector = (total / (weight if weight > 0 else 1)).astype(np.float32)
        return mean

    def counts(self, people: IntVector) -> FloatMatrix:
        """People x items: how much of the counts goes back to each of them."""
        return self._laid_to(people, self._counts, self.popularity().astype(np.float64), self._informs_counts)

    def tastes(self, people: IntVector) -> FloatMatrix:
        """People x items: how much of the tastes goes back to each of them."""
        telling = sum(
            weight for weight, informative in zip(self._weights, self._informs_tastes, strict=True) if informative
        )
        mean = np.sum(self._tastes, axis=0) / telling if telling else np.zeros(self._federation.method.n_items)
        return self._laid_to(people, self._tastes, mean, self._informs_tastes)

    def _laid_to(
        self, people: IntVector, sums: list[RealVector], mean: RealVector, informative: list[bool]
    ) -> FloatMatrix:
        members = sum(len(some) for some in self._members)
        anyone = mean * (sum(self._weights) / max(members, 1))
        guess: FloatMatrix = np.tile(anyone, (len(people), 1)).astype(np.float32)
        if not sums:
            return guess
        beyond = np.zeros((len(sums), len(mean)))
        for row, (weight, seen) in enumerate(zip(self._weights, sums, strict=True)):
            if informative[row]:
                beyond[row] = seen - weight * mean
        there = self._who_was_there()
        explained = np.linalg.solve((there @ there.T).toarray() + _LEAST * np.eye(len(sums)), beyond)
        guess += (there[:, people].T @ explained).astype(np.float32)
        return guess

    def _who_was_there(self) -> sparse.csr_matrix:
        """M: rounds x users."""
        sizes = [len(members) for members in self._members]
        rows, users = np.repeat(np.arange(len(sizes)), sizes), np.concatenate(self._members)
        shape = len(sizes), len(self._federation.sent)
        return sparse.csr_matrix((np.ones(len(users)), (rows, users)), shape=shape)
