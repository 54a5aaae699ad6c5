"""Round keys: one file each, in a folder that is memory and never a disk.

A round's private key opens every seed of the round, so nothing may bring it back once it is destroyed: no backup, no
undeleted file, no snapshot. A folder of memory (tmpfs, /dev/shm) has none of these, and unlike a process's own memory
it outlives a crash of the helper, so that a round need not be abandoned for it. A reboot loses the keys, and the helper
then abandons those rounds. What memory is swapped to is the operator's: docs/sums.md says what to do about it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from federank.errors import SettingError
from federank.files import PRIVATE, PRIVATE_FOLDER
from federank.protocol.sums.canonical import digest
from federank.protocol.sums.identities import PRIVATE_BYTES

MOUNTS = Path("/proc/self/mounts")
MEMORY = ("tmpfs", "ramfs")


class RoundKeys:
    """The keys of rounds that are under way, by their public keys."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
            folder.chmod(PRIVATE_FOLDER)
        except OSError as reason:
            raise SettingError(
                f"The folder of round keys {folder} cannot be used ({reason.strerror}); name another with --keys."
            ) from reason

    def put(self, public: bytes, private: bytes) -> None:
        """Keep a new round's key."""
        file = os.open(self._path(public), os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
        try:
            os.write(file, private)
        finally:
            os.close(file)

    def get(self, public: bytes) -> bytes | None:
        """A round's key, if it is still there."""
        try:
            content = self._path(public).read_bytes()
        except FileNotFoundError:
            return None
        # Zeros are a key that another process is just taking away.
        return content if len(content) == PRIVATE_BYTES and any(content) else None

    def destroy(self, public: bytes) -> None:
        """Overwrite a round's key and take it away; whoever asks for it from now on finds nothing."""
        _destroy(self._path(public))

    def destroy_all_but(self, kept: list[bytes]) -> int:
        """Destroy every key but those of these rounds: what a crash has left behind. How many there were."""
        names = {self._path(public).name for public in kept}
        lost = [path for path in self._folder.iterdir() if path.name not in names]
        for path in lost:
            _destroy(path)
        return len(lost)

    def _path(self, public: bytes) -> Path:
        return self._folder / digest("round key", public).hex()


def _destroy(path: Path) -> None:
    with suppress(FileNotFoundError):
        with path.open("r+b") as file:
            file.write(bytes(PRIVATE_BYTES))
            file.flush()
            os.fsync(file.fileno())
        path.unlink()


def usual_folder(store: str) -> Path:
    """Where the keys of a store's rounds are, where nobody says otherwise."""
    return Path("/dev/shm") / f"federank-helper-{os.getuid()}-{digest('store', store.encode()).hex()[:16]}"


def refuse_a_disk(folder: Path, mounts: Path = MOUNTS) -> None:
    """Refuse a folder that is not memory."""
    place = folder.resolve()
    try:
        lines = [line.split(" ") for line in mounts.read_text().splitlines()]
    except OSError:
        lines = []
    found = [(Path(line[1]), line[2]) for line in lines if len(line) > 2 and place.is_relative_to(line[1])]
    kind = max(found, key=lambda mount: len(mount[0].parts), default=(place, "unknown"))[1]
    if kind not in MEMORY:
        raise SettingError(
            f"The folder of round keys {folder} is on a file system of kind {kind}, and a key there could be brought "
            "back from a backup or from the disk; name a folder of memory (tmpfs) with --keys."
        )
