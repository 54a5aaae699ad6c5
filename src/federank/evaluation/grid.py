"""Search: every combination of the values that are given, judged on the validation part of a split.

    found = search("fpl", split, pi=[0.1, 0.3], learning_rate=[0.05, 0.5], epochs=60)
    found.settings             the best, {"pi": 0.3, "learning_rate": 0.05, "epochs": 60}
    found.table                a row per combination
    found.fit(split)           the best, learnt from the training part

A value is a list to be searched through or one value for all. The test part is never looked at. (`federank train
frugal --search`, in search.py, tunes one setting after the other from a list of its own.)
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import polars as pl

from federank.checks import check_type
from federank.data.splits import Split
from federank.errors import Diverged, SettingError
from federank.evaluation.evaluate import RATING
from federank.evaluation.search import judged, refuse_ambiguous
from federank.methods.recommender import Recommender
from federank.methods.registry import method_class
from federank.simulation.options import TrainingOptions


@dataclass(frozen=True, kw_only=True, eq=False)
class Searched:
    """What a search has found."""

    method: type[Recommender]
    settings: dict[str, Any]
    """The best combination, with what was the same for all."""
    metric: str
    best: float
    """The metric of the best on the validation part."""
    table: pl.DataFrame
    """A row per combination, in the order they were tried: its values, the metric (null where none could be had), and
    the reason."""

    def fit(self, data: Split, *, training_options: TrainingOptions | None = None) -> Recommender:
        """The best combination, learnt from the training part of a split."""
        return self.method(**self.settings).fit(data.train, training_options=training_options)


def search(
    method: str | type[Recommender],
    split: Split,
    *,
    metric: str | None = None,
    training_options: TrainingOptions | None = None,
    **values: Any,
) -> Searched:
    """Try every combination of the values that are lists, and keep the best on the split's validation part.

    The metric is ndcg@10 unless another is named.
    """
    kind = method_class(method)
    check_type("split", split, Split, "a Split, such as fr.split_random(data, validation=0.2) gives,")
    refuse_ambiguous("search", kind, training_options=training_options, metric=metric)
    development = split.development
    axes = {name: list(value) for name, value in values.items() if isinstance(value, list | tuple)}
    fixed = {name: value for name, value in values.items() if name not in axes}
    if not axes or not all(axes.values()):
        raise SettingError("There is nothing to search through; give a list of values, such as pi=[0.1, 0.3].")
    metric = metric or "ndcg@10"
    sign = -1 if metric in RATING else 1
    rows: list[dict[str, Any]] = []
    for combination in product(*axes.values()):
        chosen = dict(zip(axes, combination, strict=True))
        found, reason = None, None
        try:
            model = kind(**fixed, **chosen)
        except SettingError as mistake:
            model, reason = None, str(mistake)
        if model is not None:
            try:
                found = judged(model.fit(development.train, training_options=training_options), development, metric)
            except Diverged as mistake:
                reason = str(mistake)
        rows.append({**chosen, metric: found, "reason": reason})
    able = [number for number, row in enumerate(rows) if row[metric] is not None]
    if not able:
        raise SettingError(f"None of the {len(rows)} combinations can be; the first: {rows[0]['reason']}")
    best = max(able, key=lambda number: (sign * rows[number][metric], -number))
    return Searched(
        method=kind,
        settings=fixed | {name: rows[best][name] for name in axes},
        metric=metric,
        best=rows[best][metric],
        table=pl.DataFrame(rows, infer_schema_length=None, strict=False),
    )
