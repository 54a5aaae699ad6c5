"""The helper's store: its identity, the federation configs it serves, and one row for each round.

    identities    the key that signs now, and those before it with their word for the next
    leaders       keys of leaders that the operator has allowed, by their fingerprints
    federations   the config of each season of a federation, by its digest, and the season that has begun after it
    rounds        open -> answered, or open -> abandoned; the offer, and once it has ended set, sum and record

No round key is here, and no seed: a copy of this store opens nothing. Statements take a connection; anyone who
changes a
round holds its row, so that two processes cannot both answer it.
"""

from __future__ import annotations

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from federank.errors import SettingError
from federank.files import PRIVATE, PRIVATE_FOLDER
from federank.secagg.canonical import digest
from federank.secagg.keys import PRIVATE_BYTES
from federank.service.server.store.database import Connection

OPEN, ANSWERED, ABANDONED = "open", "answered", "abandoned"

FORMAT = "federank helper 1"
SCHEMA = (
    "CREATE TABLE identities (number {integer} PRIMARY KEY, private {bytes} NOT NULL, public {bytes} NOT NULL,"
    " signature {bytes} NOT NULL)",
    "CREATE TABLE leaders (fingerprint TEXT PRIMARY KEY, name TEXT NOT NULL, since TEXT NOT NULL)",
    "CREATE TABLE federations (config {bytes} PRIMARY KEY, content {bytes} NOT NULL, season {integer} NOT NULL,"
    " successor {bytes} NOT NULL)",
    "CREATE TABLE rounds (config {bytes} NOT NULL, number {integer} NOT NULL, state TEXT NOT NULL,"
    " terms {bytes} NOT NULL, public {bytes} NOT NULL, offer {bytes} NOT NULL, expires {integer} NOT NULL,"
    " members {bytes} NOT NULL, total {bytes} NOT NULL, record {bytes} NOT NULL,"
    " PRIMARY KEY (config, number))",
)


class Identity(NamedTuple):
    """A key that signs or has signed; `signature` is the word of the one before it, empty for the first."""

    private: bytes
    public: bytes
    signature: bytes

    def __repr__(self) -> str:
        return "Identity(...)"


class Round(NamedTuple):
    """A round as the store has it."""

    number: int
    state: str
    terms: bytes
    public: bytes
    offer: bytes
    expires: int
    members: bytes
    record: bytes


def identities(connection: Connection) -> list[Identity]:
    """Every identity, oldest first."""
    rows = connection.all("SELECT private, public, signature FROM identities ORDER BY number")
    return [Identity(*map(bytes, row)) for row in rows]


def add_identity(connection: Connection, number: int, identity: Identity) -> None:
    """Keep a new identity."""
    connection.run("INSERT INTO identities (number, private, public, signature) VALUES (?, ?, ?, ?)", number, *identity)


class AllowedLeader(NamedTuple):
    """A leader whose federations are served."""

    fingerprint: str
    name: str
    since: str


def allow_leader(connection: Connection, fingerprint: str, name: str, since: str) -> bool:
    """Serve the federations of the leader with this key; whether it was not allowed before."""
    return bool(
        connection.run(
            "INSERT INTO leaders (fingerprint, name, since) VALUES (?, ?, ?) ON CONFLICT (fingerprint) DO NOTHING",
            *(fingerprint, name, since),
        )
    )


def remove_leader(connection: Connection, fingerprint: str) -> bool:
    """Serve this leader no more; whether it was allowed. What was published of its rounds stays."""
    return bool(connection.run("DELETE FROM leaders WHERE fingerprint = ?", fingerprint))


def allowed_leaders(connection: Connection) -> list[AllowedLeader]:
    """Every leader that is allowed, oldest first."""
    rows = connection.all("SELECT fingerprint, name, since FROM leaders ORDER BY since, fingerprint")
    return [AllowedLeader(*map(str, row)) for row in rows]


def is_allowed(connection: Connection, fingerprint: str) -> bool:
    """Whether the leader with this key is allowed."""
    return connection.one("SELECT 1 FROM leaders WHERE fingerprint = ?", fingerprint) is not None


def probe(connection: Connection) -> None:
    """Write something and take it away again: raises where the store takes nothing."""
    with connection.transaction():
        allow_leader(connection, "probe", "x" * 16_384, "")
    with connection.transaction():
        remove_leader(connection, "probe")


def config_of(connection: Connection, config: bytes) -> bytes | None:
    """The federation config of this digest."""
    content = connection.value("SELECT content FROM federations WHERE config = ?", config)
    return None if content is None else bytes(content)


def count_federations(connection: Connection) -> int:
    """How many federations are served; the seasons of one count once."""
    return int(connection.value("SELECT COUNT(*) FROM federations WHERE season = 1"))


def add_federation(connection: Connection, config: bytes, content: bytes, season: int) -> None:
    """Serve another federation, or another season of one; nothing happens if it is served already."""
    connection.run(
        "INSERT INTO federations (config, content, season, successor) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (config) DO NOTHING",
        *(config, content, season, b""),
    )


def successor_of(connection: Connection, config: bytes) -> bytes:
    """The season that has begun after this one; nothing while there is none."""
    return bytes(connection.value("SELECT successor FROM federations WHERE config = ?", config) or b"")


def put_successor(connection: Connection, config: bytes, successor: bytes) -> None:
    """Another season has begun after this one."""
    connection.run("UPDATE federations SET successor = ? WHERE config = ?", successor, config)


