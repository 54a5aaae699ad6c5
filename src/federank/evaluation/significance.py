"""Is one method better than another, or was it luck? Paired tests over the users that both were evaluated on.

For each pair of evaluations and each metric, the difference of every common user's values is looked at four ways:

    t-test       Student's paired t-test: is the mean difference 0?
    Wilcoxon     signed ranks: is the difference as often, and as far, up as down? (no difference: left out)
    effect size  Cohen's d for pairs: the mean difference in units of its standard deviation
    interval     the 95 % bootstrap interval of the mean difference (users drawn again, seeded)

Many tests find something by chance. So p-values are corrected after Holm, over all pairs and metrics of one
comparison, for each of the two tests: a corrected p-value below 0.05 may be called significant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import scipy

from federank._numerics.arrays import RealVector
from federank.checks import check_iterable, check_type
from federank.errors import DataError, SettingError

if TYPE_CHECKING:
    from federank.evaluation.evaluate import Evaluation

CONFIDENCE = 0.95
_BLOCK = 64


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Two methods by one metric."""

    metric: str
    first: str
    second: str
    users: int
    """How many users both were evaluated on."""
    first_mean: float
    second_mean: float
    difference: float
    """The first's mean minus the second's."""
    low: float
    """The lower end of the bootstrap interval of the difference."""
    high: float
    """The upper end of the bootstrap interval of the difference."""
    effect_size: float
    t_test: float
    """The p-value of the paired t-test."""
    wilcoxon: float
    """The p-value of Wilcoxon's signed-rank test."""
    t_test_holm: float
    """The same, corrected after Holm."""
    wilcoxon_holm: float
    """The same, corrected after Holm."""

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain values, ready for JSON."""
        return asdict(self)


_NAMES = ("first", "second", "third", "fourth", "fifth", "sixth")


def compare(
    *evaluations: Evaluation | Mapping[str, Evaluation],
    metrics: Sequence[str] = ("precision@10", "recall@10", "ndcg@10"),
    resamples: int = 2_000,
    seed: int = 1,
) -> list[Comparison]:
    """Compare every two evaluations by these columns of their tables of users.

    `compare(a, b)` calls them first and second; `compare({"FPL": a, "BPR": b})` by names of your own.
    """
    from federank.evaluation.evaluate import Evaluation

    if len(evaluations) == 1 and isinstance(evaluations[0], Mapping):
        named: dict[str, Any] = dict(evaluations[0])
    elif len(evaluations) <= len(_NAMES):
        named = dict(zip(_NAMES, evaluations, strict=False))
    else:
        raise SettingError("Two to six evaluations are compared in a row; name them in a dictionary for more.")
    for name, one in named.items():
        check_type(f"The evaluation {name!r}", one, Evaluation, "an Evaluation, such as fr.evaluate gives,")
    check_iterable("metrics", metrics, "a list of names, such as ['ndcg@10'],")
    if len(named) < 2:
        raise SettingError(f"A comparison needs two or more evaluations; there are {len(named)}.")
    pairs = list(combinations(named.items(), 2))
    results = [_compared(metric, *first, *second, resamples, seed) for metric in metrics for first, second in pairs]
    t_tests, wilcoxons = (holm([getattr(one, test) for one in results]) for test in ("t_test", "wilcoxon"))
    return [
        replace(one, t_test_holm=t_test, wilcoxon_holm=wilcoxon)
        for one, t_test, wilcoxon in zip(results, t_tests, wilcoxons, strict=True)
    ]


def paired(one: pl.DataFrame, other: pl.DataFrame, metric: str) -> pl.DataFrame:
    """The values of the users whom both tables have a value for, as the columns first and second."""
    table = one.select("user", first=metric).join(
        other.select("user", second=metric), on="user", how="inner", maintain_order="left"
    )
    return table.drop_nulls(["first", "second"])


def paired_tests(differences: RealVector) -> tuple[float, float]:
    """The p-values of the t-test and of Wilcoxon's test; 1 where no one's values differ."""
    if not differences.any():
        return 1.0, 1.0
    wilcoxon = float(scipy.stats.wilcoxon(differences).pvalue)
    if np.ptp(differences) == 0:  # everyone differs by the same amount: there is no spread to doubt it
        return 0.0, wilcoxon
    return float(scipy.stats.ttest_1samp(differences, 0).pvalue), wilcoxon


def effect_size(differences: RealVector) -> float:
    """Cohen's d for pairs; 0 where no one's values differ, infinite where all differ by the same amount."""
    mean, spread = float(differences.mean()), float(differences.std(ddof=1))
    if np.ptp(differences) == 0:
        return float(np.sign(mean) * np.inf) if mean else 0.0
    return mean / spread


def bootstrap_interval(differences: RealVector, resamples: int, seed: int) -> tuple[float, float]:
    """The interval of the mean difference in 95 % of the resamples, each of as many users drawn with replacement."""
    rng = np.random.default_rng(seed)
    means = np.empty(resamples)
    for start in range(0, resamples, _BLOCK):
        drawn = rng.integers(0, len(differences), (min(_BLOCK, resamples - start), len(differences)))
        means[start : start + len(drawn)] = differences[drawn].mean(axis=1)
    low, high = np.quantile(means, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(low), float(high)


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values corrected for their number: the k-th smallest of m times m - k + 1, never below a smaller one."""
    order = np.argsort(p_values, kind="stable")
    factors = np.arange(len(order), 0, -1)
    corrected = np.minimum(1, np.maximum.accumulate(np.asarray(p_values, dtype=np.float64)[order] * factors))
    result = np.empty(len(order))
    result[order] = corrected
    return [float(p) for p in result]


def _compared(
    metric: str, first: str, one: Evaluation, second: str, other: Evaluation, resamples: int, seed: int
) -> Comparison:
    for name, evaluation in ((first, one), (second, other)):
        if metric not in evaluation.per_user.columns:
            known = [column for column in evaluation.per_user.columns if "@" in column]
            raise SettingError(f"The users of {name} have no {metric!r} to compare; they have {', '.join(known)}.")
    table = paired(one.per_user, other.per_user, metric)
    if len(table) < 2:
        raise DataError(
            f"{first} and {second} have {len(table)} users in common; a test needs two or more: evaluate both on the "
            "same split."
        )
    ours, theirs = (table[name].to_numpy() for name in ("first", "second"))
    differences = ours - theirs
    low, high = bootstrap_interval(differences, resamples, seed)
    t_test, wilcoxon = paired_tests(differences)
    return Comparison(
        metric=metric,
        first=first,
        second=second,
        users=len(table),
        first_mean=float(ours.mean()),
        second_mean=float(theirs.mean()),
        difference=float(differences.mean()),
        low=low,
        high=high,
        effect_size=effect_size(differences),
        t_test=t_test,
        wilcoxon=wilcoxon,
        t_test_holm=t_test,
        wilcoxon_holm=wilcoxon,
    )
