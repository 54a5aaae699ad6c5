"""Stars: the owner rates an item, and asks what they would give another; no network with either.

A prediction comes from the home vector (recommending.py), within the range of ratings. Of an item that nobody has told
the federation anything of, its vector says nothing: the mean of the owner's ratings stands in, and that is said.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from federank.errors import BadState, SettingError
from federank.protocol.ratings.federations import Scale
from federank.service.device.methods.method import History
from federank.service.device.owner.history import Finder, rating_of
from federank.service.device.owner.recommending import home_vector
from federank.service.device.store.store import DeviceStore


class Predicted(NamedTuple):
    """What the owner would give an item."""

    item: str
    title: str
    rating: float
    fallback: bool  # nobody has told anything of it: the rating is the owner's mean
    own: float | None  # what the owner has given it already


class Rated(NamedTuple):
    """What the owner has given an item, now and before."""

    item: str
    title: str
    rating: float | None
    before: float | None


def rate(store: DeviceStore, item: str, stars: str) -> Rated:
    """Keep a rating, or take one back (`none`); a device that runs follows from its next round."""
    scale = needed_scale(store)
    number = _number(store, item)
    catalogue, history = store.catalogue(), store.history()
    known = dict(zip(history.items.tolist(), history.ratings.tolist(), strict=True))
    before = known.pop(number, None)
    rating = None
    if stars.strip().casefold() != "none":
        rating = known[number] = rating_of(stars, scale, f"The rating of {catalogue.titles[number]}")
    elif before is None:
        raise SettingError(f"{catalogue.titles[number]} is not rated, so there is nothing to take back.")
    if not known:
        raise SettingError(
            "This is the only rating, and a device without any cannot take part; `federank device leave --erase` "
            "removes the device."
        )
    if len(known) == len(catalogue.ids) and store.identity().facts.rules.needs_others:
        raise SettingError("With this one the whole catalogue would be rated; nothing would be left to predict.")
    items = sorted(known)
    store.write_history(History(np.array(items, np.int32), np.array([known[item] for item in items], np.float32)))
    return Rated(catalogue.ids[number], catalogue.titles[number], rating, before)


def predict(store: DeviceStore, item: str) -> Predicted:
    """What the owner would give an item, by id or title."""
    scale = needed_scale(store)
    number = _number(store, item)
    identity, history, catalogue = store.identity(), store.history(), store.catalogue()
    model = store.model(identity.facts)
    if model is None:
        raise BadState(f"{store.path} holds no model yet; `federank device` fetches one.")
    fallback = not model.weights[number]
    value = float(history.ratings.mean())
    if not fallback:
        value = float(model.vectors[number] @ home_vector(store, identity, model))
    at = int(np.searchsorted(history.items, number))
    own = float(history.ratings[at]) if at < len(history.items) and history.items[at] == number else None
    rating = min(max(value, scale.lowest), scale.highest)
    return Predicted(catalogue.ids[number], catalogue.titles[number], rating, fallback, own)


def needed_scale(store: DeviceStore) -> Scale:
    """What ratings there are; a federation of likes has none."""
    scale = store.identity().facts.scale
    if scale is None:
        raise SettingError(
            "This device's federation is of likes: it knows no ratings and predicts none. `federank device recommend` "
            "lists what it would recommend."
        )
    return scale


def _number(store: DeviceStore, item: str) -> int:
    number = Finder(store.catalogue()).number(item)
    if number is None:
        raise SettingError(f"{item[:80]!r} is no id and no single title of the catalogue; write it as it stands there.")
    return number
