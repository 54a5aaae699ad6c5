"""Federations of Frugal and FCF on tiny worlds."""

from typing import NamedTuple

import numpy as np

from federank.data.interactions import Interactions
from federank.federation import wire
from federank.federation.method import Client
from federank.methods.frugal.engines import FrugalClients, added_up
from federank.methods.frugal.method import Frugal
from federank.methods.frugal.records import FrugalModel, FrugalUpdate, placed
from federank.methods.frugal.settings import FrugalSettings
from federank.methods.frugal.simulation import FrugalFederation, method_of
from federank.methods.frugal.wire import decode_model
from federank.privacy.population import AS_HISTORIES_ARE, Choices, shared_profiles_of_all
from tests.worlds import random_world


def some_people(seed=2):
    """Eighty people with random histories over thirty items."""
    return random_world(users=80, items=30, interactions=900, seed=seed).compact()


def squares_federation(data, policies=None, allowed=None, trace=None, **settings):
    """A federation of these people before its first round; everyone may have a policy of their own."""
    settings = FrugalSettings(**({"factors": 5, "min_support": 1} | settings))
    shared = AS_HISTORIES_ARE
    if policies:
        shared = shared_profiles_of_all(Choices.of_users(policies), settings.seed, data.profiles, data.n_items)
    return FrugalFederation(settings, data.profiles, data.n_items, uploads=allowed, shared_profiles=shared, trace=trace)


def people_with(histories, n_items):
    """People who have exactly these items of a catalogue of this size."""
    users = np.repeat(np.arange(len(histories)), [len(history) for history in histories]).astype(np.int32)
    items = np.concatenate([np.sort(history) for history in histories]).astype(np.int32)
    return Interactions(users, items, np.arange(len(histories)), np.arange(n_items))


def lone_method(n_items, **settings):
    """The method of these settings for one user."""
    return method_of(FrugalSettings(**settings), n_items, 1, 1)


class Broadcast(NamedTuple):
    """Rows of a model, as a client has read them."""

    round_number: int
    version: int
    regulariser: float
    items: np.ndarray
    weights: np.ndarray
    vectors: np.ndarray
    model: FrugalModel
    """The model of all items: those that are not named have no vector and no weight."""


def read_broadcast(content, factors, n_items):
    """A broadcast from the wire."""
    round_number, version, items, part = decode_model(content, factors, n_items)
    vectors, weights = (placed(rows, items, n_items) for rows in (part.vectors, part.weights))
    model = FrugalModel(vectors, weights, part.regulariser)
    return Broadcast(round_number, version, part.regulariser[0], items, part.weights, part.vectors, model)


def played_bytes(federation):
    """Play a run with the reference engine; the bytes of every upload that arrived, and of every download."""
    method, up, down = federation.method, [], []

    def download():
        items = federation.items if federation.stage else np.zeros(0, dtype=np.int32)
        return len(method.write(federation.model, items, round_number=0, version=0))

    for _ in range(federation.schedule.rounds):
        asked, arrived = federation.invite()
        clients = FrugalClients(federation)
        updates = dict(zip(asked.tolist(), clients.train(asked, federation.model), strict=True))
        updates = {user: updates[user] for user in arrived.tolist()}
        up += [len(wire.encode(update)) for update in updates.values()]
        down += [download()] * len(asked)
        federation.finish(asked, added_up(federation, updates))
    return up, down + [download()] * len(federation.sent)  # the last model, for all


encode_update = wire.encode


def read_update(content, factors, n_items, min_support=1):
    """An update from the wire, checked."""
    method = Frugal(n_items=n_items, factors=factors, min_support=min_support)
    update = wire.decode(FrugalUpdate, method, content)
    method.check_form(update, None)
    return update


def update_of(method, told, profile):
    """What a client with this profile uploads."""
    model = getattr(told, "model", told)
    stage = int(method.min_support == 1 or model.weights.any())
    client = Client(0, 0, 0, np.asarray(profile, dtype=np.int32), stage=stage)
    return method.client_update(client, model).update


def vector_of(method, told, history):
    """The vector that explains this history best."""
    client = Client(0, 0, 0, np.asarray(history, dtype=np.int32))
    return method.fold_in(client, getattr(told, "model", told))
