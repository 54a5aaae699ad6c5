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

    A setting that a later version added is left out where it has its default, so that checkpoints and studies of the
    version before go on.
    """
    chosen, later = asdict(settings), getattr(settings, "later", ())
    for field in fields(settings):
        if field.name in later and chosen[field.name] == field.default:
            del chosen[field.name]
    return chosen
