"""What Python declares, for the page: rules of clients, bounds of settings, messages and signed statements.

`python -m tests.service.web.schemas --write` writes web/schemas.js again; a test compares.
"""

import json
import math
import sys
import textwrap
from dataclasses import fields
from typing import Literal, get_args, get_origin, get_type_hints

from tests.service.web.conftest import PAGE

from federank.checks import _declared
from federank.federation import wire
from federank.methods.fpl.method import HOME_ROUND, HOME_STEPS
from federank.methods.frugal.protocol import LEVELS
from federank.methods.registry import federated_method
from federank.secagg import config, keys, ring, round_config
from federank.secagg.exchange import RoundRecord
from federank.secagg.proof import parameters
from federank.service.client import rules

FILE = PAGE / "schemas.js"
HEAD = "/* What Python declares. Written by `python -m tests.service.web.schemas --write`; a test compares. */"
WORDS = {int: "number", str: "string"}
NUMBERS = {"f4": "F32", "f8": "F64", "i1": "I8", "i4": "I32", "index": "I32"}
UNUSED = {"MOST_PASSES", "MOST_TRIPLES"}
"""Rules of Python clients that are bounds of settings here."""
CONSTANTS = {
    "RULES": {name: value for name, value in vars(rules).items() if name.isupper() and name not in UNUSED},
    "METHODS' OWN": {"HOME_ROUND": HOME_ROUND, "HOME_STEPS": HOME_STEPS, "LEVELS": LEVELS},
    "SECURE AGGREGATION": {
        **{name: getattr(ring, name) for name in ("C_INT", "FARTHEST", "LEAST_DEVIATION", "MOST_DEVIATION")},
        **{name: getattr(keys, name) for name in ("PUBLIC_BYTES", "SIGNATURE_BYTES", "SUITE")},
        **{name: getattr(config, name) for name in ("FORMAT", "RING_BITS", "RECIPES")},
        "CLOCKS_APART": round_config.CLOCKS_APART,
        "LIMITS": parameters._LIMITS,
        "MOST_LENGTH": parameters.MOST_LENGTH,
        "RANGE_BITS": parameters.RANGE_BITS,
    },
}


def methods():
    """The methods on the interface that the page has a client of."""
    return {name: kind for name in rules.METHODS if (kind := federated_method(name)) is not None}


def settings_of(kind):
    """Type and bounds of each setting that a federation publishes."""
    declared, hints, published = {}, get_type_hints(kind), kind().public_settings()
    for name, type_, bounds, _ in _declared(kind):
        if name not in published:
            continue
        if get_origin(type_) is Literal:
            told = {"choices": get_args(type_)}
        else:
            low, high = bounds.get("low", -math.inf), bounds.get("high", math.inf)
            told = {"integer": True} if type_ is int else {}
            told |= {"above": 0} if bounds.get("positive") else {"low": low} if low > -math.inf else {}
            told |= {"below": 1, "low": 0} if bounds.get("fraction") else {"high": high} if high < math.inf else {}
        is_open = type(None) in get_args(hints[name])
        declared[name] = told | ({"open": True} if is_open else {})
    return declared


def message_of(kind):
    """Axes, type and bounds of each array of a record."""
    return {
        part.name: {
            "kind": NUMBERS[part.metadata["dtype"]],
            "axes": part.metadata["axes"],
            **({"index": True} if part.metadata["dtype"] == "index" else {}),
            **{name: part.metadata[name] for name in ("minimum", "maximum") if part.metadata[name] is not None},
        }
        for part in wire.arrays(kind)
    }


def statement_of(kind):
    """The type of each field of a signed statement, as JavaScript calls it."""
    hints = get_type_hints(kind)
    return {part.name: WORDS.get(hints[part.name], "list") for part in fields(kind)}


def written(name, type_, tables):
    """Tables of tables as a constant: a line, or as many as it takes, for each."""
    lines = [f"/** @type {{{type_}}} */", "// prettier-ignore", f"export const {name} = {{"]
    for key, table in tables.items():
        entries = [f"{entry}: {json.dumps(value)}," for entry, value in table.items()]
        body = textwrap.wrap(" ".join(entry.replace(" ", "\0") for entry in entries), 116)
        lines += [f"  {json.dumps(key)}: {{", *(f"    {line}" for line in body), "  },"]
    return "\n".join([*lines, "};"]).replace("\0", " ")


def plain(value):
    """The value as it is formatted: numbers without a fraction where they have none, and tables as lists of pairs."""
    if isinstance(value, dict):
        return [number for pair in value.items() for number in pair]
    return int(value) if isinstance(value, float) and value == int(value) else value


def generated():
    """The content of the file."""
    constants = [
        f"export const {name} = {json.dumps(plain(value))};"
        for group in CONSTANTS.values()
        for name, value in group.items()
    ]
    known = methods()
    records = {"config": config.SecaggConfig, "offer": round_config.Offer, "record": RoundRecord}
    messages = {
        f"{name}-{way}": message_of(record)
        for name, kind in known.items()
        for way, record in (("broadcast", kind.records.sent), ("update", kind.records.update))
    }
    settings = {name: settings_of(kind) for name, kind in known.items()}
    statements = {name: statement_of(kind) for name, kind in records.items()}
    parts = [
        HEAD,
        "\n".join(constants),
        written("SETTINGS", 'import("./methods/registry.js").Schemas', settings),
        written("MESSAGES", 'Record<string, import("./federation/wire.js").Schema>', messages),
        written("STATEMENTS", "Record<string, Record<string, string>>", statements),
    ]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        FILE.write_text(generated())
    else:
        sys.stdout.write(generated())
