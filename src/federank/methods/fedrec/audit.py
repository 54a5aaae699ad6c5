"""The audit of FedRec: which items a user has rated, and how.

Which items: the attacks on what the observer has counted. How: the ratings themselves, from two early uploads of a few
users, beside guessing the mean of all ratings. Everything a client learns is sent in every round, so nothing is held
back; sampled items hide it.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from federank._numerics.arrays import FloatMatrix, IntVector, LongVector, RealVector
from federank._numerics.compiling import compiled
from federank.audit.observer import draw_users, judge_everyone, with_own_attacks
from federank.audit.scoring import (
    BASELINE,
    THREAT_MODELS,
    Attack,
    Audited,
    Guess,
    about_audit,
    claim,
    claim_typical,
)
from federank.errors import SettingError
from federank.federation.method import ItemGradients
from federank.methods.fedrec.kernels import RatingRun, Workspace, choose_one, lay_out
from federank.methods.fedrec.recommender import PMF
from federank.methods.fedrec.simulation import RatingFederation, choose_raters, play_compiled

# Which items each client's uploads have named, and how often.


_MOST = 65_535
"""Uploads of one client that a count can hold."""


class RatingObserver:
    """The honest-but-curious server: counts the items of some clients' uploads in a run's rounds."""

    def __init__(self, federation: RatingFederation, users: IntVector) -> None:
        n_items = len(federation.item_vectors)
        self.users, self.federation, self.round_number = users, federation, 0
        self.named_once = np.zeros((len(users), n_items), dtype=np.bool_)
        self.times_named = np.zeros((len(users), n_items), dtype=np.uint16)
        self.updates = np.zeros(len(users), dtype=np.int64)
        self._row_of_user = np.full(len(federation.user_vectors), -1, dtype=np.int32)
        self._row_of_user[users] = np.arange(len(users), dtype=np.int32)

    def watch_until(self, round_number: int) -> None:
        """Take note of all rounds before this one that have not been watched yet."""
        _watch(
            self.federation.run,
            self.federation.workspace,
            self.round_number,
            round_number,
            self._row_of_user,
            self.times_named,
            self.named_once,
            self.updates,
        )
        self.round_number = max(self.round_number, round_number)


@compiled
def _watch(
    run: RatingRun,
    workspace: Workspace,
    first_round: int,
    end: int,
    row_of_user: IntVector,
    times_named: NDArray[np.uint16],
    named_once: NDArray[np.bool_],
    updates: LongVector,
) -> None:
    """Lay out what followed clients learn from, round by round, and count it."""
    recipe, raters, n_items = run.recipe, run.raters, len(run.item_vectors)
    for r in range(first_round, end):
        n_clients = len(recipe.participants) if recipe.batch else 1
        for k in range(n_clients):
            position = k if recipe.batch else choose_one(recipe.seed, r, recipe.participants)
            user = recipe.participants[position]
            row = row_of_user[user]
            if row < 0 or updates[row] >= _MOST:
                continue
            size, count = lay_out(recipe, raters, user, r, n_items, workspace)
            updates[row] += 1
            for named in range(size + count):
                item = workspace.items[named]
                times_named[row, item] += np.uint16(1)
                named_once[row, item] |= updates[row] == 1


# What an honest-but-curious server of FedRec knows about some users.


class RatingView(NamedTuple):
    """What the server has counted: one row per user."""

    times_named: NDArray[np.uint16]  # users x items: in how many uploads the item was
    updates: LongVector  # users: how many uploads there were
    named_once: NDArray[np.bool_]  # users x items: what one upload named
    second_rows: NDArray[np.bool_]  # users x items: of which W was sent; nothing for PMF
    vectors: FloatMatrix  # V, public
    typical_size: int


class Answer(NamedTuple):
    """An upload, and the public item vectors that it was computed from."""

    update: ItemGradients
    vectors: FloatMatrix


# Two uploads of a client, from two rounds in which it took part one after the other.


def two_answers(
    established: RatingFederation, users: IntVector, first_iteration: int, last_round: int
) -> dict[int, list[Answer]]:
    """The first two uploads of each of these users from an iteration on; of a federation before its first round."""
    recipe, wanted = established.recipe, {int(user) for user in users}
    answers: dict[int, list[Answer]] = {user: [] for user in wanted}
    for number in range(first_iteration * recipe.rounds_per_epoch, last_round):
        chosen = [int(user) for user in choose_raters(recipe, number) if int(user) in wanted]
        if chosen:
            play_compiled(established, number - established.round_number)
        for user in chosen:
            broadcast = established.broadcast
            answers[user].append(Answer(established.computed(user, broadcast).update, broadcast.vectors))
            if len(answers[user]) == 2:
                wanted.discard(user)
        if not wanted:
            break
    return answers


# Attacks on what FedRec sends: which items a user has rated.


def popularity(view: RatingView) -> Guess:
    """Rank by the lengths of the public item vectors; claim as many as a client has on average."""
    lengths = np.linalg.norm(view.vectors, axis=1).astype(np.float32)
    return claim_typical(np.tile(lengths, (len(view.updates), 1)), view.typical_size)


def presence(view: RatingView) -> Guess:
    """Claim everything that one upload names."""
    return claim(view.named_once)


def intersection(view: RatingView) -> Guess:
    """Rank by how often an item was named; claim what was named every time."""
    every_time = (view.times_named == view.updates[:, None]) & (view.updates > 0)[:, None]
    return Guess(view.times_named.astype(np.float32), every_time.sum(axis=1, dtype=np.int64))


def second_rows(view: RatingView) -> Guess:
    """Claim every item whose W was sent."""
    return claim(view.second_rows)


# The attacks on FedRec by name for each threat model: the baseline first.


RATING_ATTACKS: dict[str, dict[str, Attack]] = {
    "updates": {
        BASELINE: popularity,
        "presence": presence,
        "intersection": intersection,
        "second_rows": second_rows,
    },
    "anonymous": {BASELINE: popularity, "presence": presence, "second_rows": second_rows},
}
"""The attacks of each kind of honest-but-curious server."""
ADVERSARIES = tuple(RATING_ATTACKS)


# Two steps: two uploads of one client disclose the ratings themselves (after Chai et al., 2021, for PMF).


_GRID = 160
_LONGEST = 20.0
_NEARBY = (0.08, 0.01, 0.001, 0.0)
"""How far around the best lengths so far the next grid reaches."""


class RatingGuess(NamedTuple):
    """What an attack guesses of a user's ratings."""

    items: IntVector
    ratings: RealVector


