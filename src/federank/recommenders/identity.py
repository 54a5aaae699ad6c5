"""Which run a checkpoint is of: its method, its settings and its data, as one short text."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, fields
from typing import Any

from federank.data.interactions import Interactions


def run_identity(name: str, settings: Any, data: Interactions) -> str:
    """Names a run, so that a checkpoint of another is never resumed."""
    chosen, later = asdict(settings), getattr(settings, "later", ())
    for field in fields(settings):
        if field.name in later and chosen[field.name] == field.default:  # so checkpoints of before it are gone on with
            del chosen[field.name]
    told = json.dumps([name, chosen, data.fingerprint], sort_keys=True, default=list)
    return hashlib.sha256(told.encode()).hexdigest()[:32]
