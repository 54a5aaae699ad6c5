"""Model folders: a trained model on disk, safe to open from an unknown source.

    model.json           method, settings, data fingerprint, versions, and a digest of every other file
    model.safetensors    the server's part: item factors, biases
    devices.safetensors  the clients' part: user factors
    training/            the training data (Parquet), which is the clients' too
    split/               the split, if one was given; evaluation needs nothing else

No file can carry code. A folder is written under a temporary name and renamed, so it is complete or absent.
Reading checks that every file is present, unchanged and finite, and that its shapes fit.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from federank.data.parquet import read_interactions, read_split, write_interactions, write_split
from federank.data.splits import Split
from federank.errors import ModelError
from federank.files import PRIVATE_FOLDER, folder_in_place, put_in_place
from federank.methods.recommender import Recommender
from federank.methods.registry import recommender_class

if TYPE_CHECKING:
    from federank.methods.recommender import Arrays, Recommender


FORMAT = "federank-model"
FORMAT_VERSION = 1


@cache
def _versions() -> dict[str, str]:
    """Versions of the packages that a model is trained with. Cached, because looking them up is slow."""
    return {package: version(package) for package in ("federank", "numpy", "numba")}


def save_model(model: Recommender, folder: Path, split: Split | None = None, *, replaces: bool = True) -> None:
    """Write a fitted model to a folder; an older model there is replaced once the new one is complete.

    With `replaces=False` an existing model is kept and the new one refused.
    """
    folder = folder.absolute()
    if split is not None and split.train.compact().fingerprint != model.training.fingerprint:
        raise ModelError(
            "The split's training part differs from the model's training data; save the model with its own split."
        )
    refuse_place(folder)
    if folder.exists() and not is_model(folder) and (not folder.is_dir() or any(folder.iterdir())):
        raise ModelError(f"{folder} exists and is not a model; choose another folder, or remove it first.")
    try:
        with folder_in_place(folder, mode=PRIVATE_FOLDER) as draft:
            _write(model, draft, split)
            if folder.exists() and not replaces:
                raise ModelError(f"{folder} holds a model already, which was not changed; choose another folder.")
    except OSError as reason:
        raise ModelError(f"The model could not be written to {folder} ({reason.strerror}).") from reason


def refuse_place(folder: Path) -> None:
    """Refuse a folder that cannot be written to, before any long work is done for it."""
    folder = folder.absolute()
    if folder.resolve() in (Path.cwd(), *Path.cwd().parents):
        raise ModelError(f"{folder} is the current folder or contains it; name another, such as {folder / 'model'}.")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent):
            pass
    except OSError as reason:
        raise ModelError(f"Nothing can be written to {folder} ({reason.strerror}); choose another folder.") from reason


def load_model(folder: str | Path) -> Recommender:
    """Read a stored model; refuse one that is incomplete, foreign or modified."""
    folder = Path(folder)
    document = read_description(folder)
    _check_digests(folder, document)
    kind = recommender_class(str(document["kind"]))
    try:
        model = kind(**_settings(kind, document["settings"], folder))
    except (TypeError, ValueError) as reason:
        raise ModelError(f"{folder / 'model.json'} has a setting of the wrong kind ({reason}).") from reason
    model.training = replace(
        read_interactions(folder / "training"),
        name=str(document["data"].get("name", "interactions")),
        repeats_left_out=int(document["data"].get("repeats_left_out", 0)),
    )
    model.report = document["report"]
    model._restore(_arrays(folder / "model.safetensors"), _arrays(folder / "devices.safetensors"))
    return model


def load_split(folder: str | Path) -> Split:
    """The split that was stored with a model."""
    folder = Path(folder)
    if "split/split.json" not in read_description(folder)["files"]:
        raise ModelError(f"{folder} holds a model without its split; save it with one, or evaluate it from Python.")
    return read_split(folder / "split")


def is_model(folder: Path) -> bool:
    """Whether this folder looks like a stored model."""
    try:
        return bool(read_description(folder)["format"] == FORMAT)
    except ModelError:
        return False


def read_description(folder: Path) -> dict[str, Any]:
    """Read and check model.json."""
    path = folder / "model.json"
    if not path.is_file():
        raise ModelError(f"{folder} is not a model: it has no model.json. Train one with `federank train`.")
    try:
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as reason:
        raise ModelError(f"{path} cannot be read ({reason}); it was changed or damaged.") from reason
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ModelError(f"{path} does not describe a model of FedeRank; nothing was loaded.")
    if document.get("format_version") != FORMAT_VERSION:
        raise ModelError(
            f"{path} is of format {document.get('format_version')}, and this version reads format {FORMAT_VERSION}; "
            "train the model again, or use the version that wrote it."
        )
    if document.get("digest") != digest_of_description(document):
        raise ModelError(f"{path} is not the file that was saved: its digest differs. It was changed or damaged.")
    missing = {"kind", "settings", "data", "files", "report"} - document.keys()
    if missing:
        raise ModelError(f"{path} lacks {', '.join(sorted(missing))}; it was changed or damaged.")
    wrong = [name for name in ("settings", "data", "files", "report") if not isinstance(document[name], dict)]
    if wrong:
        raise ModelError(f"{path} does not hold names and values in {wrong[0]!r}; it was changed or damaged.")
    return document


def digest_of_description(document: dict[str, Any]) -> str:
    """Digest of model.json's content without the digest itself."""
    content = {name: value for name, value in document.items() if name != "digest"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _write(model: Recommender, folder: Path, split: Split | None) -> None:
    save_file(_saveable(model._shared_arrays()), folder / "model.safetensors")
    save_file(_saveable(model._private_arrays()), folder / "devices.safetensors")
    (folder / "training").mkdir()
    write_interactions(model.training, folder / "training")
    if split is not None:
        (folder / "split").mkdir()
        write_split(split, folder / "split")
    document = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "kind": model.name,
        "settings": asdict(model.settings),
        "data": {
            "name": model.training.name,
            "fingerprint": model.training.fingerprint,
            "users": model.training.n_users,
            "items": model.training.n_items,
            "interactions": len(model.training),
            "repeats_left_out": model.training.repeats_left_out,
        },
        "report": model.report,
        "versions": dict(_versions()),
        "files": {path.relative_to(folder).as_posix(): _digest(path) for path in _files(folder)},
    }
    document = json.loads(json.dumps(document, default=_plain))
    document["digest"] = digest_of_description(document)
    (folder / "model.json").write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def _check_digests(folder: Path, document: dict[str, Any]) -> None:
    for name, digest in document["files"].items():
        path = folder / name
        if ".." in Path(name).parts or Path(name).is_absolute():
            raise ModelError(f"{folder / 'model.json'} names a file outside its folder ({name}); nothing was loaded.")
        if not path.is_file():
            raise ModelError(f"{path} is missing; the model is incomplete. Copy the full folder, or train it again.")
        if _digest(path) != digest:
            raise ModelError(f"{path} is not the file that was saved: its digest differs. It was changed or damaged.")


