"""The public side of people's policies, for views."""

from __future__ import annotations

import numpy as np

from federank.arrays import IntVector
from federank.audit.knowledge import KnownPolicies
from federank.protocol.policies.choices import Choices
from federank.protocol.policies.policy import decoy_rate


def known_policies(choices: Choices, people: IntVector) -> KnownPolicies:
    """What is public about these people's policies."""
    pi = choices.pi[people]
    never = np.array([policy.epsilon is None for policy in choices.kinds])[choices.of_user[people]]
    epsilons = np.array([policy.epsilon or 1.0 for policy in choices.kinds])[choices.of_user[people]]
    unliked = np.array([0.0 if no else decoy_rate(p, e) for no, p, e in zip(never, pi, epsilons, strict=True)])
    excluding = np.array([policy.basis == "history" for policy in choices.kinds])[choices.of_user[people]]
    return KnownPolicies(pi, unliked, excluding)
