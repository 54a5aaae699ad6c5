"""Taking one's things along: all that a device knows, as plain values, with items under their ids and titles."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

from federank.protocol.ledger import RATING_NAMES, message_as_columns, message_columns
from federank.service.device.state import policy_as_text
from federank.service.device.store.store import DeviceStore

LEDGER_COLUMNS = ("item", "title", "first_round", "last_round", "times_liked", "times_compared", "real")


def exported(store: DeviceStore) -> dict[str, Any]:
    """All that a device knows, but for the token."""
    identity = store.identity()
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
        "history": exported_history(store),
        "vector": None if facts.rules.is_home_alone else store.vector(facts.factors).tolist(),
        "home_vector": None if home is None else home.tolist(),
        "model_version": None if model is None else model.version,
        "ledger": exported_ledger(store),
        "messages": store.ledger().message_rows(),
        "uploads": [{"round": sent.round_number, "outcome": sent.outcome or "waiting"} for sent in store.uploads()],
    }


def exported_history(store: DeviceStore) -> list[dict[str, Any]]:
    """What the owner has, and how it is rated where the federation is of ratings."""
    catalogue, history = store.catalogue(), store.history()
    rows: list[dict[str, Any]] = [
        {"item": catalogue.ids[item], "title": catalogue.titles[item]} for item in history.items.tolist()
    ]
    for row, rating in zip(rows, history.ratings.tolist(), strict=False):
        row["rating"] = rating
    return rows


def exported_policy(store: DeviceStore) -> dict[str, Any]:
    """What may leave, and who chose it."""
    policy, chosen_by = store.policy()
    ids = store.catalogue().ids
    never = [ids[item] for item in sorted(policy.never_items)]
    values: dict[str, Any] = json.loads(policy_as_text(policy))
    if policy.filling is None:
        values = {name: value for name, value in values.items() if name not in ("filling", "rho", "sampling")}
    return values | {"never_items": never, "chosen_by": chosen_by}


def exported_ledger(store: DeviceStore) -> list[dict[str, Any]]:
    """What has left, item by item; where the federation is of ratings, as rated or as sampled."""
    catalogue, names = store.catalogue(), _columns(store)
    return [
        {"item": catalogue.ids[row["item"]], "title": catalogue.titles[row["item"]]}
        | {names.get(name, name): value for name, value in row.items() if name != "item"}
        for row in store.ledger().to_rows()
    ]


def _columns(store: DeviceStore) -> dict[str, str]:
    """What columns are called otherwise where the federation is of ratings."""
    return {} if store.identity().facts.scale is None else RATING_NAMES


def ledger_as_text(store: DeviceStore, as_json: bool) -> str:
    """What has left, item by item and message by message, as JSON or as CSV."""
    rows, messages = exported_ledger(store), store.ledger().message_rows()
    if as_json:
        return json.dumps({"items": rows, "messages": messages} if messages else rows, indent=1)
    text = io.StringIO(newline="")
    names = _columns(store)
    columns = tuple(names.get(name, name) for name in LEDGER_COLUMNS)
    table = csv.DictWriter(text, columns + message_columns(store.ledger().messages))
    table.writeheader()
    table.writerows(rows)
    for message in store.ledger().messages:
        table.writerow({names.get(name, name): value for name, value in message_as_columns(message).items()})
    return text.getvalue()
