"""Everyone's policies as arrays, for the devices' part of a model's folder.

A few kinds of policy, the kind of each person and their own pi; never-lists are rows of a sparse matrix, one per kind.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from federank.errors import ModelError, SettingError
from federank.protocol.policies.choices import Choices
from federank.protocol.policies.policy import BASES, SHARING, Policy
from federank.recommenders.recommender import Arrays

_NONE = -1


def choices_as_arrays(choices: Choices) -> Arrays:
    """What `choices_from_arrays` reads."""
    kinds = choices.kinds
    names = [*SHARING, *dict.fromkeys(kind.sharing for kind in kinds if kind.brought)]
    brought = np.frombuffer("\n".join(names[len(SHARING) :]).encode(), dtype=np.uint8)
    return {
        "pi": choices.pi,
        "policy_of_user": choices.of_user,
        "policy_names": brought,
        "policy_sharing": np.array([names.index(kind.sharing) for kind in kinds], dtype=np.int32),
        "policy_basis": np.array([BASES.index(kind.basis) for kind in kinds], dtype=np.int32),
        "policy_epsilon": np.array([_NONE if kind.epsilon is None else kind.epsilon for kind in kinds], np.float64),
        "policy_budget": np.array([_NONE if kind.budget is None else kind.budget for kind in kinds], np.int64),
        "policy_messages": np.array([_NONE if kind.messages is None else kind.messages for kind in kinds], np.int64),
        "policy_triples": np.array([_NONE if kind.triples is None else kind.triples for kind in kinds], np.int64),
        "policy_paused": np.array([kind.paused for kind in kinds], dtype=np.uint8),
        "never_starts": np.cumsum([0, *(len(kind.never_items) for kind in kinds)], dtype=np.int64),
        "never_items": np.array([item for kind in kinds for item in sorted(kind.never_items)], dtype=np.int32),
    }


def choices_from_arrays(arrays: Arrays, n_users: int, if_none: Policy) -> Choices:
    """Everyone's policies out of a model's folder; `if_none` where it tells nothing but everyone's pi."""
    pi = arrays.get("pi")
    if pi is None or pi.shape != (n_users,) or pi.dtype != np.float64 or not np.all((pi >= 0) & (pi <= 1)):
        raise ModelError("The model's folder lacks the users' own pi, or has it for other users.")
    if "policy_of_user" not in arrays:
        return Choices.alike(if_none, pi)
    try:
        of_user, kinds = arrays["policy_of_user"], tuple(_kinds(arrays))
        if (
            of_user.shape != (n_users,)
            or of_user.dtype != np.int32
            or of_user.min(initial=0) < 0
            or of_user.max(initial=-1) >= len(kinds)
        ):
            raise ModelError("The model's folder has policies of other users.")
        return Choices(kinds, of_user, pi)
    except (KeyError, IndexError, ValueError, TypeError, SettingError) as reason:
        raise ModelError(f"The policies in the model's folder cannot be read ({reason}).") from reason


def _kinds(arrays: Arrays) -> list[Policy]:
    starts, never = arrays["never_starts"], arrays["never_items"]
    stored = ("sharing", "basis", "epsilon", "budget", "paused", "messages", "triples")
    content = {name: arrays[f"policy_{name}"].tolist() for name in stored}
    names = [*SHARING, *arrays["policy_names"].tobytes().decode().split("\n")]
    return [
        Policy(
            sharing=names[sharing],
            pi=0.5,
            epsilon=None if epsilon == _NONE else float(epsilon),
            basis=cast(Any, BASES[basis]),
            never_items=frozenset(never[starts[kind] : starts[kind + 1]].tolist()),
            budget=None if budget == _NONE else int(budget),
            messages=None if messages == _NONE else int(messages),
            triples=None if triples == _NONE else int(triples),
            paused=bool(paused),
        )
        for kind, (sharing, basis, epsilon, budget, paused, messages, triples) in enumerate(
            zip(*content.values(), strict=True)
        )
    ]
