"""Sums: what is left for a server that never sees a single Update, only the sum over a round's devices.

That is what secure aggregation would leave it (and what anybody could work out who keeps two Broadcasts in a row: the
model moves by the learning rate times the sum). The server of this threat model also knows *who* took part in each
round. Cohorts change, so it can compare: in the rounds of one person, the sum has that person's share in it, and in
the others it has not. Over many rounds the shares of all others average out, the person's own does not.

For each person that is followed and each item, the observer keeps one number: the sum of the item's bias gradients over
the rounds the person took part in, less what as many rounds had on average at that time (the model moves, so the
average is taken over a short block of rounds). The same for the vectors of rows with a negative bias, whose sum over
items is -G p for each device. What chance alone would give is known from how much sums vary from round to round.

The run is played once more through the engine's own rounds, one by one: it takes as long as the training did.

    4 x people x items bytes twice over      and a few numbers per item, per user and per person
"""

from __future__ import annotations

import numpy as np

from federank.arrays import FloatMatrix, IntVector, RealVector
from federank.audit.pairs.sums.rounds import Tally, watch_disguised, watch_plain, watch_stepped
from federank.engines.pairs.federation import Federation

_FEWEST_ROUNDS = 50
"""Rounds over which sums are taken to vary around one mean."""
_CELLS_PER_PAIR = 5
_TINY = np.finfo(np.float64).tiny


class SumsObserver:
    """The server that sees sums: plays a run from its beginning and compares people's cohorts with all others."""

    def __init__(self, established: Federation, people: IntVector) -> None:
        n_items, width = established.item_vectors.shape
        n_users = len(established.user_vectors)
        self.people, self.federation, self.round_number = people, established, established.round_number
        self._row_of_user = np.full(n_users, -1, dtype=np.int32)
        self._row_of_user[people] = np.arange(len(people), dtype=np.int32)
        self._tally = Tally(
            own=np.zeros((len(people), n_items), dtype=np.float32),
            own_vectors=np.zeros((len(people), width)),
            taken_part=np.zeros(len(people), dtype=np.int64),
            biases=np.zeros(n_items),
            squares=np.zeros(n_items),
            vectors=np.zeros(width),
            vector_squares=np.zeros(width),
            slopes=np.zeros(1),
            devices=np.zeros(1, dtype=np.int64),
        )
        self._differences = np.zeros((len(people), n_items), dtype=np.float32)
        self._vector_differences = np.zeros((len(people), width))
        self.taken_part = np.zeros(len(people), dtype=np.int64)
        self._variances, self._vector_variances = np.zeros(n_items), np.zeros(width)
        self._mean_vector, self._slopes, self._devices = np.zeros(width), 0.0, 0

    def watch_until(self, round_number: int) -> None:
        """Play all rounds before this one that have not been played yet, and compare."""
        cells = self._differences.size
        block = max(_FEWEST_ROUNDS, int(cells / (_CELLS_PER_PAIR * max(self.federation.steps_per_round, 1))))
        while self.round_number < round_number:
            rounds = min(block, round_number - self.round_number)
            if round_number - self.round_number - rounds < block // 2:
                rounds = round_number - self.round_number  # no short block at the end
            self._play(rounds)
            self._compare(rounds)

    def chances(self, rows: IntVector) -> FloatMatrix:
        """People x items: each difference in standard deviations of what chance alone would give."""
        variances = self._variances / max(self.round_number, 1)
        spread = np.sqrt(np.outer(self._unevenness(rows), np.maximum(variances, 0)))
        return np.where(spread > 0, self._differences[rows] / np.maximum(spread, _TINY), 0).astype(np.float32)

    def vectors(self, rows: IntVector) -> FloatMatrix:
        """People x factors: each one's own vector as far as sums tell; the mean of all where they tell nothing."""
        factors = self.federation.recipe.factors
        if self._slopes <= 0 or not self._devices:
            return np.zeros((len(rows), factors), dtype=np.float32)
        found = self._vector_differences / np.maximum(self.taken_part, 1)[:, None]
        chance = self._vector_variances / max(self.round_number, 1)
        everyone = np.arange(len(found), dtype=np.int32)
        by_chance = np.mean(self._unevenness(everyone) / np.maximum(self.taken_part, 1) ** 2) * chance
        seen = np.maximum(np.mean(found**2, axis=0), _TINY)
        found *= np.clip(1 - by_chance / seen, 0, 1)  # what chance explains is not believed
        mean = self._mean_vector / self._devices
        slope = self._slopes / self._devices
        return (-(mean + found[rows]) / slope)[:, :factors].astype(np.float32)

    def _unevenness(self, rows: IntVector) -> RealVector:
        """The variance of a person's summed difference, in units of one round's variance: nothing if always there."""
        rounds, own = max(self.round_number, 1), self.taken_part[rows].astype(np.float64)
        unevenness: RealVector = own * (1 - own / rounds)
        return unevenness

    def _play(self, rounds: int) -> None:
        recipe = self.federation.recipe
        adding = watch_disguised if recipe.clip > 0 else watch_plain
        watch = adding if recipe.only_adds else watch_stepped
        watch(self.federation, rounds, self._row_of_user, self._tally)
        self.round_number += rounds

    def _compare(self, rounds: int) -> None:
        tally = self._tally
        mean, mean_vector = tally.biases / rounds, tally.vectors / rounds
        always = tally.taken_part == rounds  # the mean of all rounds is their own: rounding must not speak for them
        expected = np.outer(tally.taken_part, mean).astype(np.float32)
        self._differences += np.where(always[:, None], 0, tally.own - expected)
        own_vectors = tally.own_vectors - np.outer(tally.taken_part, mean_vector)
        self._vector_differences += np.where(always[:, None], 0, own_vectors)
        self.taken_part += tally.taken_part
        self._variances += tally.squares - rounds * mean**2
        self._vector_variances += tally.vector_squares - rounds * mean_vector**2
        self._mean_vector += tally.vectors
        self._slopes += float(tally.slopes[0])
        self._devices += int(tally.devices[0])
        for part in tally:
            part[:] = 0
