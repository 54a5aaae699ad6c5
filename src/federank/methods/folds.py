"""Several models of one method, each tested on another part of the data, as one folder.

    folds.json           how the data were divided, and the method with its settings
    fold-1/ ... fold-K/  a model each, with its split (see model_folder.py)

The folder appears complete under its name, or not at all. Until then the models that are done are in a folder beside
it, whose name ends in `.unfinished`; a run that was stopped goes on from there.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from federank.data.splits import Split
from federank.errors import ModelError
from federank.files import put_in_place
from federank.methods.model_folder import is_model, load_model
from federank.methods.recommender import Recommender

FORMAT = "federank-folds"
RECORD = "folds.json"


def train_each(
    model_of: Callable[[], Recommender],
    splits: Sequence[Split],
    folder: Path,
    fit: Callable[[Recommender, Split, int, Path], None],
    *,
    resume: bool = False,
) -> list[Recommender]:
    """Fit and save a model for every split, then give the folder its name.

    `fit` gets a new model, its split, the fold's number from 1, and a path where it may keep a checkpoint. With
    `resume`, models that an interrupted run has finished are taken as they are.
    """
    record = _record(model_of(), splits)
    draft = unfinished(folder)
    _open_draft(draft, record, resume=resume)
    models = []
    try:
        for number, split in enumerate(splits, start=1):
            position = draft / f"fold-{number}"
            if is_model(position):
                models.append(load_model(position))
                continue
            model = model_of()
            fit(model, split, number, draft / f"fold-{number}.checkpoint")
            model.save(position, split)
            (draft / f"fold-{number}.checkpoint").unlink(missing_ok=True)
            models.append(model)
    except Exception:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    put_in_place(draft, folder)
    return models


def unfinished(folder: Path) -> Path:
    """Where the models of a run that is not done are kept."""
    return folder.parent / f"{folder.name}.unfinished"


def is_folds(folder: Path) -> bool:
    """Whether this folder claims to hold folds of ours."""
    try:
        return bool(json.loads((folder / RECORD).read_text(encoding="utf-8"))["format"] == FORMAT)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def folds_in(folder: Path) -> list[Path]:
    """The folders of the models, in their order; all must be there."""
    if not is_folds(folder):
        raise ModelError(
            f"{folder} holds no folds: it has no {RECORD} of ours. Make them with `federank train --folds`."
        )
    count = json.loads((folder / RECORD).read_text(encoding="utf-8")).get("folds")
    if not isinstance(count, int) or count < 1:
        raise ModelError(f"{folder / RECORD} does not say how many folds there are; it was changed or damaged.")
    positions = [folder / f"fold-{number}" for number in range(1, count + 1)]
    for position in positions:
        if not is_model(position):
            raise ModelError(f"{position} is missing or not a model; the folds are incomplete. Train them again.")
    return positions


def _record(model: Recommender, splits: Sequence[Split]) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "folds": len(splits),
        "how": [split.how for split in splits],
        "kind": model.name,
        "settings": asdict(model.settings),
        "data": {"name": splits[0].train.name, "fingerprints": [split.train.fingerprint for split in splits]},
    }


def _open_draft(draft: Path, record: dict[str, Any], *, resume: bool) -> None:
    content = json.dumps(record, indent=2) + "\n"
    if resume:
        if not is_folds(draft):
            raise ModelError(f"There is no interrupted run at {draft} to resume; start it without --resume.")
        if (draft / RECORD).read_text(encoding="utf-8") != content:
            raise ModelError(f"{draft} belongs to a run with other settings or other data; resume with the same.")
        return
    if draft.exists():
        raise ModelError(
            f"{draft} is left of an interrupted run; add --resume to go on with it, or --overwrite to start again."
        )
    draft.mkdir(parents=True)
    (draft / RECORD).write_text(content, encoding="utf-8")
