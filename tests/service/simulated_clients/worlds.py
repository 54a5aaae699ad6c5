"""Users of the scripted federation, data sets in files, and simulated clients of both."""

import asyncio
import json

import numpy as np
from tests.service.client.worlds import ITEMS

from federank.data.interactions import Interactions
from federank.service.client.federation import fetch_model, read_info
from federank.service.client.http import Client
from federank.service.simulated_clients.methods import Models, Plan, SimulatedClients
from federank.service.simulated_clients.processes import fetch_federation
from federank.service.simulated_clients.rehearsal import Fleet


def people(users=5, seen=()):
    """Users with four items each of the scripted federation's catalogue; the first has seen these too."""
    rng = np.random.default_rng(1)
    pairs = [(user, int(item)) for user in range(users) for item in rng.choice(ITEMS, 4, replace=False)]
    pairs += [(0, item) for item in seen]
    return Interactions.from_columns([user for user, _ in pairs], [100 + item for _, item in pairs])


def info_of(federation):
    return read_info(json.dumps(federation.info()).encode())


def ids_of(federation):
    return [item["id"] for item in federation.catalogue()["items"]]


def devices_of(federation, **specs):
    """What the federation publishes of itself, and simulated clients of it."""
    info = info_of(federation)
    return info, SimulatedClients(info, ids_of(federation), people(), 7, specs)


def play(federation, users=None, plan=None, **options):
    """Simulated clients take part, one of them if no users are named; the tally."""
    info, devices = devices_of(federation, **options.pop("specs", {}))
    users = devices.participants[:1].tolist() if users is None else users
    plan = plan or Plan(address=federation.address)
    return asyncio.run(Fleet(plan, devices, Models(info), users, **options).play())


def written(data, folder, name="data.csv"):
    """A data set as a file, with its ratings or times if it has any."""
    columns = {"user": data.user_ids[data.users], "item": data.item_ids[data.items]}
    columns |= {"rating": data.ratings} if data.ratings is not None else {"time": data.times}
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    path = folder / name
    path.write_text("\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)]) + "\n")
    return path


def fetched(address, ca=None):
    """What a federation publishes of itself, and its model."""
    with Client(address, ca=ca) as client:
        federation = fetch_federation(client)
        return federation, fetch_model(client, federation.info)
