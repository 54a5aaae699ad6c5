"""Attack, then judge: every attack sees the same views, and its guesses are held against true histories."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from federank import extensions
from federank._numerics.arrays import FloatMatrix, IntVector, RealVector
from federank.audit.scoring import Attack, Findings, Guess, Marks, Means, best_of, judge, means_of
from federank.checks import check_choice, check_int
from federank.data.interactions import Interactions
from federank.errors import SettingError
from federank.privacy.policy import decoy_rate
from federank.privacy.population import Choices

BLOCK_CELLS = 2**20
"""Users are attacked a block at a time: this many (user, item) cells at most."""


class Attacked(NamedTuple):
    """A block of users: what the server knows of them, and what is true."""

    view: Any
    histories: list[IntVector]
    sent: NDArray[np.bool_]  # users x items: what of their histories has left their clients


def judge_attacks(
    attacks: Mapping[str, Attack],
    users: Iterable[Attacked],
    note: Callable[[str, Guess, Attacked], None] | None = None,
) -> Means:
    """Each attack's mean marks; every guess is also shown to `note`, where it is given."""
    marks: dict[str, list[Marks]] = {name: [] for name in attacks}
    for some in users:
        for name, attack in attacks.items():
            guess = attack(some.view)
            marks[name].append(judge(guess, some.histories, some.sent))
            if note is not None:
                note(name, guess, some)
    return means_of(marks)


def judge_everyone(
    epoch: int,
    data: Interactions,
    users: IntVector,
    sent: NDArray[np.bool_],
    attacks: Mapping[str, Attack],
    view_of: Callable[[IntVector], Any],
) -> Findings:
    """What these attacks find about these users, a block at a time; `sent` has a row for each of them."""
    everyone, sizes = np.arange(len(users), dtype=np.int32), data.profiles.sizes[users]
    blocks = (
        Attacked(view_of(rows), [data.profiles.of(user) for user in users[rows]], sent[rows])
        for rows in in_blocks(everyone, data.n_items)
    )
    means = judge_attacks(attacks, blocks)
    return Findings(
        epoch=epoch,
        disclosed_share=float(np.mean(sent.sum(axis=1) / np.maximum(sizes, 1))),
        base_rate=float(np.mean(sizes) / data.n_items),
        attacks=means,
        best=best_of(means),
        categories=None,
    )


def in_blocks(rows: IntVector, n_items: int) -> Iterable[IntVector]:
    """These rows, a block at a time."""
    size = max(1, BLOCK_CELLS // n_items)
    return (rows[start : start + size] for start in range(0, len(rows), size))


def refuse_no_users(wanted: int | None) -> None:
    """Anyone who says how many users to follow must say at least one."""
    if wanted is not None:
        check_int("people", wanted, 1)


def draw_users(seed: int, participants: IntVector, wanted: int | None) -> IntVector:
    """Everyone who can take part, in the order in which they are picked to be followed."""
    refuse_no_users(wanted)
    return np.random.default_rng(seed).permutation(participants)


class KnownPolicies(NamedTuple):
    """What a server may know of each user's policy: its kind and its numbers, not what it does to which item."""

    liked: RealVector  # users: the probability that an item of theirs is ever sent as liked, where it is drawn once
    unliked: RealVector  # users: the same of an item they do not have; 0 where there are no decoys
    excluding: NDArray[np.bool_]  # users: whether their negatives are never items of their own


def known_policies(choices: Choices, users: IntVector) -> KnownPolicies:
    """What is public about these users' policies."""
    pi = choices.pi[users]
    never = np.array([policy.item_epsilon is None for policy in choices.kinds])[choices.of_user[users]]
    epsilons = np.array([policy.item_epsilon or 1.0 for policy in choices.kinds])[choices.of_user[users]]
    unliked = np.array([0.0 if no else decoy_rate(p, e) for no, p, e in zip(never, pi, epsilons, strict=True)])
    excluding = np.array([policy.basis == "history" for policy in choices.kinds])[choices.of_user[users]]
    return KnownPolicies(pi, unliked, excluding)


class Senders:
    """Everyone's sent items, as far as they are followed: what to compare a user with."""

    def __init__(self, times_positive: NDArray[np.uint8], rows: IntVector) -> None:
        self._rows = rows
        sent = sparse.csr_matrix(times_positive[rows] > 0, dtype=np.float32)
        norms = np.sqrt(np.asarray(sent.sum(axis=1)).ravel())
        self._alike = sparse.diags(1 / np.maximum(norms, 1)).astype(np.float32) @ sent

    def scores(self, times_positive: NDArray[np.uint8], rows: IntVector) -> FloatMatrix:
        """What those send who send like these users, who are rows of the same notes."""
        sent = sparse.csr_matrix(times_positive > 0, dtype=np.float32)
        likeness = np.asarray((sent @ self._alike.T).todense())
        likeness[rows[:, None] == self._rows[None, :]] = 0
        scores: FloatMatrix = np.asarray(likeness @ self._alike, dtype=np.float32)
        return scores


# Attacks from outside: one more way to guess histories, run and judged beside ours.


VIEWS = ("fpl", "fedrec", "frugal", "updates")
"""Whose views an attack can understand: those of a method, or the generic ones."""


def attack(*, on: str, sees: Sequence[str] = ("updates",)) -> Callable[[Attack], Attack]:
    """Say of a function which views it understands: of which method, and of which servers."""
    check_choice("on", on, VIEWS)
    if isinstance(sees, str):
        raise SettingError(f"sees is {sees!r}; a list of servers is needed, such as [{sees!r}].")

    def marked(function: Attack) -> Attack:
        function.on, function.sees = on, tuple(sees)  # type: ignore[attr-defined]
        return function

    return marked


def register_attack(function: Attack, name: str | None = None) -> Attack:
    """Make an attack of your own part of every audit that it understands, for this process."""
    called = str(name or getattr(function, "__name__", ""))
    _checked(function, called)
    extensions.add("attacks", called, function)
    return function


def with_own_attacks(ours: dict[str, Attack], views: str, sees: str) -> dict[str, Attack]:
    """The attacks on these views of this server: ours, then those from outside."""
    result = dict(ours)
    for name, function in extensions.found("attacks").items():
        _checked(function, name)
        if function.on == views and sees in function.sees:
            if name in ours:
                raise SettingError(f"An attack from outside is called {name!r}, as one of ours; rename it.")
            result[name] = _judged(function, name)
    return result


def _checked(function: Any, name: str) -> None:
    if not callable(function) or not hasattr(function, "on"):
        raise SettingError(f"The attack {name!r} does not say what it understands; decorate it with fr.attack(on=...).")


def _judged(function: Attack, name: str) -> Attack:
    """The same attack, its answers checked."""

    def asked(view: Any) -> Guess:
        guess = function(view)
        if not isinstance(guess, Guess):
            raise SettingError(
                f"The attack {name!r} answered with a {type(guess).__name__}; a federank.Guess is needed."
            )
        scores, sizes = np.asarray(guess.scores, np.float32), np.asarray(guess.sizes, np.int64)
        if scores.ndim != 2 or sizes.shape != scores.shape[:1] or np.isnan(scores).any():
            raise SettingError(
                f"The attack {name!r} answered with scores of shape {scores.shape} and sizes of shape {sizes.shape}; "
                "users x items, without gaps, and a number for each user are needed."
            )
        return Guess(scores, sizes)

    return asked
