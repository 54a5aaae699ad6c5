"""A fleet on several processes: people are dealt out, each process plays its own, and the counts are added up.

The processes share nothing but the server. Every client's draws are named by its user's number, so how many processes
there are changes no choice of any client.
"""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from federank._numerics.arrays import FloatMatrix
from federank._numerics.topn import top_n
from federank.data.interactions import Interactions
from federank.data.splits import Split
from federank.errors import SettingError
from federank.evaluation.evaluate import evaluate
from federank.federation.client import Model
from federank.methods.recommendations import Recommendations
from federank.service.client.federation import FederationInfo, fetch_catalogue, fetch_info
from federank.service.client.http import Client, trusted_certificates
from federank.service.client.secure import Pinned, pin, pin_season
from federank.service.simulated_clients.methods import Models, Plan, SimulatedClients, Tally
from federank.service.simulated_clients.rehearsal import Fleet

_ATTEMPTS = 5


@dataclass(frozen=True, kw_only=True)
class Rehearsal:
    """Who takes part, where, and how."""

    plan: Plan
    data: Interactions
    rounds: int | None = None
    """End when the server has aggregated this many more rounds."""
    users: int | None = None
    """The first this many of the data who can take part; everyone where it is not said."""
    seed: int = 1
    specs: dict[str, Any]
    """Everyone's policy, as settings of the method: pi, sharing, item_epsilon, basis, budget."""
    ca: str | None = None
    insecure: bool = False
    helper_ca: str | None = None
    note: Callable[[str], object] = str
    """Called where rate limits slow a process down; it must be importable by a spawned process."""


class Federation(NamedTuple):
    """What the server says it is."""

    info: FederationInfo
    ids: list[str]


class Played(NamedTuple):
    """What a fleet leaves: its counts, and the vectors of the people that took part."""

    tally: Tally
    users: list[int]
    vectors: FloatMatrix  # everyone's, where a method keeps them; those who took no part have their first values


def fetch_federation(client: Client) -> Federation:
    """Ask the server what it is."""
    info = fetch_info(client, _ATTEMPTS)
    return Federation(info, fetch_catalogue(client, info, _ATTEMPTS).live_ids())


def rehearse(rehearsal: Rehearsal, processes: int = 1) -> Played:
    """Play a fleet on this many processes, which all end with the same round."""
    with Client(rehearsal.plan.address, ca=rehearsal.ca, insecure=rehearsal.insecure) as client:
        federation = fetch_federation(client)
    if rehearsal.rounds is not None:
        last = federation.info.version + rehearsal.rounds
        rehearsal = replace(rehearsal, plan=replace(rehearsal.plan, last_version=last))
    if processes == 1:
        return _play_part(rehearsal, federation, 0, 1)
    # What needs compiling is compiled here, once: the processes find it kept.
    SimulatedClients(*federation, rehearsal.data, rehearsal.seed, rehearsal.specs)
    spawned = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=spawned) as pool:
        parts = [pool.submit(_play_part, rehearsal, federation, part, processes) for part in range(processes)]
        first, *others = (part.result() for part in parts)
    for other in others:
        first.tally.merge(other.tally)
        first.users.extend(other.users)
        first.vectors[other.users] = other.vectors[other.users]
    return first


def _play_part(rehearsal: Rehearsal, federation: Federation, part: int, parts: int) -> Played:
    plan, (info, ids) = rehearsal.plan, federation

    def made(info: FederationInfo, ids: list[str]) -> SimulatedClients:
        return SimulatedClients(info, ids, rehearsal.data, rehearsal.seed, rehearsal.specs)

    clients = made(info, ids)
    all_users = clients.participants.tolist()
    if rehearsal.users is not None and rehearsal.users > len(all_users):
        raise SettingError(f"{rehearsal.users:,} clients are asked for, and {len(all_users):,} people can take part.")
    users = all_users[: rehearsal.users][part::parts]
    if plan.address.startswith("https"):
        plan = replace(plan, trusted=trusted_certificates(rehearsal.ca))
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        repin = partial(_pinned, rehearsal)
        pinned = repin(None, info) if info.is_summed else None
        fleet = Fleet(plan, clients, Models(info), users, pinned, made, note=rehearsal.note, repin=repin)
        tally = runner.run(fleet.play())
    return Played(tally, users, fleet.era.clients.vectors())


def _pinned(rehearsal: Rehearsal, before: Pinned | None, info: FederationInfo) -> Pinned:
    """What every client of the fleet pins: they enrol in the same moment, and check later seasons as one."""
    with Client(rehearsal.plan.address, ca=rehearsal.ca, insecure=rehearsal.insecure) as client:
        return pin(client, info, rehearsal.helper_ca) if before is None else pin_season(before, client, info)


# How good a rehearsed federation recommends or predicts: everyone's client against what a split holds out.


def recommendations(
    rehearsal: Rehearsal, federation: Federation, model: Model, vectors: FloatMatrix, n: int
) -> Recommendations:
    """What everyone's client would recommend after the rehearsal: the best of the items that someone has."""
    clients = SimulatedClients(federation.info, federation.ids, rehearsal.data, rehearsal.seed, rehearsal.specs)
    scores = clients.scores(model, vectors)
    scores[:, np.bincount(clients.profiles.items, minlength=federation.info.n_items) == 0] = -np.inf
    items, best = top_n(scores, np.arange(len(scores), dtype=np.int32), clients.profiles, n)
    ids = np.array(federation.ids, dtype=np.dtypes.StringDType())
    return Recommendations(rehearsal.data.user_ids, items, best, ids)


def accuracy(
    rehearsal: Rehearsal, federation: Federation, model: Model, vectors: FloatMatrix, split: Split
) -> dict[str, float]:
    """How good the recommendations are by what the split holds out."""
    if federation.info.scale is not None:
        clients = SimulatedClients(federation.info, federation.ids, rehearsal.data, rehearsal.seed, rehearsal.specs)
        return clients.errors(model, split, federation.ids)
    listed = recommendations(rehearsal, federation, model, vectors, 10)
    means = evaluate(listed, split, metrics=("precision", "recall", "ndcg")).means
    return {name: round(float(value), 6) for name, value in means.items() if "@" in name}
