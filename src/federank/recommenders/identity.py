"""Which run a checkpoint is of: its method, its settings and its data, as one short text."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from typing import Any

from federank.data.interactions import Interactions


def run_identity(name: str, settings: Any, data: Interactions) -> str:
    """Names a run, so that a checkpoint of another is never resumed."""
    content = json.dumps([name, asdict(settings), data.fingerprint], sort_keys=True, default=list)
    return hashlib.sha256(content.encode()).hexdigest()[:32]