def two_steps(first: Answer, second: Answer, regulariser: float, lowest: float, highest: float) -> RatingGuess:
    """The ratings of all items that are in both uploads."""
    items, here, there = np.intersect1d(first.update.items, second.update.items, return_indices=True)
    m, a = (part[here] for part in _along(first, regulariser))
    m2, a2 = (part[there] for part in _along(second, regulariser))
    lengths, lengths2 = _possible(m, highest), _possible(m2, highest)
    best = best2 = 1.0
    for nearby in _NEARBY:
        ratings, ratings2 = _ratings(m, a, lengths), _ratings(m2, a2, lengths2)
        stars = np.clip(np.rint(ratings), lowest, highest)
        uneven = ((ratings - stars) ** 2).mean(axis=1)
        # The mean squared difference for every pair of lengths, without a table of lengths x lengths x items.
        squared, squared2 = (ratings**2).mean(axis=1), (ratings2**2).mean(axis=1)
        apart = squared[:, None] + squared2[None, :] - 2 * ratings @ ratings2.T / max(len(items), 1)
        one, other = np.unravel_index(int(np.argmin(apart + uneven[:, None])), apart.shape)
        best, best2 = float(lengths[one]), float(lengths2[other])
        lengths, lengths2 = (length * np.linspace(1 - nearby, 1 + nearby, _GRID) for length in (best, best2))
    ratings = m / best + best * a
    return RatingGuess(items.astype(np.int32), np.clip(ratings, lowest, highest))


def _possible(m: RealVector, highest: float) -> RealVector:
    """Lengths to try, on either side of u: which side U is on is not known."""
    shortest = max(float(np.abs(m).mean()) / (4 * highest), 1e-5)
    lengths = np.geomspace(shortest, _LONGEST, _GRID)
    return np.concatenate((-lengths, lengths))


def _ratings(m: RealVector, a: RealVector, lengths: RealVector) -> RealVector:
    """Lengths x items: what ratings each length would mean."""
    ratings: RealVector = m[None, :] / lengths[:, None] + lengths[:, None] * a[None, :]
    return ratings


def _along(answer: Answer, regulariser: float) -> tuple[RealVector, RealVector]:
    """Of each row: its part along -u, and how far its item's vector goes along u."""
    V = answer.vectors[answer.update.items].astype(np.float64)
    rows = answer.update.vectors.astype(np.float64) - regulariser * V
    u = _direction(rows)
    own = _own_directions(rows, u)
    m = -(rows * own).sum(axis=1)
    a = (V * own).sum(axis=1)
    return m, a


def _direction(rows: RealVector) -> RealVector:
    """The axis of all rows."""
    _, _, axes = np.linalg.svd(rows, full_matrices=False)
    u: RealVector = axes[0]
    return u


