"""A split on disk: a folder with the parts as TSV files, and a record of how they were made.

    DIR/train.tsv, DIR/test.tsv, DIR/validation.tsv (where there is one), DIR/split.json
    DIR/fold-1/train.tsv, DIR/fold-1/test.tsv, ..., DIR/split.json

The folder appears whole under its name, or not at all (files.py). One that holds an earlier split, and nothing else,
may be replaced; any other folder is left alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from federank.data.interactions import Interactions
from federank.data.splits import Split
from federank.data.stored.text import write_tsv
from federank.errors import DataError
from federank.files import folder_in_place

RECORD = "split.json"
FORMAT = "federank split"
_PARTS = ("train", "validation", "test")


def write_split_folder(
    folder: Path, splits: Sequence[Split], settings: Mapping[str, Any], *, header: bool = True
) -> dict[str, Any]:
    """Write one split, or several folds, and answer with what `split.json` records."""
    folder = folder.absolute()
    refuse_foreign_folder(folder)
    whole = splits[0].train
    record = {
        "format": FORMAT,
        "data": whole.name,
        **settings,
        "users": whole.n_users,
        "items": whole.n_items,
        "rows": {path: len(part) for path, part in files_of(splits).items()},
    }
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with folder_in_place(folder) as made:
            for path, part in files_of(splits).items():
                (made / path).parent.mkdir(exist_ok=True)
                write_tsv(part, made / path, header=header)
            (made / RECORD).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    except OSError as refusal:
        raise DataError(f"The split could not be written to {folder} ({refusal.strerror}).") from refusal
    return record


def refuse_foreign_folder(folder: Path) -> None:
    """Raise unless the folder is free to be written: absent, empty, or an earlier split and nothing else."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise DataError(f"{folder} is a file; name a folder that does not exist yet.")
    if folder.resolve() in (Path.cwd(), *Path.cwd().parents):
        raise DataError(f"{folder} is the folder you are in, or around it; name another, such as {folder / 'split'}.")
    held = [path for path in folder.rglob("*") if not path.is_dir()]
    ours = {f"{name}.tsv" for name in _PARTS} | {RECORD}
    foreign = [path for path in held if path.name not in ours]
    if held and (foreign or not _is_split(folder)):
        example = (foreign or held)[0].relative_to(folder)
        raise DataError(f"{folder} holds something else than an earlier split ({example}); name another folder.")


def _is_split(folder: Path) -> bool:
    try:
        return bool(json.loads((folder / RECORD).read_text(encoding="utf-8"))["format"] == FORMAT)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def files_of(splits: Sequence[Split]) -> dict[str, Interactions]:
    """The files of one split or of several folds, as paths inside the folder, and what goes into each."""
    files = {}
    for number, split in enumerate(splits, start=1):
        fold = "" if len(splits) == 1 else f"fold-{number}/"
        for name in _PARTS:
            part: Interactions | None = getattr(split, name)
            if part is not None:
                files[f"{fold}{name}.tsv"] = part
    return files


def read_split_folder(folder: Path) -> Split:
    """Read back a folder that holds one split: its parts are numbered together, and may not overlap."""
    from federank.data.loading import load

    paths = {name: folder / f"{name}.tsv" for name in _PARTS if (folder / f"{name}.tsv").exists()}
    if "train" not in paths or "test" not in paths:
        raise DataError(f"{folder} has no train.tsv and test.tsv; name a folder that `federank data split` wrote.")
    parts = {name: load(path) for name, path in paths.items()}
    columns: dict[str, Any] = {}
    for name in ("ratings", "times"):
        values = [getattr(part, name) for part in parts.values()]
        columns[name] = None if any(value is None for value in values) else np.concatenate(values)
    users = np.concatenate([part.user_ids[part.users] for part in parts.values()])
    items = np.concatenate([part.item_ids[part.items] for part in parts.values()])
    whole = Interactions.from_columns(users, items, **columns, repeats="refuse", name=folder.name)
    return Split(**{name: _renumbered(part, whole) for name, part in parts.items()}, how=f"read from {folder}")


def _renumbered(part: Interactions, whole: Interactions) -> Interactions:
    """The rows of `whole` that are those of `part`."""
    users = np.array([whole.user_index(user) for user in part.user_ids.tolist()], dtype=np.int64)
    items = np.array([whole.item_index(item) for item in part.item_ids.tolist()], dtype=np.int64)
    wanted = users[part.users] * whole.n_items + items[part.items]
    return whole.take(np.isin(whole.users.astype(np.int64) * whole.n_items + whole.items, wanted))
