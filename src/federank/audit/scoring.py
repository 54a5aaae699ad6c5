"""Scoring: how right an attack was, user by user.

The truth is the user's training history. An attack gives every item a score and claims the first this many:

    precision, recall, f1   of the items it claims
    auc                     how often an item of the history is scored above one that is not in it (ties: a half);
                            0.5 is chance, 1 a perfect order, whatever the attack claims
    ..._held_back           the same for those items of the history that were never sent as positives; claims of items
                            that were sent and are in the history count neither for nor against

Where the last claimed item is tied with others, which of them are claimed is left to chance, and its mean is counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from federank._numerics.arrays import FloatMatrix, IntVector, LongVector, RealVector
from federank._numerics.compiling import compiled
from federank.data.interactions import Categories, Interactions

BASELINE = "popularity"
"""The attack that needs no upload at all: what others gain is measured against it."""


class Guess(NamedTuple):
    """An attack's answer: how likely each item is someone's, and how many of the first it claims to be theirs."""

    scores: FloatMatrix  # users x items, higher is likelier
    sizes: LongVector  # users


Attack = Callable[[Any], Guess]
"""Sees a view of its family and threat model, answers with a Guess."""


def claim(items: NDArray[np.bool_]) -> Guess:
    """The answer of an attack that names a set of items and does not rank the others."""
    return Guess(items.astype(np.float32), items.sum(axis=1, dtype=np.int64))


def claim_typical(scores: FloatMatrix, typical_size: int) -> Guess:
    """The answer of an attack that only ranks: it claims as many items as a client has on average."""
    return Guess(scores, np.full(len(scores), typical_size, dtype=np.int64))


def standardised(scores: FloatMatrix) -> FloatMatrix:
    """Each user's scores with mean 0 and deviation 1; all zero where they are all the same."""
    centred = scores - scores.mean(axis=1, keepdims=True)
    deviation: FloatMatrix = centred.std(axis=1, keepdims=True)
    result: FloatMatrix = centred / np.where(deviation > 0, deviation, 1)
    return result


_ROUNDING = 1e-9


class Marks(NamedTuple):
    """An attack's marks, one value per user; not a number where there is nothing to judge."""

    precision: RealVector
    recall: RealVector
    f1: RealVector
    auc: RealVector
    precision_held_back: RealVector
    recall_held_back: RealVector
    f1_held_back: RealVector
    auc_held_back: RealVector


def judge(guess: Guess, profiles: list[IntVector], sent: NDArray[np.bool_]) -> Marks:
    """The marks of a guess about users with these histories; `sent` says which items left as positives."""
    owned = np.array([len(profile) for profile in profiles])
    sums = np.zeros((5, len(profiles)))
    _judge_users(guess, np.sort(guess.scores, axis=1), np.cumsum(owned) - owned, np.concatenate(profiles), sent, sums)
    hits, beaten, beaten_held_back, held_back, hits_held_back = sums
    other_claims = guess.sizes - (hits - hits_held_back)
    other_claims[other_claims < _ROUNDING] = 0
    with np.errstate(invalid="ignore"):  # nothing claimed, or nothing held back: not a number
        return Marks(
            precision=hits / guess.sizes,
            recall=hits / owned,
            f1=2 * hits / (guess.sizes + owned),
            auc=beaten / owned,
            precision_held_back=hits_held_back / other_claims,
            recall_held_back=hits_held_back / held_back,
            f1_held_back=2 * hits_held_back / (other_claims + held_back),
            auc_held_back=beaten_held_back / held_back,
        )


@compiled
def _judge_users(
    guess: Guess, ordered: FloatMatrix, starts: LongVector, items: IntVector, sent: Any, sums: Any
) -> None:
    """Of each user's items: how many are claimed, the shares of other items they beat, the same held back."""
    n_items = ordered.shape[1]
    for user in range(len(ordered)):
        end = starts[user + 1] if user + 1 < len(starts) else len(items)
        profile = items[starts[user] : end]
        own = np.sort(guess.scores[user][profile])
        for item in profile:
            score = guess.scores[user, item]
            lower = np.searchsorted(ordered[user], score)
            upper = np.searchsorted(ordered[user], score, "right")
            own_lower, own_upper = np.searchsorted(own, score), np.searchsorted(own, score, "right")
            below, tied = lower - own_lower, (upper - lower) - (own_upper - own_lower)
            beaten = (below + tied / 2) / (n_items - len(profile))
            left = guess.sizes[user] - (n_items - upper)
            claimed = min(max(left / (upper - lower), 0.0), 1.0)
            sums[0, user] += claimed
            sums[1, user] += beaten
            if not sent[user, item]:
                sums[2, user] += beaten
                sums[3, user] += 1
                sums[4, user] += claimed


# Marks of all attacks side by side: means over users, the gain over popularity, and which attack is the best.


Means = dict[str, dict[str, float | None]]


