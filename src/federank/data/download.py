"""Downloads of a publisher's file, complete or not at all.

1. What arrives is written beside the target under the name `TARGET.part`.
2. A connection that is cut, silent or refused for the moment is tried again, from where it stopped if the server
   can do that. A part is gone on with only where a mix of two versions would be detected: by the server's own
   mark of the version (ETag or date), or by the checksum at the end.
3. The complete file is checked for size and MD5 sum, flushed to disk and renamed to the target. A wrong file is
   deleted, never installed; a part of a right one stays, so that the same command goes on from there.

A folder takes one download at a time, so that two processes never write to the same part.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import shutil
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from pathlib import Path

from federank.errors import BadFile, DownloadError

Progress = Callable[[int, int | None], None]
"""Called with how many bytes are there, and of how many where that is known."""

_CHUNK = 256 * 1024
_WORTH_ANOTHER_TRY = {408, 425, 429, 500, 502, 503, 504}


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What is known of a file before it is there; None where nothing is."""

    size: int | None = None
    md5: str | None = None


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How long a slow or failing server is borne with."""

    timeout: float = 30.0
    """Seconds for which the server may be silent."""
    attempts: int = 5
    """How many tries in a row may bring nothing new."""
    pause: float = 1.0
    """Seconds before the next try; doubled each time."""


_USUAL = Patience()


class _Interrupted(Exception):
    """Trouble that may be gone at the next try."""


def fetch(
    address: str,
    target: Path,
    expected: Expected,
    *,
    progress: Progress = lambda _done, _total: None,
    patience: Patience = _USUAL,
) -> None:
    """Fetch `address` into `target`, which is there afterwards only if it is complete and as expected."""
    partial = target.with_name(f"{target.name}.part")
    with _alone_in(target.parent, partial):
        # Without a checksum a part left by an earlier run cannot be distinguished from one of another version.
        if not expected.md5 or (expected.size and _length(partial) > expected.size):
            partial.unlink(missing_ok=True)
        continued = _length(partial) > 0
        _receive(address, partial, expected, progress, patience)
        if continued and _wrong(partial, expected):
            partial.unlink()
            _receive(address, partial, expected, progress, patience)
        if wrong := _wrong(partial, expected):
            partial.unlink()
            raise DownloadError(f"What {address} sends is not the known file: {wrong}. Nothing was installed.")
        partial.replace(target)


def install_copy(source: Path, target: Path, expected: Expected) -> None:
    """Copy a local file to `target`, which is replaced only by a copy that is complete and as expected."""
    if not source.is_file():
        problem = "is a folder" if source.is_dir() else "does not exist"
        raise BadFile(f"{source} {problem}; the path of a file is needed.")
    copy = target.with_name(f"{target.name}.copy")
    with _alone_in(target.parent, copy):
        try:
            with source.open("rb") as original, copy.open("wb") as file:
                shutil.copyfileobj(original, file, _CHUNK)
                file.flush()
                os.fsync(file.fileno())
            if wrong := _wrong(copy, expected):
                raise BadFile(f"{source} is not the publisher's file: {wrong}. Nothing was installed.")
            copy.replace(target)
        finally:
            copy.unlink(missing_ok=True)


def _receive(address: str, partial: Path, expected: Expected, progress: Progress, patience: Patience) -> None:
    """Try until the part is complete, or until too many tries in a row have brought nothing new."""
    version: str | None = None
    most, fruitless = _length(partial), 0
    while _length(partial) != expected.size:
        start = _length(partial) if expected.md5 or version else 0
        try:
            with _ask(address, start, version, patience.timeout) as response:
                version = _version(response)
                _write(response, start, partial, expected, progress)
            return
        except _Interrupted as trouble:
            fruitless = 0 if _length(partial) > most else fruitless + 1
            most = max(most, _length(partial))
            if fruitless >= patience.attempts:
                kept = expected.md5 and _length(partial)
                advice = f"{kept:,} bytes are kept: run the same command to go on" if kept else "Try again later"
                raise DownloadError(f"{address} could not be fetched: {trouble}. {advice}.") from trouble
            time.sleep(min(patience.pause * 2**fruitless, 30.0))


def _ask(address: str, start: int, version: str | None, timeout: float) -> HTTPResponse:
    """The server's answer to a request for all bytes from `start` on; redirects are followed."""
    headers = {"User-Agent": "federank", "Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
        if version:
            headers["If-Range"] = version
    try:
        response: HTTPResponse = urllib.request.urlopen(
            urllib.request.Request(address, headers=headers), timeout=timeout
        )
        return response
    except urllib.error.HTTPError as refusal:
        refusal.close()
        if refusal.code == 416 and start:  # there is nothing from `start` on: the part is of another file
            return _ask(address, 0, None, timeout)
        said = f"the server answered {refusal.code} ({refusal.reason})"
        if refusal.code in _WORTH_ANOTHER_TRY:
            raise _Interrupted(said) from refusal
        raise DownloadError(f"{address} could not be fetched: {said}.") from refusal
    except (OSError, HTTPException) as trouble:
        reason = trouble.reason if isinstance(trouble, urllib.error.URLError) else trouble
        if isinstance(reason, ssl.SSLCertVerificationError):
            raise DownloadError(
                f"{address} could not be fetched: its certificate is not accepted ({reason.verify_message}). "
                "Check this machine's clock and certificates, or try again later."
            ) from trouble
        raise _Interrupted(f"no connection could be made ({reason})") from trouble


def _write(response: HTTPResponse, start: int, partial: Path, expected: Expected, progress: Progress) -> None:
    """Add what the server sends to the part, or begin the part again where it sends the full file."""
    continued = response.status == 206 and response.headers.get("Content-Range", "").startswith(f"bytes {start}-")
    done = start if continued else 0
    total = expected.size if response.length is None else done + response.length
    if expected.size is not None and total != expected.size:
        raise DownloadError(
            f"{response.url} offers {total:,} bytes, the known file has {expected.size:,}. Nothing was installed."
        )
    if total is not None and (workspace := shutil.disk_usage(partial.parent).free) < total - done:
        raise OSError(errno.ENOSPC, f"{total - done:,} bytes are still to come, {workspace:,} are free")
    with partial.open("ab" if continued else "wb") as file:
        progress(done, total)
        for chunk in _chunks(response):
            file.write(chunk)
            done += len(chunk)
            progress(done, total)
            if total is not None and done > total:
                raise DownloadError(f"{response.url} sends more than the {total:,} bytes of the known file.")
        file.flush()
        os.fsync(file.fileno())
    if total is not None and done < total:
        raise _Interrupted(f"the connection was cut after {done:,} of {total:,} bytes")


def _chunks(response: HTTPResponse) -> Iterator[bytes]:
    try:
        while chunk := response.read1(_CHUNK):
            yield chunk
    except TimeoutError as trouble:
        raise _Interrupted("the server fell silent") from trouble
    except (OSError, HTTPException) as trouble:
        raise _Interrupted(f"the connection was cut ({trouble})") from trouble


def _version(response: HTTPResponse) -> str | None:
    """The server's mark of this version of the file; a weak ETag does not vouch for bytes."""
    mark = response.headers.get("ETag", "")
    return mark if mark.startswith('"') else response.headers.get("Last-Modified")


def _wrong(file: Path, expected: Expected) -> str:
    """What is wrong with a file, as part of a sentence; empty where nothing is."""
    if expected.size is not None and _length(file) != expected.size:
        return f"it has {_length(file):,} bytes where {expected.size:,} were expected"
    if expected.md5 is not None:
        with file.open("rb") as content:
            actual = hashlib.file_digest(content, "md5").hexdigest()
        if actual != expected.md5:
            return f"its MD5 sum is {actual} where {expected.md5} was expected"
    return ""


def _length(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


@contextmanager
def _alone_in(folder: Path, unfinished: Path) -> Iterator[None]:
    """Make the folder, hold it against other processes, and put into words what the disk refuses."""
    made = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _held(folder):
            yield
    except OSError as refusal:
        if refusal.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise DownloadError(
                f"{folder} cannot be written to ({refusal.strerror}). Set FEDERANK_DATA to a folder of your own."
            ) from refusal
        kept = f" The {_length(unfinished):,} bytes that have arrived are kept." if _length(unfinished) else ""
        raise DownloadError(
            f"The disk of {folder} is full ({refusal.strerror}). Free some space and run the same command again.{kept}"
        ) from refusal
    finally:
        if made:
            with suppress(OSError):
                folder.rmdir()  # succeeds only where nothing has come into it


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """Lock the folder itself, and flush its list of names at the end."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as taken:
            raise DownloadError(f"Another process is at work in {folder}. Wait until it is done.") from taken
        except OSError:
            pass  # a file system without locks: the checksum still finds out what two writers would spoil
        yield
        with suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
