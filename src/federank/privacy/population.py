"""The policies and shared profiles of all users: `policy.py` for a population.

Many users choose alike, so choices are stored as a few *kinds* of policy, the kind of each user, and each user's pi.
`shared_profiles_of_all` gives the same rows as `shared_profile`, fast enough for a million users. If no user restricts
anything, histories are used directly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from federank._numerics.arrays import IntVector, LongVector, RealVector
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

if TYPE_CHECKING:
    from federank.data.interactions import Profiles


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
    from federank.data.interactions import Profiles

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
    active = ~choices.where(policy.paused for policy in choices.kinds)
    answers = active & choices.where(policy.sharing == "randomized-response" for policy in choices.kinds)
    brought = active & choices.where(policy.brought for policy in choices.kinds)
    complete = choices.where(policy.basis == "history" for policy in choices.kinds)
    kept = (active & ~answers & ~brought)[users] & (complete[users] | allowed)
    rows = [(users[kept], items[kept], np.ones(np.count_nonzero(kept), dtype=np.bool_), allowed[kept])]
    from federank.data.interactions import Profiles

    candidates = Profiles(np.searchsorted(users[may], np.arange(len(choices) + 1)), items[may])
    rows += _answers(choices, seed, np.flatnonzero(answers), candidates, n_items)
    for user in np.flatnonzero(brought).tolist():
        profile, real, may_leave, _ = updated_shared_profile(choices.of(user), seed, user, candidates.of(user), n_items)
        rows.append((np.full(len(profile), user), profile, real, may_leave))
    users, items, real, allowed = (np.concatenate(column) for column in zip(*rows, strict=True))
    order = np.lexsort((items, users))
    return SharedProfiles(
        np.searchsorted(users[order], np.arange(len(choices) + 1)).astype(np.int64),
        items[order].astype(np.int32),
        real[order],
        np.zeros(0, dtype=np.bool_) if allowed.all() else allowed[order],
        choices.where(policy.sharing != "all" for policy in choices.kinds),
    )


_CELLS_AT_A_TIME = 2**22


def _answers(
    choices: Choices, seed: int, users: LongVector, candidates: Profiles, n_items: int
) -> Iterator[tuple[LongVector, IntVector, Flags, Flags]]:
    """What randomized response says about every item of the catalogue: users, items, whether each is real, and that
    it may leave."""
    epsilons = choices.where(policy.item_epsilon or 0.0 for policy in choices.kinds)
    rates = np.array([decoy_rate(choices.pi[user], epsilons[user]) for user in users])
    at_once = max(1, _CELLS_AT_A_TIME // n_items)
    for start in range(0, len(users), at_once):
        some = users[start : start + at_once]
        liked = np.zeros((len(some), n_items), dtype=np.bool_)
        for row, user in enumerate(some.tolist()):
            liked[row, candidates.of(user)] = True
        chances = np.where(liked, choices.pi[some, None], rates[start : start + at_once, None])
        places, items = np.nonzero(happens(randomized_response_words(seed, some, n_items), chances))
        yield some[places], items.astype(np.int32), liked[places, items], np.ones(len(items), dtype=np.bool_)


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