def means_of(marks: dict[str, list[Marks]]) -> Means:
    """Each attack's mean marks, and by how much its order is better than popularity's, or chance's if that is worse."""
    results: Means = {}
    all_joined: dict[str, Marks] = {}
    for name, parts in marks.items():
        joined = Marks(*(np.concatenate(column) for column in zip(*parts, strict=True)))
        all_joined[name] = joined
        means = {mark: _mean(values) for mark, values in joined._asdict().items()}
        # An attack that claims nothing about anyone is right about nothing.
        results[name] = means | {"precision": means["precision"] or 0.0}
    for mark, gain in (("auc", "gain"), ("auc_held_back", "gain_held_back")):
        known = results[BASELINE][mark]
        for name, means in results.items():
            value = means[mark]
            means[gain] = None if value is None or known is None else value - max(known, 0.5)
            own, others = getattr(all_joined[name], mark), getattr(all_joined[BASELINE], mark)
            workspace = None if known is None else _half_interval(own - others if known > 0.5 else own)
            middle = means[gain]
            means[f"{gain}_low"] = None if middle is None or workspace is None else middle - workspace
            means[f"{gain}_high"] = None if middle is None or workspace is None else middle + workspace
    return results


def best_of(attacks: Means) -> dict[str, Any]:
    """The headline: the attack with the best order of all, and the one with the best order of what was held back."""
    best: dict[str, Any] = {}
    for mark, gain in (("auc", "gain"), ("auc_held_back", "gain_held_back")):
        judged = {name: means[mark] for name, means in attacks.items() if means[mark] is not None and name != BASELINE}
        name = max(judged, key=lambda attack: judged[attack] or 0.0) if judged else None
        best |= {f"by_{mark}": name, mark: judged.get(name or "")}
        best |= {part: attacks[name][part] if name else None for part in (gain, f"{gain}_low", f"{gain}_high")}
    return best


def _mean(values: NDArray[np.float64]) -> float | None:
    judged = values[~np.isnan(values)]
    return float(judged.mean()) if len(judged) else None


def _half_interval(values: NDArray[np.float64]) -> float | None:
    """Half the width of the 95 % interval of a mean over users; unknown for fewer than two."""
    judged = values[~np.isnan(values)]
    return float(1.96 * judged.std(ddof=1) / np.sqrt(len(judged))) if len(judged) > 1 else None


# Attribute inference: what kinds of items does someone like, if the guess about their items is taken for true?


Shares = NDArray[np.float64]
_TINY = 1e-12


def table_of(categories: Categories) -> Shares:
    """Items x categories: 1 where an item belongs to a category."""
    table = np.zeros((len(categories), len(categories.names)))
    table[np.repeat(np.arange(len(categories)), np.diff(categories.starts)), categories.codes] = 1
    return table


def shares_of(items: NDArray[np.bool_], table: Shares) -> Shares:
    """Users x categories: how much of each one's items falls to each category; an item in several counts in each."""
    counts: Shares = items.astype(np.float32) @ table
    shares: Shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    return shares


def judge_shares(
    guess: Guess, histories: list[IntVector], table: Shares, typical_size: int
) -> list[tuple[float, float]]:
    """Error and correlation of the guessed shares, user by user; users without any category are left out."""
    n_items = guess.scores.shape[1]
    owned, claimed = (np.zeros(guess.scores.shape, dtype=np.bool_) for _ in range(2))
    for row, history in enumerate(histories):
        owned[row, history] = True
        size = int(min(guess.sizes[row] or typical_size, n_items))
        claimed[row, np.argpartition(guess.scores[row], n_items - size)[n_items - size :]] = True
    truth, guessed = shares_of(owned, table), shares_of(claimed, table)
    errors = np.abs(truth - guessed).mean(axis=1)
    one, other = (shares - shares.mean(axis=1, keepdims=True) for shares in (truth, guessed))
    lengths = np.sqrt((one**2).sum(axis=1) * (other**2).sum(axis=1))
    correlations = np.where(lengths > 0, (one * other).sum(axis=1) / np.maximum(lengths, _TINY), 0.0)
    judged = truth.any(axis=1)
    return list(zip(errors[judged].tolist(), correlations[judged].tolist(), strict=True))


THREAT_MODELS = {
    "updates": "each client's uploads, linkable over rounds, and the public model",
    "anonymous": "one upload at a time, from a client it cannot recognise again, and the public model",
    "sums": "the sum over each round's clients, who they were, and the public model",
    "outsider": "the public model before and after each round, and so the round's sum; not who was in it",
}
"""What the server sees, or someone outside who fetches the model around every round."""


@dataclass(frozen=True, kw_only=True)
class Findings:
    """What the attacks have found by the end of an epoch: means over the users followed."""

    epoch: int
    disclosed_share: float
    base_rate: float
    attacks: Means
    best: dict[str, Any]
    categories: dict[str, dict[str, float]] | None
    ratings: dict[str, dict[str, float]] | None = None


class Audited(NamedTuple):
    """A complete audit."""

    findings: list[Findings]
    """Of each epoch that was looked at; the last is that of the full run."""
    about: dict[str, Any]
    """What the server saw, whom it followed, and how long that took."""


def about_audit(
    data: Interactions,
    *,
    sees: str,
    threat_model: str,
    cohort: int,
    followed: int,
    attacked: int,
    shadows: int,
    rounds: int,
    training_seconds: float,
    audit_seconds: float,
) -> dict[str, Any]:
    """A description of the audit itself."""
    return {
        "sees": sees,
        "threat_model": threat_model,
        "cohort": cohort,
        "data": data.name,
        "users": data.n_users,
        "items": data.n_items,
        "people_followed": followed,
        "people_attacked": attacked,
        "attackers_own_devices": shadows,
        "rounds": rounds,
        "seconds": {"training": training_seconds, "audit": audit_seconds},
    }
