"""A federation's model as a model's folder: item factors and catalogue, and nobody's history.

`federank recommend DIR --like ITEM` and `--start-from DIR` take it as it is; `federank evaluate DIR --split DIR` works
a vector out at home for everybody in the split's training part, as a device would.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
from safetensors.numpy import load

from federank.data.categories import Categories
from federank.data.interactions import Interactions
from federank.errors import BadAnswer, ModelError
from federank.recommenders.recommender import Recommender
from federank.recommenders.registry import recommender_class
from federank.service.operator.client import OperatorClient


def exported_model(client: OperatorClient, version: int | None = None) -> tuple[Recommender, int]:
    """The recommender that a version of the federation is, without any people; and which version."""
    content, headers = client.download("/export", **({} if version is None else {"version": version}))
    items = client.get("/catalogue")["items"]
    try:
        about = json.loads(headers["x-export"])
        return recommender_of(about, load(content), items), int(about["version"])
    except (KeyError, ValueError, TypeError) as reason:
        raise BadAnswer(f"{client.address} answered with something else than a model ({reason!r}).") from reason


def recommender_of(about: dict[str, Any], tables: dict[str, Any], items: list[dict[str, Any]]) -> Recommender:
    """The method's recommender with these tables, before it knows anybody."""
    if about["method"] != "fpl":
        raise ModelError(f"A federation of {about['method']} cannot be exported by this version; those of fpl can.")
    kind = recommender_class("fpl")
    model = kind(**about["settings"])
    model.training = nobody_s_history(items, about["name"])
    model.report = {"version": about["version"], "rounds": 0}
    factors = int(about["settings"]["factors"])
    shared = {"item_vectors": tables["vectors"], "item_biases": tables["biases"]}
    model._restore(shared, {"user_vectors": np.zeros((0, factors), dtype=np.float32), "pi": np.zeros(0)})
    return model


def nobody_s_history(items: list[dict[str, Any]], name: str) -> Interactions:
    """A catalogue as interactions without any."""
    ids = [item["id"] for item in items]
    known = Interactions.from_columns(
        [0] * len(ids),
        ids,
        titles={item["id"]: str(item["title"]) for item in items},
        categories={item["id"]: list(item["categories"]) for item in items},
        name=name,
    )
    if known.item_ids.tolist() != ids:  # a catalogue that has grown is not sorted
        rows = {identity: row for row, identity in enumerate(known.item_ids.tolist())}
        order = np.array([rows[identity] for identity in ids])
        titles = None if known.titles is None else known.titles[order]
        categories = Categories.from_lists(list(item["categories"]) for item in items)
        known = replace(known, item_ids=known.item_ids[order], titles=titles, categories=categories)
    nothing = np.zeros(0, dtype=np.int32)
    return replace(known, users=nothing, items=nothing, user_ids=known.user_ids[:0])
