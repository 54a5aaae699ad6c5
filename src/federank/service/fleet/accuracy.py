"""How good a rehearsed federation recommends or predicts: everybody's device against what a split holds out."""

from __future__ import annotations

import numpy as np

from federank.arrays import FloatMatrix
from federank.data.splits import Split
from federank.evaluation.evaluate import evaluate
from federank.models.topn import top_n
from federank.recommenders.recommendations import Recommendations
from federank.service.device.methods.method import Model
from federank.service.fleet.frugal import virtual_devices
from federank.service.fleet.processes import Federation, Rehearsal
from federank.service.fleet.ratings import RatingDevices


def recommendations(
    rehearsal: Rehearsal, federation: Federation, model: Model, vectors: FloatMatrix, n: int
) -> Recommendations:
    """What everybody's device would recommend after the rehearsal: the best of the items that somebody has."""
    devices = virtual_devices(federation.facts, federation.ids, rehearsal.data, rehearsal.seed, rehearsal.wishes)
    scores = devices.scores(model, vectors)
    scores[:, np.bincount(devices.profiles.items, minlength=federation.facts.n_items) == 0] = -np.inf
    items, best = top_n(scores, np.arange(len(scores), dtype=np.int32), devices.profiles, n)
    ids = np.array(federation.ids, dtype=np.dtypes.StringDType())
    return Recommendations(rehearsal.data.user_ids, items, best, ids)


def accuracy(
    rehearsal: Rehearsal, federation: Federation, model: Model, vectors: FloatMatrix, split: Split
) -> dict[str, float]:
    """How good the recommendations are by what the split holds out."""
    if federation.facts.scale is not None:
        devices = virtual_devices(federation.facts, federation.ids, rehearsal.data, rehearsal.seed, rehearsal.wishes)
        assert isinstance(devices, RatingDevices)
        return devices.errors(model, vectors, split, federation.ids)
    listed = recommendations(rehearsal, federation, model, vectors, 10)
    means = evaluate(listed, split, metrics=("precision", "recall", "ndcg")).means
    return {name: round(float(value), 6) for name, value in means.items() if "@" in name}
