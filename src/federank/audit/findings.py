"""What an audit finds: the attacks' marks by the end of an epoch, and what there is to tell about the audit itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from federank.audit.marks import Means


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
