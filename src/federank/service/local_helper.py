"""A helper on the leader's own machine, for trying out: this machine could read every upload."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from federank.errors import SettingError
from federank.secagg.keys import fingerprint
from federank.service.server.config import read_config
from federank.service.server.store.database import Database
from federank.service.server.store.schema import create_tables

MEMORY = Path("/dev/shm")
PORTS_APART = 10
"""A local helper listens this many ports after its leader: 8480 beside 8470."""


@contextmanager
def running_helper(
    store: Path,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    certificate: Path | None = None,
    key: Path | None = None,
    keys: str | None = None,
) -> Iterator[str]:
    """A helper as a process of this machine, while the block runs; its address.

    Keys of rounds are in a folder of memory: `keys`, or the one that belongs to the store.
    """
    command = [sys.executable, "-m", "federank", "helper", "--quiet", "--store", str(store), "--host", host]
    command += ["--port", str(port), "--admin-port", "0"]
    if certificate is not None:
        command += ["--tls-cert", str(certificate), "--tls-key", str(key)]
    if keys is not None:
        command += ["--keys", keys]
    with exit_on_sigterm():
        # Ctrl-C is for the leader, which still needs its helper while it ends.
        helper = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
        try:
            assert helper.stdout is not None
            words = helper.stdout.readline().split()
            if len(words) != 2:
                raise SettingError("The helper could not be started; its error message stands above.")
            yield words[1]
        finally:
            helper.terminate()
            helper.wait()
            if helper.stdout is not None:
                helper.stdout.close()


@contextmanager
def exit_on_sigterm() -> Iterator[None]:
    """SIGTERM raises SystemExit while the block runs: processes that this one has started are ended too."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are the main thread's
        return
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def allows_leader(store: Path) -> Callable[[bytes], None]:
    """Lets the helper with this store serve a leader, given by its public key."""

    from federank.service.helper.store import allow_leader

    def allow(leader: bytes) -> None:
        database = Database(f"sqlite:///{store}")
        with database.connection() as connection, connection.transaction():
            allow_leader(connection, fingerprint(leader), "this machine", "")
        database.release()

    return allow


def helper_store_of(store: str) -> Path:
    """Where the local helper of a leader with this store keeps its rounds: beside it."""
    database = Database(store)
    if database.dialect != "sqlite":
        raise SettingError(
            "--local-helper is for trying out, with a store in SQLite; name a --helper, or another --store."
        )
    return database.path.with_suffix(".helper.sqlite").resolve()


def helper_port_of(store: str, port: int) -> int:
    """The port of a leader's local helper: clients know the helper by it, so a federation keeps its first one."""
    database = Database(store)
    if database.path.exists():
        with database.connection() as connection:
            create_tables(connection)
            config = read_config(connection)
        database.release()
        if config is not None and config.sums is not None:
            return urlsplit(config.sums.config.helper_origin).port or 0
    return port + PORTS_APART if port else 0
