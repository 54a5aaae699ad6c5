"""Where a data set lies: a known set's name, or a path.

A known name is looked for where known sets are installed, then as a path of that name. What is neither is told
apart by its looks: with a slash or an ending it was meant as a path, otherwise as a name.
"""

from __future__ import annotations

import os
from pathlib import Path

from federank.checks import no_such
from federank.data.known import sets as known
from federank.errors import BadFile, UnknownDataset


def find_path(source: str | os.PathLike[str]) -> Path:
    """The file or folder that a name or a path stands for."""
    path = Path(source).expanduser()
    if isinstance(source, str) and source in known.KNOWN:
        return known.find(source) or (path if _exists(path) else known.locate(source))
    if _exists(path):
        return path
    if not isinstance(source, str) or path.suffix or "/" in source or os.sep in source:
        raise BadFile(f"There is no file or folder {path}; check the path.")
    raise UnknownDataset(no_such("dataset", source, known.KNOWN, otherwise="; or give a file's path"))


def name_of(source: str | os.PathLike[str], path: Path) -> str:
    """What a data set is called: its known name, or its file's name without endings."""
    if isinstance(source, str) and source in known.KNOWN:
        return source
    bare = path.resolve().name
    for ending in (".gz", ".zst"):
        bare = bare.removesuffix(ending)
    return Path(bare).stem if path.is_file() else bare


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a name too long for any file, a folder that may not be looked into
        return False
