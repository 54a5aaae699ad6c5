"""Which run a checkpoint is of: its method, its settings and its data, as one short text."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, fields
from typing import Any

from federank.data.interactions import Interactions


def run_identity(name: str, settings: Any, data: Interactions) -> str:
    """Names a run, so that a checkpoint of another is never resumed."""
    content = json.dumps([name, identifying_settings(settings), data.fingerprint], sort_keys=True, default=list)
    return hashlib.sha256(content.encode()).hexdigest()[:32]


def identifying_settings(settings: Any) -> dict[str, Any]:
    """The settings by which a run is known.

    A setting that a later version added is left out where it has its default (`later`) or, where the default is not
    what was done before, where it has the value of before (`before`): so checkpoints and studies of that version go on.
    """
    chosen, later, before = asdict(settings), getattr(settings, "later", ()), getattr(settings, "before", {})
    for field in fields(settings):
        as_ever = before.get(field.name, field.default)
        if (field.name in later or field.name in before) and chosen[field.name] == as_ever:
            del chosen[field.name]
    return chosen
