"""From a file to the text in it: plain, gzip or Zstandard, told apart by their first bytes.

A plain file is left where it is and looked at through a memory map. A packed one is unpacked in memory, never on
disk, and no further than a limit that no honest table reaches: so a few kilobytes that claim to be terabytes end
in a sentence. What is not text (bytes of zero, UTF-16) is refused here, before anything tries to parse it.
"""

from __future__ import annotations

import gzip
import io
import mmap
import zlib
from collections.abc import Iterator
from pathlib import Path
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
    """The bytes that tell a file's format; a path where no file can be read is refused."""
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
    """How many bytes so many packed ones may unpack to: rating tables shrink five to twenty times, not hundreds."""
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
