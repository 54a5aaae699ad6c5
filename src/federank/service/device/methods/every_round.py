"""Devices that speak in every round they are invited to: no number of messages is promised, and none is asked for."""

from __future__ import annotations

from federank.errors import SettingError
from federank.protocol.policies.policy import Policy


def refuse_counting(policy: Policy) -> None:
    """Refuse a policy that counts messages."""
    if policy.messages is not None:
        raise SettingError(
            "This federation's devices speak in every round, and count no messages; leave --messages out. A bound on "
            "items is --budget."
        )
