"""What everybody allows: by the run's settings, by a file of policies, or by a list of them from Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from federank.arrays import IntVector, RealVector
from federank.data.interactions import Interactions
from federank.errors import SettingError
from federank.protocol.policies.choices import Choices
from federank.protocol.policies.policy import Policy
from federank.recommenders.people.policies import read_choices
from federank.recommenders.people.shares import read_pi


class Suggests(Protocol):
    """Settings of a method whose people choose what they share."""

    @property
    def pi(self) -> Any:
        """A number for everybody, a file, or from Python a number for each user."""
        ...

    @property
    def policies(self) -> str | None:
        """A file of who chooses what."""
        ...

    @property
    def seed(self) -> int:
        """Names the run."""
        ...

    def policy(self, pi: float) -> Policy:
        """What everybody allows who has made no choice of their own."""
        ...


Policies = Sequence[Policy] | Mapping[Any, Policy | float]
"""What was chosen from Python: everybody's policy in the sorted order of their ids, or some people's by their id."""


def choices_for(settings: Suggests, train: Interactions, policies: Policies | None) -> Choices:
    """Everybody's policies; those given from Python go before what the settings suggest."""
    if isinstance(policies, Mapping):
        policies = _by_id(settings, train, policies)
    if policies is not None:
        if settings.policies is not None:
            raise SettingError("Policies are given twice, as a file and as a list; one of them is needed.")
        if len(policies) != train.n_users or not all(isinstance(policy, Policy) for policy in policies):
            raise SettingError(
                f"policies has {len(policies):,} entries; a Policy is needed for each of {train.n_users:,} users."
            )
        return Choices.of_people(policies)
    pi = shares_of(settings.pi, train)
    usual = settings.policy(0.5)
    if settings.policies is None:
        return Choices.alike(usual, pi)
    everybody = {name: getattr(usual, name) for name in ("sharing", "epsilon", "budget")}
    everybody["basis"] = getattr(settings, "basis", usual.basis)  # "default" follows a person's own sharing
    return read_choices(settings.policies, everybody, pi, train, settings.seed)[0]


def _by_id(settings: Suggests, train: Interactions, chosen: Mapping[Any, Policy | float]) -> list[Policy]:
    """Everybody's policy, where some have chosen one, or a pi alone, and the others take what the settings suggest."""
    everybody = [settings.policy(float(pi)) for pi in shares_of(settings.pi, train)]
    for user, choice in chosen.items():
        if isinstance(choice, bool) or not isinstance(choice, Policy | int | float | np.number):
            raise SettingError(f"The choice of user {user!r} is {choice!r}; a pi from 0 to 1 or a Policy is needed.")
        number = train.user_index(user)
        everybody[number] = choice if isinstance(choice, Policy) else settings.policy(float(choice))
    return everybody


def messages_allowed(choices: Choices) -> IntVector:
    """How many messages each person allows in their life; a number beyond all rounds where they set no bound."""
    most = np.iinfo(np.int32).max
    allowed: IntVector = choices.where(most if kind.messages is None else kind.messages for kind in choices.kinds)
    return allowed


def refuse_coins(choices: Choices) -> None:
    """Refuse sharing as published where messages are few."""
    for kind in choices.kinds:
        if kind.sharing == "as-published":
            raise SettingError(
                "Somebody shares as published, with a coin that is tossed anew for every message: what is held back "
                "today is sent tomorrow. A method of few messages takes sticky or deniable sharing."
            )


def shares_of(pi: object, train: Interactions) -> RealVector:
    """Each user's own pi."""
    if isinstance(pi, float | int):
        return np.full(train.n_users, float(pi))
    if isinstance(pi, str):
        return read_pi(pi, train)
    if isinstance(pi, Mapping):
        return _pi_by_id(pi, train)
    try:
        values = np.asarray(pi, dtype=np.float64)
    except (TypeError, ValueError) as reason:
        raise SettingError(f"pi is not a number, a file, or a number for each user: {reason}.") from reason
    if values.shape != (train.n_users,):
        raise SettingError(
            f"pi is of shape {values.shape}; one number for each of the {train.n_users:,} users is needed."
        )
    return values


def _pi_by_id(chosen: Mapping[Any, Any], train: Interactions) -> RealVector:
    """Everybody's pi by their id; all must have one."""
    values = np.full(train.n_users, np.nan)
    for user, pi in chosen.items():
        values[train.user_index(user)] = pi
    if np.isnan(values).any():
        first = train.user_ids[int(np.argmax(np.isnan(values)))]
        raise SettingError(
            f"pi has no entry for {int(np.isnan(values).sum()):,} of the {train.n_users:,} users (the first: {first}); "
            "every person's choice is needed. For some people only, use fit(train, policies={...})."
        )
    return values
