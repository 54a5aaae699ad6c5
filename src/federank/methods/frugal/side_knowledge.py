"""An attacker who knows some of a user's items: what sums over all clients, or the published model, add to that.

All sums of a federation together say which items occur together. With B_t, through which clients of round t see their
items (x = B_t'p), a round's sums give A_t = C B_t for the co-occurrences C = sum of a_u p_u p_u', so that by Nystrom's
formula, over all rounds at once,

    C ~ A (B'A)^-1 A'        A = [A_1 .. A_r], B = [B_1 .. B_r], blocks scaled to the same trace

    server      ranks item j by the noisy-or over the known items i of C_ij / C_ii, which is the share of the users of i
                who have j too; or of C_ij / sqrt(C_ii C_jj), which favours what is rare
    outsider    has the published model alone, and solves for the vector of the known items; where item-item weights
                are published, it scores with those

Where an item has one or two users, its row of C is nearly one user's history: hence the minimum support of items.
Where a round is of a part of the clients, the server knows whose rounds are whose, and uses those of the user's cohort.
What counts is the difference between two federations: with the attacked users, and without them. The share that an
attacker gets right about users who never took part comes from what users have in common, not from their messages.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from federank._numerics.arrays import FloatMatrix, IntVector, RealMatrix, RealVector
from federank.audit.observer import draw_users
from federank.data.interactions import Profiles
from federank.federation.rng import HELPER, SERVER
from federank.federation.schedule import Schedule
from federank.federation.wire import rows_of
from federank.methods.frugal.private import PrivateFrugal
from federank.methods.frugal.recommender import FewMessages
from federank.methods.frugal.records import SummedMessages
from federank.methods.frugal.ridge import Block as Together
from federank.methods.frugal.ridge import co_occurrences, through_model
from federank.methods.frugal.server_update import ridge_of
from federank.methods.frugal.simulation import FrugalFederation, noise_of, play, vectors_at_home
from federank.secagg.ring import in_units

LIST = 10
"""Items that an attacker names of each user."""
KNOWN = 10
MOST_USERS = 300
_NEVER_SURE = 1 - 1e-9


class Block(NamedTuple):
    """What one round's sums say of co-occurrences: A = C B, for the items that its messages covered."""

    items: IntVector
    seen: RealMatrix  # A
    through: RealMatrix  # B
    noise: float  # deviation of what the observer does not know of each number of A


class SumsKept:
    """The sums of all rounds, as an observer has them."""

    def __init__(self, federation: FrugalFederation) -> None:
        self._federation = federation
        self._blocks: list[Block] = []
        self._counts = np.zeros(federation.method.n_items)

    def watch(self, sums: SummedMessages, noise: float = 0.0) -> None:
        """Keep the sums of a round before it is folded: the model is still the one that its clients have."""
        federation, items = self._federation, self._federation.items
        if not sums.messages:
            return
        if not federation.stage:
            self._counts = self._counts + sums.residuals[:, 0]
            return
        model = rows_of(federation.model, items)
        if federation.is_private:
            known = model.directions
            scales = np.maximum(known.scales, np.finfo(np.float32).tiny)[:, None]
            self._blocks.append(Block(items, sums.residuals / scales, known.wanted * scales, noise))
            return
        liked, unobserved = (float(part) for part in federation.method.objective)
        products = (sums.residuals + unobserved * model.vectors @ sums.squares[:-1]) / liked
        through = through_model(model.vectors, model.weights, float(model.regulariser[0]))
        self._blocks.append(Block(items, products[:, :-1], through, 0.0))
        self._counts[items] = products[:, -1]

    @property
    def is_noisy(self) -> bool:
        """Whether sums are of integers with noise, whose counts are not those of the co-occurrences."""
        return self._federation.is_private

    @property
    def popularity(self) -> RealVector:
        """How often each item is counted."""
        return self._counts

    def co_occurrences(self) -> tuple[IntVector, RealMatrix]:
        """Items, and Z with C ~ Z Z' for them; without columns where no sum says which items occur together."""
        if not self._blocks:
            return np.zeros(0, dtype=np.int32), np.zeros((0, 0))
        items = self._blocks[-1].items
        blocks = [block for block in self._blocks if len(block.items) == len(items)]
        noise = max(block.noise / max(float(np.sum(block.through * block.seen)), 1e-30) for block in blocks)
        return items, co_occurrences([Together(block.seen, block.through) for block in blocks], least=noise)


def guess_from_sums(kept: SumsKept, known: list[IntVector], n_items: int, *, cosine: bool) -> FloatMatrix:
    """Users x items: -log of one minus the noisy-or over the items that are known of each user."""
    items, factors = kept.co_occurrences()
    places = np.full(n_items, -1, dtype=np.int64)
    places[items] = np.arange(len(items))
    counts = np.maximum(kept.popularity, 0.0)
    guess: RealMatrix = np.tile(1e-6 * counts / max(float(counts.max()), 1e-30), (len(known), 1))
    squares = np.einsum("ij,ij->i", factors, factors)
    own = np.maximum(squares if kept.is_noisy else np.maximum(squares, counts[items]), 1e-12)
    for row, theirs in enumerate(known):
        rows = places[theirs]
        rows = rows[rows >= 0]
        if len(rows) and factors.shape[1]:
            most = np.sqrt(own[rows, None] * own) if cosine else own[rows, None]
            shares = np.clip(factors[rows] @ factors.T / most, 0.0, _NEVER_SURE)
            guess[row, items] -= np.log1p(-shares).sum(axis=0)
    return guess.astype(np.float32)


