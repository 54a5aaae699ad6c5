"""A method by its name, fitted: what `federank train` does, in one call from Python.

model = fit("fpl", split, pi=0.3, epochs=60)
"""

from __future__ import annotations

from typing import Any

from federank.data.interactions import Interactions
from federank.data.splits import Split
from federank.engines.conduct import Conduct
from federank.recommenders.recommender import Recommender
from federank.recommenders.registry import recommender_class


def fit(
    method: str | type[Recommender], data: Interactions | Split, *, conduct: Conduct | None = None, **settings: Any
) -> Recommender:
    """Make a method by its name or class with these settings, and let it learn: of a split, the training part."""
    kind = recommender_class(method) if isinstance(method, str) else method
    return kind(**settings).fit(data.train if isinstance(data, Split) else data, conduct=conduct)
