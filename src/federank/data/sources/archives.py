"""Files that lie together: in a folder, or in a zip, which is read in place and never unpacked to disk.

Both answer the same question, which files are there by name, so a reader need not know which of the two it
reads. A zip with a name that points outside itself is refused whole: nobody makes one by accident.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path, PurePosixPath, PureWindowsPath

from federank.data.sources.text.contents import Text, as_text, read_text, too_large, unpacked_limit
from federank.errors import BadFile

Files = dict[str, Callable[[], Text]]
"""Names, with folders before slashes, and what reads each."""


def files_in(path: Path) -> Files:
    """The files in a zip, or in a folder and the folders right inside it."""
    return _in_folder(path) if path.is_dir() else _in_zip(path)


def file_and_neighbours(path: Path, others: Iterable[str]) -> Files:
    """One file, and those of the others that lie in the same folder."""
    near = [path.with_name(other) for other in others]
    return {found.name: partial(read_text, found) for found in (path, *near) if found.is_file()}


def beside(name: str, other: str) -> str:
    """The name of another file in the same folder."""
    return str(PurePosixPath(name).with_name(other))


def _in_folder(folder: Path) -> Files:
    try:
        found = sorted([*folder.glob("*"), *folder.glob("*/*")])
    except OSError as mistake:
        raise BadFile(f"{folder} cannot be listed ({mistake.strerror}); check who may read it.") from None
    return {
        path.relative_to(folder).as_posix(): partial(read_text, path)
        for path in found
        if path.is_file() and not path.name.startswith(".")
    }


def _in_zip(path: Path) -> Files:
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except Exception as mistake:  # damage shows as almost any exception in zipfile
        raise _damaged(path, mistake) from None
    for member in members:
        # A name's first \0 ends it and backslashes become slashes in `filename`: look at what was really written.
        name = PurePosixPath(member.orig_filename.replace("\\", "/"))
        if name.is_absolute() or ".." in name.parts or PureWindowsPath(name).drive:
            raise BadFile(
                f"{path} has a file named {member.orig_filename!r}, which points outside the archive; it is refused, "
                "get the archive from its publisher."
            )
    return {
        member.filename: partial(_read_member, path, member)
        for member in members
        if member.filename
        and not member.filename.endswith("/")
        and not member.filename.startswith("__MACOSX/")
        and not PurePosixPath(member.filename).name.startswith(".")
    }


def _read_member(path: Path, member: zipfile.ZipInfo) -> Text:
    label = f"{member.filename} in {path}"
    limit = unpacked_limit(min(member.compress_size, path.stat().st_size))
    if member.file_size > limit:
        raise too_large(label, limit)
    if member.flag_bits & 1:
        raise BadFile(f"{label} is locked with a password; unpack it yourself and give the plain file.")
    try:
        with zipfile.ZipFile(path) as archive:
            content = archive.read(member)
    except Exception as mistake:
        raise _damaged(path, mistake) from None
    return as_text(label, content)


def _damaged(path: Path, mistake: Exception) -> BadFile:
    return BadFile(f"{path} is a zip archive cut short or damaged ({mistake}); get it again.")
