"""Checkpoints: the state of a federation between two rounds, in a file that is whole or not there at all."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from federank.engines.federated import Federated
from federank.errors import BadFile, ModelError
from federank.files import file_in_place


def save_checkpoint(federation: Federated, path: Path, identity: str) -> None:
    """Write the state between two rounds, whole or not at all."""
    document = json.dumps({"round": federation.round_number, "run": identity})
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with file_in_place(path) as draft:
            save_file(federation.tables().all, draft, metadata={"federank-checkpoint": document})
    except (OSError, SafetensorError) as reason:
        raise BadFile(f"The checkpoint cannot be written to {path} ({reason}); choose another place.") from reason


def resume(federation: Federated, path: Path, identity: str) -> None:
    """Go on from a checkpoint of the run with this identity."""
    if not path.is_file():
        raise ModelError(f"There is no checkpoint at {path} to resume from; start the run without --resume.")
    try:
        with safe_open(path, framework="numpy") as content:
            document = json.loads((content.metadata() or {})["federank-checkpoint"])
            arrays = {name: content.get_tensor(name) for name in federation.tables().all}
            number, run = int(document["round"]), str(document["run"])
    except (SafetensorError, KeyError, ValueError, TypeError) as reason:
        raise ModelError(f"{path} is not a checkpoint of ours, or it is damaged ({reason}); start anew.") from reason
    if run != identity:
        raise ModelError(
            f"{path} belongs to a run with other settings or other data; resume with the same, or start anew."
        )
    tables = federation.tables().all
    for name, array in arrays.items():
        if array.shape != tables[name].shape or not np.isfinite(array).all():
            raise ModelError(
                f"{path} has {name} of an unexpected shape or with values that are not finite; start anew."
            )
        setattr(federation, name, np.ascontiguousarray(array))
    federation.round_number = number