def guess_from_model(federation: FrugalFederation, known: list[IntVector]) -> FloatMatrix:
    """Users x items: the scores of the vector that explains the known items."""
    model = federation.model
    starts = np.concatenate(([0], np.cumsum([len(theirs) for theirs in known]))).astype(np.int64)
    profiles = Profiles(starts, np.concatenate(known).astype(np.int32))
    guess: FloatMatrix = vectors_at_home(federation.method, model, profiles) @ model.vectors.T
    return guess


def as_seen(sees: str, federation: FrugalFederation, sums: SummedMessages) -> tuple[SummedMessages, float]:
    """A round's sums without the noise that an observer knows, and the deviation of what it does not know."""
    method = federation.method
    if not isinstance(method, PrivateFrugal) or not sums.messages:
        return sums, 0.0
    own = {"leader": (SERVER,), "helper": (HELPER,), "outsider": ()}.get(sees, (SERVER, HELPER))
    residuals = sums.residuals.copy()
    for server in own:
        residuals -= in_units(noise_of(federation, residuals.size, server), 1.0).reshape(residuals.shape)
    unknown = method.plan.noise(federation.stage) * math.sqrt((2 - len(own)) / 2)
    return sums._replace(residuals=residuals), unknown


class Targets(NamedTuple):
    """Whom the attacker goes for."""

    users: IntVector
    known: list[IntVector]  # of each user: the items that the attacker knows

    @classmethod
    def drawn(cls, schedule: Schedule, profiles: Profiles, users: int, known: int) -> Targets:
        """Users of at least twice as many items as are known, fewer than half of all, drawn with the seed."""
        able = schedule.participants[profiles.sizes[schedule.participants] >= 2 * known]
        wanted = min(users, MOST_USERS, len(schedule.participants) // 2)
        chosen = np.sort(draw_users(schedule.seed, able, None)[:wanted])
        rng = np.random.default_rng([schedule.seed, known])
        return cls(chosen, [np.sort(rng.choice(profiles.of(int(user)), known, replace=False)) for user in chosen])

    def right(self, profiles: Profiles, guess: FloatMatrix) -> RealVector:
        """Of each user: the share of the attacker's list that is among the user's other items."""
        shares = np.zeros(len(self.users))
        for row, (user, theirs) in enumerate(zip(self.users, self.known, strict=True)):
            scores = guess[row].astype(np.float64)
            scores[theirs] = -np.inf
            best = np.argpartition(-scores, LIST)[:LIST]
            shares[row] = np.isin(best, profiles.of(int(user))).mean()
        return shares


def side_knowledge(
    model: FewMessages, *, sees: str = "sums", users: int = MOST_USERS, known: int = KNOWN
) -> dict[str, dict[str, Any]]:
    """What each of this observer's attacks gets right who knows some items of a user; nothing where none can be."""
    data = model.training
    schedule = model.federation(data).schedule
    targets = Targets.drawn(schedule, data.profiles, users, known)
    if not len(targets.users):
        return {}
    others = np.setdiff1d(schedule.participants, targets.users).astype(np.int32)
    guesses: list[dict[str, FloatMatrix]] = []
    for participants in (schedule.participants, others):
        federation = model.federation(data)
        federation.schedule = schedule._replace(participants=participants)
        kept = [SumsKept(federation) for _ in range(schedule.cohorts)]

        def watch(_: IntVector, sums: SummedMessages, federation: Any = federation, kept: Any = kept) -> None:
            kept[federation.round_number % schedule.cohorts].watch(*as_seen(sees, federation, sums))

        play(federation, schedule.rounds, watch=watch)
        guesses.append(_guesses(sees, federation, kept, targets))
    popular = targets.right(data.profiles, np.tile(data.popularity, (len(targets.users), 1)))
    return {
        name: _compared(known, popular, *(targets.right(data.profiles, each[name]) for each in guesses))
        for name in guesses[0]
    }


def _guesses(sees: str, federation: FrugalFederation, kept: list[SumsKept], targets: Targets) -> dict[str, FloatMatrix]:
    if sees == "outsider":
        low_rank = guess_from_model(federation, targets.known)
        if federation.method.item_weights == "none":
            return {"model": low_rank}
        histories = np.zeros(low_rank.shape, dtype=np.float32)
        for row, theirs in enumerate(targets.known):
            histories[row, theirs] = 1
        return {
            "model": low_rank,
            "weights": ridge_of(federation.method, federation.state).scores(histories, low_rank),
        }
    n_items, found = federation.method.n_items, {}
    for name, cosine in (("shares", False), ("cosines", True)):
        guess = np.zeros((len(targets.users), n_items), dtype=np.float32)
        cohorts = federation.schedule.cohort[targets.users]  # whose rounds a user was in is known
        for cohort in np.unique(cohorts).tolist():
            rows = np.flatnonzero(cohorts == cohort)
            known = [targets.known[row] for row in rows]
            guess[rows] = guess_from_sums(kept[cohort], known, n_items, cosine=cosine)
        found[name] = guess
    return found


def _compared(known: int, popularity: RealVector, inside: RealVector, outside: RealVector) -> dict[str, Any]:
    """The share that is right of users in the federation and left out of it, and what their messages add."""
    more: NDArray[np.float64] = inside - outside
    return {
        "known": known,
        "users": len(more),
        "inside": float(inside.mean()),
        "outside": float(outside.mean()),
        "popularity": float(popularity.mean()),
        "advantage": float(more.mean()),
        "standard_error": float(more.std(ddof=1) / np.sqrt(len(more))) if len(more) > 1 else None,
    }
