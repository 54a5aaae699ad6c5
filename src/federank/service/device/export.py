"""Taking one's things along: all that a device knows, as plain values, with items under their ids and titles."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

from federank.protocol.ledger import MESSAGE_COLUMNS, message_as_columns
from federank.service.device.state import policy_as_text
from federank.service.device.store import DeviceStore

LEDGER_COLUMNS = ("item", "title", "first_round", "last_round", "times_liked", "times_compared", "real")


def exported(store: DeviceStore) -> dict[str, Any]:
    """All that a device knows, but for the token."""
    identity, catalogue = store.identity(), store.catalogue()
    facts = identity.facts
    model = store.model(facts)
    home = None if model is None else store.home_vector(facts.factors, model.version)
    return {
        "server": identity.server,
        "device": identity.device,
        "seed": identity.seed,
        "user": identity.user,
        "policy": exported_policy(store),
        "rounds": store.rounds(),
        "history": [
            {"item": catalogue.ids[item], "title": catalogue.titles[item]} for item in store.profile().tolist()
        ],
        "vector": None if facts.rules.is_home_alone else store.vector(facts.factors).tolist(),
        "home_vector": None if home is None else home.tolist(),
        "model_version": None if model is None else model.version,
        "ledger": exported_ledger(store),
        "messages": store.ledger().message_rows(),
    }


def exported_policy(store: DeviceStore) -> dict[str, Any]:
    """What may leave, and who chose it."""
    policy, chosen_by = store.policy()
    ids = store.catalogue().ids
    never = [ids[item] for item in sorted(policy.never_items)]
    values: dict[str, Any] = json.loads(policy_as_text(policy))
    return values | {"never_items": never, "chosen_by": chosen_by}


def exported_ledger(store: DeviceStore) -> list[dict[str, Any]]:
    """What has left, item by item."""
    catalogue = store.catalogue()
    return [
        {"item": catalogue.ids[row["item"]], "title": catalogue.titles[row["item"]]}
        | {name: value for name, value in row.items() if name != "item"}
        for row in store.ledger().to_rows()
    ]


def ledger_as_text(store: DeviceStore, as_json: bool) -> str:
    """What has left, item by item and message by message, as JSON or as CSV; protocol/ledger.py can read it."""
    rows, messages = exported_ledger(store), store.ledger().message_rows()
    if as_json:
        return json.dumps({"items": rows, "messages": messages} if messages else rows, indent=1)
    text = io.StringIO(newline="")
    table = csv.DictWriter(text, LEDGER_COLUMNS + MESSAGE_COLUMNS if messages else LEDGER_COLUMNS)
    table.writeheader()
    table.writerows(rows)
    table.writerows(message_as_columns(message) for message in store.ledger().messages)
    return text.getvalue()
