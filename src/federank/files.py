"""Atomic writes of files and folders.

What is written goes under another name first, in the same folder, and is renamed once it is finished and on the disk.
A process that dies leaves the earlier file as it was. What a reader finds under a name is never half of something.

    atomic_write(path, content)       a file, from text, bytes or a function that fills it
    file_in_place(path)              a file, from something that insists on writing to a path
    folder_in_place(folder)          a folder
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from federank.errors import BadFile

PRIVATE = 0o600
"""The mode of a file that only its owner may read."""

PRIVATE_FOLDER = 0o700
"""The mode of a folder that only its owner may look into."""

Content = str | bytes | Callable[[IO[bytes]], object]


def atomic_write(path: str | os.PathLike[str], content: Content, *, mode: int = 0o666, parents: bool = False) -> None:
    """Write a file atomically; with `parents`, folders that are missing above it are made."""
    target = Path(path)
    try:
        if parents:
            target.parent.mkdir(parents=True, exist_ok=True)
        with file_in_place(target, mode=mode) as draft, draft.open("wb") as file:
            if callable(content):
                content(file)
            else:
                file.write(content.encode() if isinstance(content, str) else content)
    except OSError as reason:
        raise BadFile(f"{target} cannot be written ({reason.strerror or reason}); choose another place.") from reason


@contextmanager
def file_in_place(path: Path, *, mode: int = 0o666) -> Iterator[Path]:
    """An empty file to be filled inside the `with`; it takes the name of `path` at its end, and goes if that fails."""
    draft = _beside(path)
    try:
        os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode))
        yield draft
        with draft.open("rb+") as file:
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


@contextmanager
def folder_in_place(folder: Path, *, mode: int = 0o777) -> Iterator[Path]:
    """An empty folder to be filled inside the `with`; it takes the place of `folder` at its end, or goes."""
    draft = _beside(folder)
    draft.mkdir(mode=mode)
    try:
        yield draft
        put_in_place(draft, folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def put_in_place(draft: Path, folder: Path) -> None:
    """Give a finished folder its name; an older one steps aside first, and comes back should that fail."""
    if not folder.exists():
        draft.rename(folder)
        return
    aside = _beside(folder)
    folder.rename(aside)
    try:
        draft.rename(folder)
    except OSError:
        aside.rename(folder)
        raise
    shutil.rmtree(aside, ignore_errors=True)


def _beside(path: Path) -> Path:
    """A name in the same folder that no one has: a rename from there is one step, which a crash cannot halve."""
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
