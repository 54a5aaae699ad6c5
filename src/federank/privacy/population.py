"""The policies and shared profiles of all users: `policy.py` for a population.

Many users choose alike, so choices are stored as a few *kinds* of policy, the kind of each user, and each user's pi.
`shared_profiles_of_all` gives the same rows as `shared_profile`, fast enough for a million users. If no user restricts
anything, histories are used directly.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from federank._numerics.arrays import IntVector, LongVector, RealVector
from federank._numerics.compiling import compiled
from federank.data.interactions import Profiles
from federank.errors import SettingError
from federank.federation.rng import happens
from federank.privacy.policy import (
    Flags,
    Policy,
    SharedProfile,
    decoy_rate,
    randomized_response_words,
    updated_shared_profile,
    words_of_items,
)


@dataclass(frozen=True, eq=False)
class Choices:
    """The policies of all users."""

    kinds: tuple[Policy, ...]
    of_user: IntVector  # the kind of each user
    pi: RealVector  # per user, instead of the kind's

    @classmethod
    def alike(cls, policy: Policy, pi: RealVector) -> Choices:
        """The same policy for all users, each with their own pi."""
        return cls((policy,), np.zeros(len(pi), dtype=np.int32), pi)

    @classmethod
    def of_users(cls, policies: Sequence[Policy]) -> Choices:
        """Each user's own policy, in the order of the users."""
        kinds = tuple(dict.fromkeys(policies))
        number = {kind: position for position, kind in enumerate(kinds)}
        of_user = np.array([number[policy] for policy in policies], dtype=np.int32)
        return cls(kinds, of_user, np.array([policy.pi for policy in policies], dtype=np.float64))

    def __post_init__(self) -> None:
        randomized_response = self.where(policy.sharing == "randomized-response" for policy in self.kinds)
        if np.any(randomized_response & (self.pi >= 1)):
            raise SettingError(
                "Randomized response with a pi of 1: what is not seen is then surely not liked; choose less than 1."
            )

    def __len__(self) -> int:
        return len(self.of_user)

    def of(self, user: int) -> Policy:
        """One user's policy."""
        kind: Policy = self.kinds[int(self.of_user[user])]
        return replace(kind, pi=float(self.pi[user]))

    def where(self, of_kinds: Iterable[Any]) -> np.ndarray[Any, Any]:
        """A value per kind, as a value per user."""
        values: np.ndarray[Any, Any] = np.array(list(of_kinds))[self.of_user]
        return values

    @property
    def at_home(self) -> Flags:
        """Users whose recommendations come from a local fold-in, because their trained vector does not follow their
        history."""
        return self.where(policy.basis == "shared" or policy.paused for policy in self.kinds)


class SharedProfiles(NamedTuple):
    """The shared profiles of all users, as rows of a sparse matrix. An empty array means: as the histories."""

    starts: LongVector  # empty: the histories
    items: IntVector
    real: Flags  # empty: all real
    allowed: Flags  # empty: all allowed
    lifelong: Flags  # per user; empty: none


AS_HISTORIES_ARE = SharedProfiles(
    np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, np.bool_), np.zeros(0, np.bool_), np.zeros(0, np.bool_)
)
"""No user restricts anything, except by pi."""


def all_shared_items(shared_profiles: SharedProfiles, histories: Profiles) -> Profiles:
    """The shared profiles as histories."""
    return Profiles(shared_profiles.starts, shared_profiles.items) if len(shared_profiles.starts) else histories


def shared_profile_of(shared_profiles: SharedProfiles, histories: Profiles, user: int) -> SharedProfile:
    """One user's shared profile."""
    profiles = all_shared_items(shared_profiles, histories)
    profile = profiles.of(user).copy()
    here = slice(profiles.starts[user], profiles.starts[user + 1])
    everything = np.ones(len(profile), dtype=np.bool_)
    return SharedProfile(
        profile,
        shared_profiles.real[here].copy() if len(shared_profiles.real) else everything,
        shared_profiles.allowed[here].copy() if len(shared_profiles.allowed) else everything,
        bool(len(shared_profiles.lifelong) and shared_profiles.lifelong[user]),
    )


def coins(choices: Choices) -> RealVector:
    """Per user, the probability that an allowed positive is sent: 1 for lifetime decisions."""
    published = choices.where(policy.sharing == "all" for policy in choices.kinds)
    return np.where(published, choices.pi, 1.0)