def lock_federation(connection: Connection, config: bytes) -> None:
    """Let no one else begin or end a round of this federation until the transaction ends."""
    connection.one(f"SELECT 1 FROM federations WHERE config = ?{connection.update_lock()}", config)


_ROUND = "SELECT number, state, terms, public, offer, expires, members, record FROM rounds"


def round_of(connection: Connection, config: bytes, number: int) -> Round | None:
    """One round."""
    row = connection.one(f"{_ROUND} WHERE config = ? AND number = ?", config, number)
    return None if row is None else _round(row)


def newest_round(connection: Connection, config: bytes) -> Round | None:
    """The round with the highest number."""
    row = connection.one(f"{_ROUND} WHERE config = ? ORDER BY number DESC LIMIT 1", config)
    return None if row is None else _round(row)


def rounds_of(connection: Connection, config: bytes, first: int, most: int) -> list[Round]:
    """Rounds from this number on, at most this many."""
    rows = connection.all(f"{_ROUND} WHERE config = ? AND number >= ? ORDER BY number LIMIT ?", config, first, most)
    return [_round(row) for row in rows]


def open_keys(connection: Connection) -> list[bytes]:
    """The public keys of all rounds that are under way."""
    return [bytes(row[0]) for row in connection.all("SELECT public FROM rounds WHERE state = ?", OPEN)]


def count_rounds(connection: Connection) -> dict[str, int]:
    """How many rounds there are, by their state."""
    rows = connection.all("SELECT state, COUNT(*) FROM rounds GROUP BY state")
    return {OPEN: 0, ANSWERED: 0, ABANDONED: 0} | {str(state): int(count) for state, count in rows}


def add_round(
    connection: Connection, config: bytes, number: int, terms: bytes, public: bytes, offer: bytes, expires: int
) -> None:
    """Begin a round."""
    connection.run(
        "INSERT INTO rounds (config, number, state, terms, public, offer, expires, members, total, record)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        *(config, number, OPEN, terms, public, offer, expires, b"", b"", b""),
    )


def end_round(
    connection: Connection,
    config: bytes,
    number: int,
    state: str,
    record: bytes,
    members: bytes = b"",
    total: bytes = b"",
) -> None:
    """End a round that is open, for ever."""
    connection.run(
        "UPDATE rounds SET state = ?, record = ?, members = ?, total = ? WHERE config = ? AND number = ? AND state = ?",
        *(state, record, members, total, config, number, OPEN),
    )


def drop_sums(connection: Connection, config: bytes, before: int) -> int:
    """Drop the sums of rounds before this one; how many had one."""
    return connection.run(
        "UPDATE rounds SET total = ? WHERE config = ? AND number < ? AND LENGTH(total) > 0", b"", config, before
    )


def total_of(connection: Connection, config: bytes, number: int) -> bytes:
    """The noisy sum of a round that was answered."""
    return bytes(connection.value("SELECT total FROM rounds WHERE config = ? AND number = ?", config, number) or b"")


def _round(row: tuple[Any, ...]) -> Round:
    number, state, terms, public, offer, expires, members, record = row
    contents = map(bytes, (members, record))
    return Round(int(number), str(state), bytes(terms), bytes(public), bytes(offer), int(expires), *contents)


# Round keys: one file each, in a folder that is memory and never a disk.


MOUNTS = Path("/proc/self/mounts")
MEMORY = ("tmpfs", "ramfs")


class RoundKeys:
    """The keys of rounds that are under way, by their public keys."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
            status = folder.lstat()
            # The usual name can be guessed: another user may have put a link or a folder of their own there.
            if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
                raise SettingError(
                    f"The folder of round keys {folder} is a link or another user's; remove it, or name another with "
                    "--keys."
                )
            folder.chmod(PRIVATE_FOLDER)
        except OSError as reason:
            raise SettingError(
                f"The folder of round keys {folder} cannot be used ({reason.strerror}); name another with --keys."
            ) from reason

    def close(self) -> None:
        """Remove the folder, unless it holds keys of rounds that are under way."""
        with suppress(OSError):
            self._folder.rmdir()

    def probe(self) -> None:
        """Raise where no key could be kept."""
        with tempfile.TemporaryFile(dir=self._folder) as file:
            file.write(bytes(PRIVATE_BYTES))
            file.flush()

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
        """Overwrite a round's key and take it away; anyone who asks for it from now on finds nothing."""
        _destroy(self._path(public))

    def destroy_all_but(self, kept: list[bytes]) -> int:
        """Destroy every key but those of these rounds: what a crash has left behind. The number of them."""
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
    """Where the keys of a store's rounds are, by default."""
    return Path("/dev/shm") / f"federank-helper-{os.getuid()}-{digest('store', store.encode()).hex()[:16]}"


def refuse_a_disk(folder: Path, mounts: Path = MOUNTS) -> None:
    """Refuse a folder that is not memory."""
    place = folder.resolve()
    try:
        lines = [line.split(" ") for line in mounts.read_text().splitlines()]
    except OSError:
        lines = []
    mounted = [(Path(line[1]), line[2]) for line in lines if len(line) > 2 and place.is_relative_to(line[1])]
    kind = max(mounted, key=lambda mount: len(mount[0].parts), default=(place, "unknown"))[1]
    if kind not in MEMORY:
        raise SettingError(
            f"The folder of round keys {folder} is on a file system of kind {kind}, and a key there could be brought "
            "back from a backup or from the disk; name a folder of memory (tmpfs) with --keys."
        )
