"""Sybil clients: what someone learns who controls k of the n clients of a round of secure aggregation.

The attacker knows the uploads of its own k clients and subtracts them, so what it reads is the sum of the n - k honest
uploads. How many clients it controls does not matter beyond that. An upload is taken as the simplest one of Frugal: one
number per item, the history divided by the square root of its length, so that its norm is 1.

    leader      controls k clients and runs one of the two servers: reads the sum, with the other server's noise alone
    outsider    controls k clients and reads what is published: with noise the sum, which carries the noise of both
                servers; without noise the model alone, which shows the items that any client of the round has

The victim is one of the honest clients. The attacker names as many items as the victim has. Precision is the share of
them that are right; AUC is over all items, beside the AUC of popularity, which needs no attack.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import rankdata

from federank._numerics.arrays import IntVector, RealVector
from federank.checks import Settings, setting
from federank.data.interactions import Interactions
from federank.errors import SettingError
from federank.privacy.accountant import mu_for

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
