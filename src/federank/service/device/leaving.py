"""Leaving a federation, and taking one's things along, with items under the catalogue's ids and titles.

The server is told to forget the token; then the token is removed here too, so that nobody can take part with the file
any more. The ledger stays: what has left cannot be called back, and its owner may want to know.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from federank.service.device.client import Client
from federank.service.device.state import (
    Identity,
    catalogue_of,
    home_of,
    identity_of,
    ledger_of,
    model_of,
    policy_as_text,
    policy_of,
    profile_of,
    rounds_of,
    vector_of,
)
from federank.service.device.store import DeviceStore, taking_part
from federank.service.device.transfer import Refused

LEDGER_COLUMNS = ("item", "title", "first_round", "last_round", "times_liked", "times_compared", "real")
_TRIES = 5


def leave(path: Path, note: Callable[[str], None]) -> None:
    """Tell the server to forget this device; a device that it does not know any more has left already."""
    with taking_part(path):
        store = DeviceStore(path)
        try:
            identity = identity_of(store)
            if identity.token:
                _tell_server(identity, note)
                with store.transaction() as sql:
                    sql.execute("UPDATE identity SET token = ''")
                    sql.execute("DELETE FROM pending")
        finally:
            store.close()


def _tell_server(identity: Identity, note: Callable[[str], None]) -> None:
    client = Client(identity.server, ca=identity.ca, insecure=identity.insecure, token=identity.token, note=note)
    try:
        client.ask("DELETE", "/devices/me", tries=_TRIES)
    except Refused as reason:
        if reason.status not in (401, 404):
            raise
    finally:
        client.close()


def exported(store: DeviceStore) -> dict[str, Any]:
    """All that a device knows, as plain values."""
    identity, catalogue = identity_of(store), catalogue_of(store)
    factors, n_items = identity.facts.settings.factors, identity.facts.n_items
    model = model_of(store, n_items, factors)
    home = None if model is None else home_of(store, factors, model.version)
    return {
        "server": identity.server,
        "device": identity.device,
        "seed": identity.seed,
        "user": identity.user,
        "policy": exported_policy(store),
        "rounds": rounds_of(store),
        "history": [
            {"item": catalogue.ids[item], "title": catalogue.titles[item]} for item in profile_of(store).tolist()
        ],
        "vector": vector_of(store, factors).tolist(),
        "home_vector": None if home is None else home.tolist(),
        "model_version": None if model is None else model.version,
        "ledger": exported_ledger(store),
    }


def exported_policy(store: DeviceStore) -> dict[str, Any]:
    """What may leave, as plain values, and who chose it."""
    policy, chosen_by = policy_of(store)
    ids = catalogue_of(store).ids
    never = [ids[item] for item in sorted(policy.never_items)]
    values: dict[str, Any] = json.loads(policy_as_text(policy))
    return values | {"never_items": never, "chosen_by": chosen_by}


def exported_ledger(store: DeviceStore) -> list[dict[str, Any]]:
    """What has left, item by item, as plain values."""
    catalogue = catalogue_of(store)
    return [
        {"item": catalogue.ids[row["item"]], "title": catalogue.titles[row["item"]]}
        | {name: value for name, value in row.items() if name != "item"}
        for row in ledger_of(store).to_rows()
    ]


def ledger_as_text(store: DeviceStore, as_json: bool) -> str:
    """What has left, item by item, as JSON or as CSV."""
    rows = exported_ledger(store)
    if as_json:
        return json.dumps(rows, indent=1)
    text = io.StringIO(newline="")
    table = csv.DictWriter(text, LEDGER_COLUMNS)
    table.writeheader()
    table.writerows(rows)
    return text.getvalue()
