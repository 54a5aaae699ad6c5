"""A federation to be poisoned: honest users with a held-out part, malicious clients beside them, and the item that
is pushed.

The target is cold: one of the least popular tenth, drawn by the seed, and taken out of everyone's history, so that
anyone who gets it in a list gets it from the malicious clients. Malicious clients are added to the population; no one
honest gives way.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.stats import rankdata

from federank._numerics.arrays import FloatMatrix, IntVector, LongVector, RealVector
from federank._numerics.topn import top_n
from federank.checks import Settings, check_fields, setting
from federank.data.interactions import Interactions, Profiles
from federank.data.splits import Split
from federank.errors import SettingError
from federank.evaluation.metrics import find_hits, precision
from federank.privacy.accountant import mu_for

Attack = Literal["loud", "histories", "noise", "adaptive", "twin"]
Aim = Literal["push", "sabotage"]
SHORT = 4
"""What an adaptive malicious client of frugal likes beside the target."""


@dataclass(frozen=True, kw_only=True)
class PoisonSettings:
    """The malicious clients, their number and aim, and how long the federation runs."""

    method: Literal["fpl", "frugal"] = "fpl"
    """What the federation learns by."""
    attack: Attack = "adaptive"
    """How the malicious clients go about it: one row of maximal norm (loud), the protocol with synthetic histories
    (histories), noise at the largest norm (noise), what the defences let through (adaptive), or, for checked sums,
    what is true of the most popular item (twin)."""
    aim: Aim = "push"
    """Show an item that no user likes to all users (push), or degrade all lists (sabotage)."""
    share: float = setting(0.05, fraction=True)
    """Share of malicious clients."""
    rounds: int = setting(200, 1)
    """Rounds of fpl; frugal has as many as its uploads take."""
    reports: int = setting(100, 1)
    """Uploads in a round of fpl."""
    sees: Literal["updates", "sums", "checked"] = "updates"
    """What the server can read: single uploads, of which it refuses what no client can have sent; only sums; or only
    sums of uploads whose norm was checked (frugal)."""
    bounds: Literal["all", "rows", "caps"] = setting("all", expert=True)
    """Checked sums only: what else defends, bounds on rows of the sum (rows), caps on how many users an item is shown
    to (caps), or both, as `federank serve --helper` has them."""
    recipe: Literal["spectral", "private"] = setting("spectral", expert=True)
    """Checked sums only: Frugal's own recipe (spectral), or that of sums with noise (private), which has no rows to
    bound."""
    epsilon: float | None = setting(None, positive=True, expert=True)
    """Recipe private only: the guarantee of noise.  [default: none]"""
    item_weights: Literal["none", "ridge"] = setting("none", expert=True)
    """Frugal's own recipe only: what honest users are recommended from, vectors alone or item-item weights as well."""
    clip: float = setting(1.0, positive=True, expert=True)
    """Checked sums only: the norm that honest uploads are scaled down to where they are longer; of the recipe
    private all are of length 1."""
    most_norm: float = setting(100.0, expert=True)
    """Largest norm of a row, or of an upload of frugal, that a server takes as it is."""
    seed: int = setting(1, 0, 2**32 - 1)
    """Names the split, the target and all draws."""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.epsilon is not None and self.recipe != "private":
            raise SettingError(
                f"epsilon is {self.epsilon:g}, but Frugal's own recipe has no noise; say recipe private."
            )
        if self.recipe == "private" and (self.sees, self.bounds) != ("checked", "all"):
            raise SettingError(
                "The recipe private is of checked sums, with one bound; say sees checked, and no bounds."
            )
        if self.item_weights != "none" and (self.method != "frugal" or self.recipe == "private"):
            raise SettingError("item_weights is ridge, which only Frugal's own recipe has; say method frugal.")
        if self.sees == "checked" and self.method != "frugal":
            raise SettingError("Uploads of frugal are checked where only sums are read; fpl has none. Say sees sums.")
        if self.sees != "checked" and self.bounds != "all":
            raise SettingError(
                f"bounds is {self.bounds}, which is for checked sums; leave it out, or say sees checked."
            )
        if self.attack == "twin" and (self.sees, self.aim) != ("checked", "push"):
            raise SettingError("A twin is pushed where sums are checked; say sees checked and aim push.")


@dataclass(frozen=True, eq=False)
class World:
    """Honest users first, malicious clients after them, over one catalogue."""

    profiles: Profiles  # of everyone; those of malicious clients are synthetic
    test: Profiles  # of honest users
    honest: int
    malicious_users: int
    n_items: int
    target: int
    popularity: LongVector  # how many honest users have each item in training

    @property
    def people(self) -> int:
        """Everyone who takes part."""
        return self.honest + self.malicious_users


