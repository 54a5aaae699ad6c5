"""A PostgreSQL server of the tests' own: in a folder that goes away, on a free port, never as root."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import psycopg
from tests.pasted import free_ports


class PostgreSQL:
    """A server that can be stopped and started; `database()` gives an empty one."""

    def __init__(self, programs: Path, owner: str = "federank") -> None:
        self.owner, self._programs = owner, programs
        self.folder = Path(tempfile.mkdtemp(prefix="federank-pg-"))
        self._user = _other_user() if os.getuid() == 0 else None
        if self._user:
            os.chown(self.folder, *_ids(self._user))
        [self.port] = free_ports(1)
        self._process = None
        data = self.folder / "data"
        made = self._run(
            "initdb", "-D", data, "-U", self.owner, "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C"
        )
        assert made.returncode == 0, made.stderr.decode()

    def start(self) -> None:
        arguments = [
            self._programs / "postgres",
            *("-D", self.folder / "data", "-k", self.folder, "-p", self.port),
            *("-c", "listen_addresses=127.0.0.1", "-c", "max_connections=60", "-c", "shared_buffers=16MB"),
        ]
        self._process = subprocess.Popen(
            [str(argument) for argument in arguments],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **self._as_user(),
        )
        while True:
            try:
                psycopg.connect(self.address("postgres")).close()
                return
            except psycopg.OperationalError:
                assert self._process.poll() is None, "PostgreSQL has ended"
                time.sleep(0.05)

    def stop(self) -> None:
        """At once, as if pulled out: connections are cut."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait()
            self._process = None

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def database(self) -> str:
        """The one database, emptied: quicker than a new one for each test."""
        address = self.address("postgres")
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
            )
            connection.execute("DROP SCHEMA public CASCADE")
            connection.execute("CREATE SCHEMA public")
        return address

    def address(self, name: str) -> str:
        return f"postgresql://{self.owner}@127.0.0.1:{self.port}/{name}"

    def _run(self, program, *arguments):
        command = [str(self._programs / program), *map(str, arguments)]
        return subprocess.run(command, capture_output=True, check=False, **self._as_user())

    def _as_user(self):
        if self._user is None:
            return {"cwd": self.folder}
        user, group = _ids(self._user)
        return {"cwd": self.folder, "user": user, "group": group, "extra_groups": []}


def _other_user() -> str:
    for name in ("postgres", "nobody"):
        try:
            pwd.getpwnam(name)
            return name
        except KeyError:
            continue
    raise AssertionError("PostgreSQL will not run as root, and there is no other user")


def _ids(name):
    entry = pwd.getpwnam(name)
    return entry.pw_uid, entry.pw_gid
