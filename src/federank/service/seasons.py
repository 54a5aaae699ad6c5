"""What all seasons of a federation may take of one client together: uploads add up, and so does mu squared."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from federank.privacy.accountant import epsilon_of_mu
from federank.secagg.config import SecaggConfig, config_from


class InTotal(NamedTuple):
    """Uploads and epsilon of a client that takes part in every season."""

    seasons: int
    uploads: int | None  # None where they are not counted
    mu: float | None  # None without noise
    epsilon: float | None
    delta: float | None

    def line(self) -> str:
        """The same in words."""
        total = f"{self.seasons} season{'' if self.seasons == 1 else 's'}"
        total += "" if self.uploads is None else f", {self.uploads} uploads per client"
        epsilon = "" if self.epsilon is None else f", epsilon {self.epsilon:.3g} at delta {self.delta:g}"
        return f"In total: {total}{epsilon}."


def total_of(configs: list[SecaggConfig]) -> InTotal:
    """What these seasons of secure aggregation may take together."""
    uploads = sum(config.messages for config in configs)
    if not all(config.has_noise for config in configs):
        return InTotal(len(configs), uploads, None, None, None)
    mu = math.sqrt(math.fsum(config.mu() ** 2 for config in configs))
    delta = max(float(config.delta) for config in configs)
    return InTotal(len(configs), uploads, mu, epsilon_of_mu(mu, delta), delta)


def in_total(seasons: list[dict[str, Any]]) -> InTotal:
    """The same of a server's list of seasons."""
    if all("config" in one for one in seasons):
        return total_of([config_from(one["config"].encode()) for one in seasons])
    counts = [one["uploads"] for one in seasons]
    uploads = None if any(count is None for count in counts) else sum(counts)
    return InTotal(len(seasons), uploads, None, None, None)