def make_world(split: Split, settings: PoisonSettings, *, malicious_users: bool = True) -> World:
    """Honest users with their training part, and malicious clients with synthetic histories where there are any."""
    data = split.train
    popularity = np.bincount(data.items, minlength=data.n_items)
    rng = np.random.default_rng([settings.seed, 17])
    known = np.flatnonzero(popularity)
    if len(known) < 20:
        raise SettingError(f"{data.name} has {len(known)} items in training; a rehearsal needs at least 20.")
    cold = known[popularity[known] <= np.quantile(popularity[known], 0.1)]
    target = int(rng.choice(cold))
    test = split.test
    kept, tested = data.items != target, test.items != target
    users, items = data.users[kept], data.items[kept]
    popularity[target] = 0
    mean = max(1, len(items) // data.n_users)
    count = (
        max(1, round(data.n_users * settings.share / (1 - settings.share))) if malicious_users and settings.share else 0
    )
    synthetic = [_history(settings, popularity, target, mean, rng) for _ in range(count)]
    all_users = np.concatenate(
        [users, *(np.full(len(history), data.n_users + n) for n, history in enumerate(synthetic))]
    ).astype(np.int32)
    chosen = np.concatenate([items, *synthetic]).astype(np.int32)
    return World(
        _profiles(all_users, chosen, data.n_users + count),
        _profiles(test.users[tested], test.items[tested], test.n_users),
        data.n_users,
        count,
        data.n_items,
        target,
        popularity,
    )


def _history(
    settings: PoisonSettings, popularity: LongVector, target: int, mean: int, rng: np.random.Generator
) -> IntVector:
    """A malicious client's synthetic history: the target alone, or beside what many like; for sabotage, what no one
    likes.
    """
    if settings.aim == "sabotage":
        dull = np.argsort(popularity, kind="stable")[: max(2 * mean, 20)]
        return np.sort(rng.choice(dull, min(mean, len(dull)), replace=False)).astype(np.int32)
    if settings.method == "fpl":  # every pair that such a client draws has the target on its liked side
        return np.array([target], dtype=np.int32)
    liked = np.argsort(-popularity, kind="stable")[: max(4 * mean, 20)]
    size = min(mean, len(liked)) - 1
    if settings.attack == "adaptive":  # the fewer items a history has, the more its message counts
        size = min(size, SHORT)
    return np.unique(np.append(rng.choice(liked, max(size, 0), replace=False), target)).astype(np.int32)


def _profiles(users: IntVector, items: IntVector, n_users: int) -> Profiles:
    order = np.lexsort((items, users))
    starts = np.concatenate(([0], np.cumsum(np.bincount(users, minlength=n_users)))).astype(np.int64)
    return Profiles(starts, items[order])


N = 10


class Measured(NamedTuple):
    """A model as honest users see it."""

    exposure: float  # share of honest users who have the target among their first ten
    median_rank: float  # of the target among what a user does not have; 1 is first
    precision: float  # P@10 over honest users with something held out


def measured(world: World, scores: FloatMatrix) -> Measured:
    """Judge the scores that honest users' clients give the catalogue, a row for each user."""
    users = np.arange(world.honest, dtype=np.int32)
    can_be_shown = world.popularity > 0
    can_be_shown[world.target] = True
    scores = np.where(can_be_shown, scores[: world.honest], -np.inf).astype(np.float32)
    for user in users:
        scores[user, world.profiles.of(int(user))] = -np.inf
    items, _ = top_n(scores, users, world.profiles, N)
    tested = np.flatnonzero(world.test.sizes).astype(np.int32)
    hits = find_hits(items[tested], tested, world.test)
    ranks = 1 + (scores > scores[:, [world.target]]).sum(axis=1)
    return Measured(
        exposure=float((items == world.target).any(axis=1).mean()),
        median_rank=float(np.median(ranks)),
        precision=float(precision(hits, world.test.sizes[tested], N).mean()),
    )


# Sybil clients: what someone learns who controls k of the n clients of a round of secure aggregation.
#
# The attacker knows the uploads of its own k clients and subtracts them, so what it reads is the sum of the n - k
# honest uploads. How many clients it controls does not matter beyond that. An upload is taken as the simplest one of
# Frugal: one number per item, the history divided by the square root of its length, so that its norm is 1.
#
#     leader      controls k clients and runs one of the two servers: reads the sum, with the other server's noise alone
#     outsider    controls k clients and reads what is published: with noise the sum, which carries the noise of both
#                 servers; without noise the model alone, which shows the items that any client of the round has
#
# The victim is one of the honest clients. The attacker names as many items as the victim has. Precision is the share of
# them that are right; AUC is over all items, beside the AUC of popularity, which needs no attack.


HONEST = (1, 5, 20, 50)
"""Honest clients in the cohort, one row of the result each."""
DELTA = 1e-6
LEADER, OUTSIDER = OBSERVERS = ("leader", "outsider")


@dataclass(frozen=True, kw_only=True)
class SybilSettings(Settings):
    """A rehearsal of sybil clients."""

    cohort: int = setting(100, max(HONEST) + 1)
    """Clients in a round; all but 1, 5, 20 or 50 of them are the attacker's."""
    epsilon: float = setting(4.0, positive=True)
    """Differential privacy guarantee of the rows with noise, for all uploads of a client, at delta 1e-6."""
    uploads: int = setting(5, 1)
    """Uploads of a client, which share the guarantee equally."""
    victims: int = setting(200, 1)
    """Victims over which the results are means, each in a cohort of its own."""
    seed: int = setting(1, 0)
    """Seed of the cohorts and of the noise."""


class SybilRow(NamedTuple):
    """What one attacker reaches with one number of honest clients."""

    honest: int  # n - k
    sybils: int  # k
    observer: str
    epsilon: float | None  # None: no noise
    precision: float
    precision_error: float  # its standard error
    auc: float
    popularity_auc: float


def rehearse_sybils(data: Interactions, settings: SybilSettings) -> list[SybilRow]:
    """What an attacker with sybil clients learns about one honest client, with and without noise."""
    if data.n_users < max(HONEST):
        raise SettingError(
            f"{data.name} has {data.n_users} users; cohorts with {max(HONEST)} honest clients need at least as many."
        )
    by_user = np.argsort(data.users, kind="stable")
    ends = np.cumsum(np.bincount(data.users, minlength=data.n_users))[:-1]
    histories = [np.unique(items).astype(np.int32) for items in np.split(data.items[by_user], ends) if len(items)]
    popularity = np.bincount(np.concatenate(histories), minlength=data.n_items).astype(np.float64)
    sigma = math.sqrt(settings.uploads) / mu_for(settings.epsilon, DELTA)  # of one server, in lengths of an upload
    return [
        _row(histories, popularity, honest, observer, sigma if noisy else None, settings)
        for noisy in (False, True)
        for observer in OBSERVERS
        for honest in HONEST
    ]


def _row(
    histories: list[IntVector],
    popularity: RealVector,
    honest: int,
    observer: str,
    sigma: float | None,
    settings: SybilSettings,
) -> SybilRow:
    rng = np.random.default_rng((settings.seed, honest))
    precisions, aucs, baseline = [], [], []
    for _ in range(settings.victims):
        cohort = rng.choice(len(histories), honest, replace=False)
        scores = _read(rng, [histories[user] for user in cohort], len(popularity), observer, sigma)
        victim = histories[cohort[0]]
        # Ties go by popularity: ties are guessed.
        order = np.lexsort((-popularity, -scores))[: len(victim)]
        precisions.append(np.isin(order, victim).mean())
        if len(victim) < len(popularity):
            aucs.append(_auc(scores, victim))
            baseline.append(_auc(popularity, victim))
    error = float(np.std(precisions) / math.sqrt(len(precisions)))
    return SybilRow(
        honest,
        settings.cohort - honest,
        observer,
        None if sigma is None else settings.epsilon,
        float(np.mean(precisions)),
        error,
        float(np.mean(aucs)),
        float(np.mean(baseline)),
    )


def _read(
    rng: np.random.Generator, cohort: list[IntVector], n_items: int, observer: str, sigma: float | None
) -> RealVector:
    """What is left for the attacker once its own uploads are subtracted, one number per item."""
    total = np.zeros(n_items)
    for history in cohort:
        total[history] += 1 / math.sqrt(len(history))
    if sigma is None:
        return total if observer == LEADER else (total > 0).astype(np.float64)
    servers = 1 if observer == LEADER else 2
    return np.asarray(total + rng.normal(0, sigma * math.sqrt(servers), n_items))


def _auc(scores: RealVector, items: IntVector) -> float:
    ranks, n = rankdata(scores), len(items)
    return float((ranks[items].sum() - n * (n + 1) / 2) / (n * (len(scores) - n)))


def figures(rows: list[SybilRow]) -> list[dict[str, Any]]:
    """The rows as they are printed."""
    return [
        {name: round(value, 4) if isinstance(value, float) else value for name, value in row._asdict().items()}
        for row in rows
    ]
