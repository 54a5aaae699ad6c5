"""Files that belong together: in a folder, or in a zip, which is read in place and never unpacked to disk.

Both answer the same question, which files are there by name, so a reader need not know which of the two it
reads. A zip with a name that points outside itself is refused: none is made by accident.
"""

from __future__ import annotations

import gzip
import io
import mmap
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, NamedTuple

import polars as pl

from federank.errors import BadFile

GZIP, ZSTD, ZIP, PARQUET = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PK", b"PAR1"
CHUNK = 1 << 20


class Text(NamedTuple):
    """What a file holds once it is unpacked: the file itself where it is plain, its bytes otherwise."""

    label: str
    """What an error calls it."""
    source: Path | bytes

    def view(self) -> bytes | mmap.mmap:
        """All its bytes, to search in or to cut from; a plain file's stay on disk."""
        if isinstance(self.source, bytes):
            return self.source
        with self.source.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def lines(self) -> Iterator[bytes]:
        """Line by line, each with its end."""
        with io.BytesIO(self.source) if isinstance(self.source, bytes) else self.source.open("rb") as file:
            yield from file


def first_bytes(path: Path, count: int = 4) -> bytes:
    """The bytes that identify a file's format; a path where no file can be read is refused."""
    if not path.exists():
        raise BadFile(f"There is no file {path}; check the path.")
    if not path.is_file():
        raise BadFile(f"{path} is not a file; give the path of a file, or of a folder with a known data set.")
    try:
        with path.open("rb") as file:
            return file.read(count)
    except OSError as mistake:
        raise BadFile(f"{path} cannot be opened ({mistake.strerror}); check who may read it.") from None


def read_text(path: Path) -> Text:
    """The text in a file, unpacked if need be."""
    start = first_bytes(path)
    if start.startswith(GZIP):
        return as_text(str(path), _gunzipped(path))
    if start.startswith(ZSTD):
        return as_text(str(path), _unzstded(path))
    return as_text(str(path), path)


def as_text(label: str, source: Path | bytes) -> Text:
    """A text to read from, once it is clear that it is one."""
    text = Text(label, source)
    if (len(source) if isinstance(source, bytes) else source.stat().st_size) == 0:
        raise BadFile(f"{label} is empty; a file with one line per interaction is needed.")
    start = text.view()[:4096]
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise BadFile(f"{label} is written in UTF-16; save it as UTF-8.")
    if b"\0" in start:
        raise BadFile(f"{label} is not text but binary; a table of text, Parquet, gzip, Zstandard or zip is needed.")
    if b"\r" in start and b"\n" not in text.view()[: 1 << 16]:
        raise BadFile(f"{label} ends its lines with carriage returns alone; save it with line feeds (\\n).")
    return text


def unpacked_limit(packed: int) -> int:
    """How many bytes this many packed ones may unpack to: rating tables shrink five to twenty times, not hundreds."""
    return max(64 << 20, 100 * packed)


def _gunzipped(path: Path) -> bytes:
    content = LimitedBytes(path)
    try:
        with gzip.open(path) as file:
            while chunk := file.read(CHUNK):
                content.write(chunk)
    except (EOFError, gzip.BadGzipFile, zlib.error) as mistake:
        raise BadFile(f"{path} is a gzip file cut short or damaged ({mistake}); get it again.") from None
    return content.getvalue()


def _unzstded(path: Path) -> bytes:
    # Polars brings the one Zstandard decoder among our dependencies; lines go in and come out as they are.
    content = LimitedBytes(path)
    try:
        pl.scan_lines(path, glob=False).sink_csv(content, include_header=False, quote_style="never")
    except pl.exceptions.ComputeError:
        raise BadFile(f"{path} does not unpack to UTF-8 text; a table saved as UTF-8 is needed.") from None
    except OSError as mistake:
        if content.overfull:
            raise content.overfull from None
        raise BadFile(f"{path} is a Zstandard file cut short or damaged ({mistake}); get it again.") from None
    return content.getvalue()


class LimitedBytes(io.BytesIO):
    """Bytes in memory that refuse to grow past what their packed form may hold."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.limit = unpacked_limit(path.stat().st_size)
        self.overfull: BadFile | None = None

    def write(self, chunk: Any) -> int:
        """Add a chunk, or raise where the limit is passed."""
        if self.tell() + memoryview(chunk).nbytes > self.limit:
            self.overfull = too_large(str(self.path), self.limit)
            raise self.overfull
        return super().write(chunk)


def too_large(label: str, limit: int) -> BadFile:
    """What is said of a packed file that unpacks to more than it may."""
    return BadFile(
        f"{label} unpacks to more than {limit >> 20:,} MiB, over 100 times its size, and is refused; unpack it "
        "yourself if you trust it, and give the plain file."
    )


Files = dict[str, Callable[[], Text]]
"""Names, with folders before slashes, and what reads each."""


def files_in(path: Path) -> Files:
    """The files in a zip, or in a folder and the folders right inside it."""
    return _in_folder(path) if path.is_dir() else _in_zip(path)


def file_and_neighbours(path: Path, others: Iterable[str]) -> Files:
    """One file, and those of the others that are in the same folder."""
    near = [path.with_name(other) for other in others]
    return {file.name: partial(read_text, file) for file in (path, *near) if file.is_file()}


def beside(name: str, other: str) -> str:
    """The name of another file in the same folder."""
    return str(PurePosixPath(name).with_name(other))


def _in_folder(folder: Path) -> Files:
    try:
        paths = sorted([*folder.glob("*"), *folder.glob("*/*")])
    except OSError as mistake:
        raise BadFile(f"{folder} cannot be listed ({mistake.strerror}); check who may read it.") from None
    return {
        path.relative_to(folder).as_posix(): partial(read_text, path)
        for path in paths
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
