"""A federation's model as a model's folder: item factors and catalogue, and nobody's history.

`federank recommend DIR --like ITEM` and `--start-from DIR` take it as it is; `federank evaluate DIR --split DIR` works
a vector out at home for everybody in the split's training part, as a device would.
"""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import Any

import numpy as np
from safetensors.numpy import load

from federank.data.catalogue_file import nobody_s_history
from federank.errors import BadAnswer, ModelError
from federank.protocol.frugal import FrugalSettings
from federank.protocol.ratings.recipes import RatingSettings
from federank.protocol.squares.distribution import published
from federank.protocol.squares.recipes import squares_recipe
from federank.recommenders.recommender import Recommender
from federank.recommenders.registry import recommender_class
from federank.service.operator.client import OperatorClient


def exported_model(client: OperatorClient, version: int | None = None) -> tuple[Recommender, int]:
    """The recommender that a version of the federation is, without any people; and which version."""
    content, headers = client.download("/export", **({} if version is None else {"version": version}))
    items = client.get("/catalogue")["items"]
    try:
        about, tables = json.loads(headers["x-export"]), load(content)
        known = items[: len(tables["vectors"])]  # an earlier version knows nothing of what was added since
        return recommender_of(about, tables, known), int(about["version"])
    except (KeyError, ValueError, TypeError) as reason:
        raise BadAnswer(f"{client.address} answered with something else than a model ({reason!r}).") from reason


def recommender_of(about: dict[str, Any], tables: dict[str, Any], items: list[dict[str, Any]]) -> Recommender:
    """The method's recommender with these tables, before it knows anybody."""
    if about["method"] not in SHARED:
        raise ModelError(
            f"A federation of {about['method']} is not exported by this version; those of {' and '.join(SHARED)} can."
        )
    of_ratings = about["method"] in ("pmf", "svdpp")
    settings = _settings_of_ratings(about["settings"], tables) if of_ratings else about["settings"]
    model = recommender_class(about["method"])(**settings)
    model.training = nobody_s_history(items, about["name"])
    if of_ratings:
        model.training = replace(model.training, ratings=np.zeros(0, dtype=np.float32))
    model.report = {"version": about["version"], "rounds": 0}
    if "overall.people" in tables:  # whoever starts from it counts them among everybody
        model.report["people"] = round(float(tables["overall.people"][0]))
        model.report["people_with_item"] = tables["overall.people_with_item"].tolist()
    shared = SHARED[about["method"]](about, tables)
    factors = shared["item_vectors"].shape[1]
    model._restore(shared, {"user_vectors": np.zeros((0, factors), dtype=np.float32), "pi": np.zeros(0)})
    return model


def _of_pairs(about: dict[str, Any], tables: dict[str, Any]) -> dict[str, Any]:
    del about
    return {"item_vectors": tables["vectors"], "item_biases": tables["biases"]}


def _of_squares(about: dict[str, Any], tables: dict[str, Any]) -> dict[str, Any]:
    """The tables as devices have them: vectors as they are published."""
    recipe = squares_recipe(FrugalSettings(**about["settings"]), np.ones(1, dtype=np.int64), len(tables["vectors"]))
    vectors = published(recipe, tables["vectors"])
    return {"item_vectors": vectors, "item_weights": tables["weights"], "regulariser": tables["overall.regulariser"]}


def _settings_of_ratings(settings: dict[str, Any], tables: dict[str, Any]) -> dict[str, Any]:
    """The method's own settings: a simulation knows no steps of a scale, and SVD++ there has one style."""
    own = {field.name for field in fields(RatingSettings)} - {"style"}
    iterations = max(1, int(float(tables["overall.iteration"][0])))
    return {name: value for name, value in settings.items() if name in own} | {"iterations": iterations}


def _of_ratings(about: dict[str, Any], tables: dict[str, Any]) -> dict[str, Any]:
    del about
    W = {"implicit_vectors": tables["implicit"]} if "implicit" in tables else {}
    return {"item_vectors": tables["vectors"], **W}


SHARED = {"fpl": _of_pairs, "frugal": _of_squares, "pmf": _of_ratings, "svdpp": _of_ratings}
"""By method: a model's shared arrays from a version's tables."""
