"""What an audit finds: the attacks' marks by the end of an epoch, and what there is to tell about the audit itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from federank.audit.marks import Means
from federank.data.interactions import Interactions

THREAT_MODELS = {
    "updates": "each device's Updates, linkable over rounds, and the public model",
    "anonymous": "one Update at a time, from a device it cannot recognise again, and the public model",
    "sums": "the sum over each round's devices, who they were, and the public model",
    "outsider": "the public model before and after each round, and so the round's sum; not who was in it",
}
"""What the server sees, or somebody outside who fetches the model around every round."""


@dataclass(frozen=True, kw_only=True)
class Findings:
    """What the attacks have found by the end of an epoch: means over the people followed."""

    epoch: int
    disclosed_share: float
    base_rate: float
    attacks: Means
    best: dict[str, Any]
    categories: dict[str, dict[str, float]] | None
    ratings: dict[str, dict[str, float]] | None = None


class Audited(NamedTuple):
    """A whole audit."""

    findings: list[Findings]
    """Of each epoch that was looked at; the last is that of the whole run."""
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
    """What there is to tell about an audit itself."""
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
