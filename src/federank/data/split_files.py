"""A split on disk: a folder with the parts as TSV files, and a record of how they were made.

    DIR/train.tsv, DIR/test.tsv, DIR/validation.tsv, DIR/fold_in.tsv (where there is one), DIR/split.json
    DIR/fold-1/train.tsv, DIR/fold-1/test.tsv, ..., DIR/split.json

The folder is written atomically (files.py). One that holds an earlier split, and nothing else,
may be replaced; any other folder is left alone.

The record has a digest of every part, so that a part that was changed since is refused when it is read: a result on it
would be read with a split that it was not made with. A folder without a record is anyone's own and taken as it is.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from federank.data.interactions import Interactions, id_series
from federank.data.splits import Split, numbered_together
from federank.errors import DataError
from federank.files import atomic_write, folder_in_place


def write_tsv(data: Interactions, path: str | os.PathLike[str], *, header: bool = True) -> None:
    """Write the interactions as tab-separated text, with a header or without."""
    columns = {
        "user": id_series(data.user_ids).gather(data.users),
        "item": id_series(data.item_ids).gather(data.items),
    }
    if data.ratings is not None:
        columns["rating"] = pl.Series(data.ratings)
    if data.times is not None:
        columns["time"] = pl.Series(data.times)
    table = pl.DataFrame(columns)
    atomic_write(path, lambda file: table.write_csv(file, separator="\t", include_header=header))


RECORD = "split.json"
FORMAT = "federank split"
_PARTS = ("train", "validation", "test", "fold_in")


def write_split_folder(
    folder: Path, splits: Sequence[Split], settings: Mapping[str, Any], *, header: bool = True
) -> dict[str, Any]:
    """Write one split, or several folds, and answer with what `split.json` records."""
    folder = folder.absolute()
    refuse_foreign_folder(folder)
    full = splits[0].train
    record: dict[str, Any] = {
        "format": FORMAT,
        "data": full.name,
        **settings,
        "users": full.n_users,
        "items": full.n_items,
        "rows": {path: len(part) for path, part in files_of(splits).items()},
    }
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with folder_in_place(folder) as made:
            for path, part in files_of(splits).items():
                (made / path).parent.mkdir(exist_ok=True)
                write_tsv(part, made / path, header=header)
            record["files"] = {path: _digest(made / path) for path in files_of(splits)}
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


def read_split(folder: str | os.PathLike[str]) -> Split:
    """Read a folder that holds one split, or one fold of several; a part that was changed since is refused."""
    from federank.data.loading import read_part

    folder = Path(folder)
    paths = {name: folder / f"{name}.tsv" for name in _PARTS if (folder / f"{name}.tsv").exists()}
    if "train" not in paths or "test" not in paths:
        several = " one fold of it, such as fold-1," if (folder / "fold-1").is_dir() else ""
        raise DataError(
            f"{folder} has no train.tsv and test.tsv; name{several or ' a folder'} that `federank data split` wrote."
        )
    record = _record_of(folder)
    if record:
        _refuse_changed_files(folder, paths, record["files"])
    parts = numbered_together({name: read_part(path) for name, path in paths.items()})
    repeats = int(record.get("repeats_left_out", 0))
    named = {name: replace(part, name=folder.name, repeats_left_out=repeats) for name, part in parts.items()}
    return Split(**named, how=f"read from {folder}")


def _record_of(folder: Path) -> dict[str, Any]:
    """What was recorded of a split when it was written, with the files of this fold alone; empty where there is none.

    The record of folds is in the folder around them.
    """
    for place, within in ((folder, ""), (folder.absolute().parent, f"{folder.absolute().name}/")):
        path = place / RECORD
        if not path.is_file():
            continue
        try:
            record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            if within and record.get("format") != FORMAT:
                continue  # a file of that name beside the folder, and not ours
            files = {
                name.removeprefix(within): digest for name, digest in record["files"].items() if name.startswith(within)
            }
        except (OSError, ValueError, AttributeError, KeyError, TypeError) as reason:
            raise DataError(
                f"{path} cannot be read ({reason}); split the data again, or remove it to take the parts as they are."
            ) from reason
        if files or not within:
            return record | {"files": files}
    return {}


def _refuse_changed_files(folder: Path, paths: Mapping[str, Path], digests: Mapping[str, str]) -> None:
    for path in paths.values():
        if path.name not in digests:
            raise DataError(_changed(path, "is not among the parts that split.json records"))
        if _digest(path) != digests[path.name]:
            raise DataError(_changed(path, "is not the file that was written: its digest differs"))
    missing = [name for name in digests if not (folder / name).exists()]
    if missing:
        raise DataError(_changed(folder / missing[0], "is missing, though split.json records it"))


def _changed(path: Path, how: str) -> str:
    return (
        f"{path} {how}. What is measured on a changed split is not what its record says; split the data again, or "
        f"remove {RECORD} to take the parts as they are."
    )


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