def _own_directions(rows: RealVector, u: RealVector) -> RealVector:
    """Each row's own direction, on the side of u; u itself where a row is too short to point anywhere."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    side = np.where(rows @ u <= 0, -1.0, 1.0)[:, None]
    clear = lengths > 1e-3 * lengths.max(initial=1e-12)
    own: RealVector = np.where(clear, side * rows / np.maximum(lengths, 1e-12), u)
    return own


MOST_CELLS = 2**25
"""Largest table of users x items that an audit keeps unless another number of users is named: 64 megabytes."""
_MOST_READ = 20
"""Number of users whose ratings are recovered, at most."""
_FIRST_ITERATION, _LAST_ITERATION = 2, 10


def audit_model(model: PMF, *, sees: str = "updates", people: int | None = None, per_epoch: bool = False) -> Audited:
    """Audit a trained model: its run's draws are made again, and its first few rounds are played again."""
    refuse(model, sees=sees, per_epoch=per_epoch)
    started, data = time.perf_counter(), model.training
    established = RatingFederation.established(model.settings, data)
    drawn = draw_users(model.settings.seed, established.recipe.participants, people)
    followed = np.sort(drawn[: people or max(1, MOST_CELLS // data.n_items)])
    iterations = model.settings.iterations
    observer = RatingObserver(established, followed)
    observer.watch_until(iterations * established.rounds_per_epoch)
    attacks = with_own_attacks(RATING_ATTACKS[sees], "fedrec", sees)
    if not established.recipe.implicit:
        attacks.pop("second_rows")
    sent = np.broadcast_to(np.True_, (len(followed), data.n_items))  # every client sends all of its history
    findings = judge_everyone(iterations, data, followed, sent, attacks, lambda rows: _view(model, observer, rows))
    ratings = _ratings_audit(model, established, np.sort(drawn[:_MOST_READ])) if sees == "updates" else None
    about = about_audit(
        data,
        sees=sees,
        threat_model=THREAT_MODELS[sees],
        cohort=established.recipe.clients_per_round,
        followed=len(followed),
        attacked=len(followed),
        shadows=0,
        rounds=observer.round_number,
        training_seconds=model.report["seconds"],
        audit_seconds=time.perf_counter() - started,
    )
    return Audited([replace(findings, disclosed_share=1.0, ratings=ratings)], about)


def refuse(model: PMF, *, sees: str, per_epoch: bool, **_how: Any) -> None:
    """Refuse what cannot be audited, before any long work."""
    if per_epoch:
        raise SettingError(f"An audit of {model.name} looks once, at the end of the run; leave out --per-epoch.")
    if sees not in RATING_ATTACKS:
        raise SettingError(
            f"Of {model.name} a server that sees {sees} is not audited yet; choose updates or anonymous."
        )
    if not model.settings.federated:
        raise SettingError("Without a federation nothing is sent, and everyone's ratings are in one place already.")


def _view(model: PMF, observer: RatingObserver, rows: IntVector) -> RatingView:
    federation, data = observer.federation, model.training
    second = np.zeros(observer.times_named[rows].shape, dtype=np.bool_)
    if federation.recipe.implicit:
        for row, user in enumerate(observer.users[rows]):
            second[row, data.profiles.of(user)] = True  # the rows of W that an upload has
    times = observer.times_named[rows]
    return RatingView(
        times,
        observer.updates[rows],
        observer.named_once[rows],
        second,
        model.item_vectors,
        max(1, round(len(data) / data.n_users)),
    )


def _ratings_audit(model: PMF, established: RatingFederation, users: IntVector) -> dict[str, dict[str, float]]:
    """How many of these users' ratings are recovered exactly, and the mean error, beside those of the mean rating."""
    data, settings = model.training, model.settings
    assert data.ratings is not None
    last = min(_LAST_ITERATION, settings.iterations) * established.rounds_per_epoch
    first = min(_FIRST_ITERATION, max(settings.iterations - 2, 0))
    results: list[tuple[float, float, float, float]] = []
    mean = float(data.ratings.mean())
    for user, answers in two_answers(established, users, first, last).items():
        if len(answers) < 2:
            continue
        guess = two_steps(answers[0], answers[1], settings.regulariser, settings.lowest, settings.highest)
        start, end = data.profiles.starts[user], data.profiles.starts[user + 1]
        rated, truth = data.profiles.of(user), data.ratings[start:end]
        positions = np.searchsorted(guess.items, rated)  # whatever is rated is in both
        guessed = guess.ratings[positions]
        right, plain = np.mean(np.rint(guessed) == truth), np.mean(np.rint(mean) == truth)
        off, plainly_off = np.abs(guessed - truth).mean(), np.abs(mean - truth).mean()
        results.append((float(right), float(off), float(plain), float(plainly_off)))
    if not results:
        return {}
    right, off, plain, plainly_off = np.mean(results, axis=0).tolist()
    return {"two_steps": {"exact": right, "error": off}, "mean": {"exact": plain, "error": plainly_off}}
