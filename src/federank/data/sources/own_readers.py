"""Readers from outside: files whose names end in a suffix that somebody has registered.

    def read_orders(path):                      # a frame, a tuple of columns, or a list of rows
        return [tuple(line.split()[:2]) for line in path.read_text().splitlines()]

    register_reader(read_orders, "orders")      # load("shop.orders"), federank train ... --data shop.orders

A package names its readers as entry points of the group `federank.readers`, each under the suffix that it reads.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from federank import extensions
from federank.checks import instance
from federank.errors import BadFile, FedeRankError, SettingError

Reader = Callable[[Path], Any]
"""A path -> what `load` takes from memory: a frame, a tuple of columns, a list of rows."""
_OURS = ("csv", "tsv", "dat", "data", "parquet", "inter", "zip", "gz", "zst", "json")


def register_reader(reader: Reader, suffix: str) -> Reader:
    """Let files whose names end in this suffix be read by a function of your own, for this process."""
    instance("suffix", suffix, str, "the end of file names, such as 'orders',")
    ending = suffix.removeprefix(".").lower()
    if ending in _OURS:
        raise SettingError(f"Files that end in .{ending} are read here already; choose another suffix.")
    if not callable(reader):
        raise SettingError(f"{reader!r} cannot be a reader; a function of a path is needed.")
    extensions.add("readers", ending, reader)
    return reader


def reader_of(path: Path) -> Reader | None:
    """The reader that somebody has registered for files like this one."""
    ending = path.suffix.removeprefix(".").lower()
    if not ending or ending in _OURS:
        return None
    found: Reader | None = extensions.find("readers", ending)
    return found


def read_with(reader: Reader, path: Path) -> Any:
    """What a reader from outside makes of a file."""
    try:
        return reader(path)
    except FedeRankError:
        raise
    except Exception as reason:  # whatever somebody else's reader stumbles over
        raise BadFile(
            f"{path} cannot be read by the reader of {path.suffix} files: {type(reason).__name__}: {reason}."
        ) from reason
