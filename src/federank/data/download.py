"""Downloads of a publisher's file, complete or not at all.

1. What arrives is written beside the target under the name `TARGET.part`.
2. A connection that is cut, silent or refused for the moment is tried again, from where it stopped if the server
   can do that.
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
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import NamedTuple

from federank.errors import BadFile, DownloadError

_CHUNK = 256 * 1024
_WORTH_ANOTHER_TRY = {408, 425, 429, 500, 502, 503, 504}


class Patience(NamedTuple):
    """How long a slow or failing server is borne with."""

    timeout: float = 30.0  # seconds for which the server may be silent
    attempts: int = 5  # how many tries in a row may bring nothing new
    pause: float = 1.0  # seconds before the next try; doubled each time


_USUAL = Patience()


class _Interrupted(Exception):
    """Trouble that may be gone at the next try."""


def fetch(
    address: str,
    target: Path,
    size: int,
    md5: str,
    *,
    progress: Callable[[int], None] = lambda _: None,
    patience: Patience = _USUAL,
) -> None:
    """Fetch `address` into `target`, which is there afterwards only if it is complete and as expected.

    `progress` is called with how many bytes are there.
    """
    partial = target.with_name(f"{target.name}.part")
    with _alone_in(target.parent, partial):
        if _length(partial) > size:
            partial.unlink()
        continued = _length(partial) > 0
        _receive(address, partial, size, progress, patience)
        if continued and _wrong(partial, size, md5):  # it was a part of another file
            partial.unlink()
            _receive(address, partial, size, progress, patience)
        if wrong := _wrong(partial, size, md5):
            partial.unlink()
            raise DownloadError(f"What {address} sends is not the known file: {wrong}. Nothing was installed.")
        partial.replace(target)


def install_copy(source: Path, target: Path, size: int | None, md5: str | None) -> None:
    """Copy a local file to `target`, which is replaced only by a copy that is complete and as far as known right."""
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
            if wrong := _wrong(copy, size, md5):
                raise BadFile(f"{source} is not the publisher's file: {wrong}. Nothing was installed.")
            copy.replace(target)
        finally:
            copy.unlink(missing_ok=True)


def _receive(address: str, partial: Path, size: int, progress: Callable[[int], None], patience: Patience) -> None:
    """Try until the part is complete, or until too many tries in a row have brought nothing new."""
    most, fruitless = _length(partial), 0
    while _length(partial) != size:
        try:
            with _ask(address, _length(partial), patience.timeout) as response:
                _write(response, partial, size, progress)
            return
        except _Interrupted as trouble:
            fruitless = 0 if _length(partial) > most else fruitless + 1
            most = max(most, _length(partial))
            if fruitless >= patience.attempts:
                kept = _length(partial)
                advice = f"{kept:,} bytes are kept: run the same command to go on" if kept else "Try again later"
                raise DownloadError(f"{address} could not be fetched: {trouble}. {advice}.") from trouble
            time.sleep(min(patience.pause * 2**fruitless, 30.0))


def _ask(address: str, start: int, timeout: float) -> HTTPResponse:
    """The server's answer to a request for all bytes from `start` on; redirects are followed."""
    headers = {"User-Agent": "federank", "Accept-Encoding": "identity"}
    headers |= {"Range": f"bytes={start}-"} if start else {}
    try:
        request = urllib.request.Request(address, headers=headers)
        response: HTTPResponse = urllib.request.urlopen(request, timeout=timeout)
        return response
    except urllib.error.HTTPError as refusal:
        refusal.close()
        if refusal.code == 416 and start:  # there is nothing from `start` on: the part is of another file
            return _ask(address, 0, timeout)
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


def _write(response: HTTPResponse, partial: Path, size: int, progress: Callable[[int], None]) -> None:
    """Add what the server sends to the part, or begin the part again where it sends the full file."""
    done = _length(partial)
    continued = response.status == 206 and response.headers.get("Content-Range", "").startswith(f"bytes {done}-")
    done = done if continued else 0
    if response.length is not None and done + response.length != size:
        raise DownloadError(
            f"{response.url} offers {done + response.length:,} bytes, the known file has {size:,}. Nothing was "
            "installed."
        )
    if (free := shutil.disk_usage(partial.parent).free) < size - done:
        raise OSError(errno.ENOSPC, f"{size - done:,} bytes are still to come, {free:,} are free")
    with partial.open("ab" if continued else "wb") as file:
        while chunk := _chunk(response):
            file.write(chunk)
            done += len(chunk)
            progress(done)
            if done > size:
                raise DownloadError(f"{response.url} sends more than the {size:,} bytes of the known file.")
        file.flush()
        os.fsync(file.fileno())
    if done < size:
        raise _Interrupted(f"the connection was cut after {done:,} of {size:,} bytes")


def _chunk(response: HTTPResponse) -> bytes:
    try:
        return response.read1(_CHUNK)
    except (OSError, HTTPException) as trouble:
        raise _Interrupted(f"the connection was cut ({trouble})") from trouble


def _wrong(file: Path, size: int | None, md5: str | None) -> str:
    """What is wrong with a file, as part of a sentence; empty where nothing is."""
    if size is not None and _length(file) != size:
        return f"it has {_length(file):,} bytes where {size:,} were expected"
    if md5 is not None:
        with file.open("rb") as content:
            actual = hashlib.file_digest(content, "md5").hexdigest()
        if actual != md5:
            return f"its MD5 sum is {actual} where {md5} was expected"
    return ""


def _length(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


@contextmanager
def _alone_in(folder: Path, unfinished: Path) -> Iterator[None]:
    """Make the folder, lock it against other processes, and put into words what the disk refuses."""
    made = not folder.exists()
    descriptor = None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as taken:
            raise DownloadError(f"Another process is at work in {folder}. Wait until it is done.") from taken
        except OSError:
            pass  # a file system without locks: the checksum still finds out what two writers would spoil
        yield
        with suppress(OSError):
            os.fsync(descriptor)
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
        if descriptor is not None:
            os.close(descriptor)
        if made:
            with suppress(OSError):
                folder.rmdir()  # succeeds only where nothing has come into it