def shared_profiles_of_all(choices: Choices, seed: int, histories: Profiles, n_items: int) -> SharedProfiles:
    """The shared profiles of all users; empty for paused users."""
    if all(
        policy.sharing == "all"
        and policy.basis == "history"
        and not policy.never_items
        and policy.budget is None
        and not policy.paused
        for policy in choices.kinds
    ):
        return AS_HISTORIES_ARE
    users = np.repeat(np.arange(len(choices), dtype=np.int64), histories.sizes)
    items = np.array(histories.items)
    may = ~_never(choices, users, items, n_items)
    allowed = _allowed(choices, seed, histories, users, items, may)
    randomized_response = choices.where(
        policy.sharing == "randomized-response" and not policy.paused for policy in choices.kinds
    )
    all_of_it = choices.where(policy.basis == "history" and not policy.paused for policy in choices.kinds)
    only_allowed = (
        choices.where(policy.basis == "shared" and not policy.paused for policy in choices.kinds) & ~randomized_response
    )
    kept = all_of_it[users] | (only_allowed[users] & allowed)
    sizes = np.bincount(users[kept], minlength=len(choices))
    rates = choices.pi, _decoy_rates(choices)
    may_starts = np.concatenate(([0], np.cumsum(np.bincount(users[may], minlength=len(choices)))))
    liked = may_starts.astype(np.int64), items[may]
    _answer(seed, np.flatnonzero(randomized_response), *liked, *rates, n_items, sizes, np.zeros(0, np.int64), *_NOTHING)
    starts = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    shared_items = np.empty(starts[-1], dtype=np.int32)
    real, may_leave = np.ones(starts[-1], dtype=np.bool_), np.ones(starts[-1], dtype=np.bool_)
    _answer(seed, np.flatnonzero(randomized_response), *liked, *rates, n_items, sizes, starts, shared_items, real)
    positions = ~np.repeat(randomized_response, sizes)
    shared_items[positions], may_leave[positions] = items[kept], allowed[kept]
    made = SharedProfiles(
        starts,
        shared_items,
        real,
        np.zeros(0, dtype=np.bool_) if may_leave.all() else may_leave,
        choices.where(policy.sharing != "all" for policy in choices.kinds),
    )
    return _with_brought(made, choices, seed, histories, n_items)


def _with_brought(
    made: SharedProfiles, choices: Choices, seed: int, histories: Profiles, n_items: int
) -> SharedProfiles:
    """The same with the rows of registered policies, computed one by one."""
    brought = choices.where(policy.brought and not policy.paused for policy in choices.kinds)
    if not brought.any():
        return made
    rows = [shared_profile_of(made, histories, user) for user in range(len(choices))]
    for user in np.flatnonzero(brought):
        policy, history = choices.of(int(user)), histories.of(int(user))
        may = ~np.isin(history, list(policy.never_items))
        rows[user] = updated_shared_profile(policy, seed, int(user), history[may], n_items)
    starts = np.concatenate(([0], np.cumsum([len(row.profile) for row in rows]))).astype(np.int64)
    items, real, allowed = (np.concatenate([row[part] for row in rows]) for part in range(3))
    return SharedProfiles(starts, items, real, allowed[:0] if allowed.all() else allowed, made.lifelong)


_NOTHING = np.zeros(0, np.int32), np.zeros(0, np.bool_)


def _never(choices: Choices, users: LongVector, items: IntVector, n_items: int) -> Flags:
    """Which entries of histories are on their owner's never-list."""
    keys = np.array(
        sorted(kind * n_items + item for kind, policy in enumerate(choices.kinds) for item in policy.never_items),
        dtype=np.int64,
    )
    return np.isin(choices.of_user[users].astype(np.int64) * n_items + items, keys)


def _allowed(
    choices: Choices, seed: int, histories: Profiles, users: LongVector, items: IntVector, may: Flags
) -> Flags:
    """Which entries of histories may ever be sent, without randomized response."""
    candidates = np.bincount(users[may], minlength=len(choices))
    fixed_subset = choices.where(policy.sharing == "fixed-subset" for policy in choices.kinds)
    most = np.where(fixed_subset, np.ceil(choices.pi * candidates - 1e-9), candidates)
    budgets = choices.where(np.inf if policy.budget is None else policy.budget for policy in choices.kinds)
    order = np.lexsort((words_of_items(seed, users, items), ~may, users))
    rank = np.arange(len(order)) - histories.starts[users]
    allowed = np.zeros(len(order), dtype=np.bool_)
    allowed[order[rank < np.minimum(most, budgets)[users]]] = True
    return allowed


def _decoy_rates(choices: Choices) -> RealVector:
    randomized_response = {
        kind: policy.item_epsilon for kind, policy in enumerate(choices.kinds) if policy.item_epsilon is not None
    }
    rates = np.zeros(len(choices))
    for user in np.flatnonzero(np.isin(choices.of_user, list(randomized_response))):
        rates[user] = decoy_rate(choices.pi[user], randomized_response[int(choices.of_user[user])])
    return rates


@compiled
def _answer(
    seed: int,
    users: LongVector,
    liked_starts: LongVector,
    liked: IntVector,
    pi: RealVector,
    q: RealVector,
    n_items: int,
    sizes: LongVector,
    starts: LongVector,
    items: IntVector,
    real: Flags,
) -> None:
    """The decisions about all items: without `starts`, only how many are sent; with them, which, and which are real."""
    drawn = np.empty(n_items, np.uint32)
    for user in users:
        randomized_response_words(seed, user, drawn)
        position, end, count = liked_starts[user], liked_starts[user + 1], 0
        for item in range(n_items):
            likes = position < end and liked[position] == item
            position += likes
            if happens(drawn[item], pi[user] if likes else q[user]):
                if len(starts) > 0:
                    items[starts[user] + count] = item
                    real[starts[user] + count] = likes
                count += 1
        sizes[user] = count