def _settings(kind: type[Recommender], stored: Any, folder: Path) -> dict[str, Any]:
    known = {field.name for field in fields(kind.settings_type)}
    unknown = set(stored) - known
    if unknown:
        raise ModelError(
            f"{folder / 'model.json'} has settings that {kind.name} does not know: {', '.join(sorted(unknown))}."
        )
    return dict(stored)


def _arrays(path: Path) -> Arrays:
    try:
        arrays: Arrays = load_file(path)
    except (SafetensorError, OSError) as reason:
        raise ModelError(f"{path} cannot be read ({reason}); it was changed or damaged.") from reason
    for name, array in arrays.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ModelError(f"{path} has values in {name!r} that are not finite numbers; it cannot be used.")
    return arrays


def _saveable(arrays: Arrays) -> Arrays:
    return {name: np.ascontiguousarray(array) for name, array in arrays.items()}


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"model.json cannot hold a {type(value).__name__}")


# Cross-validation: several models of one method, one per fold, in one folder.
#
#     folds.json           the division of the data, and the method with its settings
#     fold-1/ ... fold-K/  one model each, with its split (see above)
#
# The folder is complete or absent. Finished models of a running job are in a folder beside it, whose name ends in
# `.unfinished`; an interrupted job resumes from there.


FOLDS_FORMAT = "federank-folds"
RECORD = "folds.json"


def train_each(
    model_of: Callable[[], Recommender],
    splits: Sequence[Split],
    folder: Path,
    fit: Callable[[Recommender, Split, int, Path], None],
    *,
    resume: bool = False,
) -> list[Recommender]:
    """Fit and store a model for every split, then give the folder its name.

    `fit` gets a new model, its split, the fold's number from 1, and a path for a checkpoint. With `resume`, models
    that an interrupted run has finished are reused.
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
    """The folder of the finished models of a running job."""
    return folder.parent / f"{folder.name}.unfinished"


def is_folds(folder: Path) -> bool:
    """Whether this folder looks like a folder of folds."""
    try:
        return bool(json.loads((folder / RECORD).read_text(encoding="utf-8"))["format"] == FOLDS_FORMAT)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def folds_in(folder: Path) -> list[Path]:
    """The folders of the models in order; all must exist."""
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
        "format": FOLDS_FORMAT,
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
