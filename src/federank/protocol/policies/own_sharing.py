"""Ways of sharing from outside: what stands for a history outwards, decided by somebody else's function.

    def first_three(history, pi, n_items, rng):
        return history[:3]

    register_policy(first_three)          # fit(..., sharing="first_three"), --sharing first_three, a file of policies

`history` are the owner's items, ascending, without those on the never-list; the answer are the items that the device
takes part with in their place: some of them, or others too (decoys). `rng` is named by the federation's seed and the
person alone, so the same history gets the same answer in every round of a life: asking again reveals nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from federank import extensions
from federank.arrays import IntVector
from federank.checks import one_of
from federank.errors import SettingError

OwnSharing = Callable[[IntVector, float, int, np.random.Generator], Any]
"""history, pi, number of items, random numbers -> the items that stand for the history."""


def known_sharing(sharing: str, ours: tuple[str, ...]) -> None:
    """Refuse a way of sharing that is neither one of ours nor registered."""
    if sharing not in extensions.names("policies"):
        one_of("sharing", sharing, (*ours, *extensions.names("policies")))


def register_policy(sharing: OwnSharing, name: str | None = None) -> OwnSharing:
    """Make a way of sharing of your own known by its function's name, for this process; also as a decorator."""
    called = str(name or getattr(sharing, "__name__", ""))
    if called in ("as-published", "sticky", "deniable"):
        raise SettingError(f"{called!r} is a way of sharing that is here already; give yours another name.")
    if not callable(sharing):
        raise SettingError(f"{sharing!r} cannot be a way of sharing; a function of (history, pi, n_items, rng) is.")
    extensions.add("policies", called, sharing)
    return sharing


def own_profile(sharing: str, pi: float, seed: int, user: int, history: IntVector, n_items: int) -> IntVector:
    """What stands for a history outwards by a way of sharing from outside, once it is sure to be items."""
    decide = extensions.find("policies", sharing)
    if decide is None:
        raise SettingError(f"The way of sharing {sharing!r} is not registered here; install the package that has it.")
    answer = np.asarray(decide(history, pi, n_items, np.random.default_rng([seed, user, 0x5A5A])))
    if answer.ndim != 1 or (answer.size and answer.dtype.kind not in "iu"):
        raise SettingError(f"The way of sharing {sharing!r} answered with {answer!r}; a row of item numbers is needed.")
    profile: IntVector = np.unique(answer).astype(np.int32)
    if len(profile) and (profile[0] < 0 or profile[-1] >= n_items):
        raise SettingError(f"The way of sharing {sharing!r} named an item outside 0 to {n_items - 1}.")
    return profile
