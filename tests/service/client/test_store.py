"""A client's file: private, changed atomically, and an error for every way in which it can be broken."""

import fcntl
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing, suppress

import numpy as np
import pytest

from federank.errors import BadState
from federank.federation.client import History, Model
from federank.service.client.store import FORMAT, ClientStore, created, taking_part


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "device.sqlite"
    with created(path) as store:
        store.write_history(History(np.array([7])))
    return path


def items(path):
    with ClientStore(path) as store:
        return store.profile().tolist()


def test_file_is_private(path):
    assert path.stat().st_mode & 0o777 == 0o600
    assert items(path) == [7]
    path.chmod(0o644)
    with pytest.raises(BadState, match="600"):
        ClientStore(path)


@pytest.mark.usefixtures("synchronised")
def test_commits_wait_for_the_disk(path):
    with ClientStore(path) as store:
        assert store._sql.execute("PRAGMA synchronous").fetchone() == (3,)


def test_failed_creation_leaves_nothing(tmp_path):
    path = tmp_path / "device.sqlite"
    with pytest.raises(BadState), created(path) as store:
        store.write_history(History(np.array([7, 7])))
    assert list(tmp_path.iterdir()) == []


def test_existing_file_is_not_replaced(path):
    with pytest.raises(BadState), created(path):
        pass
    assert items(path) == [7]


def test_two_creations_at_once(tmp_path):
    path = tmp_path / "device.sqlite"
    with pytest.raises(BadState), created(path):
        path.write_bytes(b"another's")
    assert path.read_bytes() == b"another's"
    assert list(tmp_path.iterdir()) == [path]


def test_failed_transaction_changes_nothing(path):
    with ClientStore(path) as store:
        with suppress(BadState), store.transaction():
            store.write_model(Model(1, {"vectors": np.zeros((1, 1))}))
            store.write_history(History(np.array([8, 8])))
        assert store.model_version() == -1
    assert items(path) == [7]


@pytest.mark.slow
def test_killed_transaction_changes_nothing(path):
    program = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from federank.federation.client import History\n"
        "from federank.service.client.store import ClientStore\n"
        "import numpy as np\n"
        "store = ClientStore(Path(sys.argv[1]))\n"
        "with store.transaction():\n"
        "    store.write_history(History(np.arange(100, 100_000)))\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    ended = subprocess.run([sys.executable, "-c", program, str(path)], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert path.with_name(path.name + "-journal").exists()  # the crash was in the middle of writing
    assert items(path) == [7]


def test_missing_file_is_refused(tmp_path):
    with pytest.raises(BadState):
        ClientStore(tmp_path / "none.sqlite")


@pytest.mark.parametrize("other", [FORMAT - 1, FORMAT + 1])
def test_file_of_another_format_is_refused(path, other):
    with closing(sqlite3.connect(path)) as sql:
        sql.execute(f"PRAGMA user_version = {other}")
    with pytest.raises(BadState, match=f"{other}"):
        ClientStore(path)


def test_other_database_is_refused(tmp_path):
    path = tmp_path / "other.sqlite"
    with closing(sqlite3.connect(path)) as sql:
        sql.execute("CREATE TABLE things (one INTEGER)")
    path.chmod(0o600)
    with pytest.raises(BadState):
        ClientStore(path)


@pytest.mark.parametrize("damage", ["no database", "cut", "holes"])
def test_damaged_file_is_refused(path, damage):
    content = bytearray(path.read_bytes())
    if damage == "no database":
        content[:100] = bytes(100)
    elif damage == "cut":
        del content[len(content) // 2 :]
    else:
        content[4096 : len(content)] = b"\xff" * (len(content) - 4096)
    path.write_bytes(content)
    with pytest.raises(BadState):
        ClientStore(path)


@pytest.mark.slow
def test_second_process_cannot_take_part(path):
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from federank.service.client.store import taking_part\n"
        "with taking_part(Path(sys.argv[1])):\n"
        "    print('in', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", program, str(path)], **pipes) as other:
        assert other.stdout.readline() == b"in\n"
        with pytest.raises(BadState, match="process"), taking_part(path):
            pass
        assert items(path) == [7]  # looking is not taking part
        other.kill()
    with taking_part(path):  # a crash has released it
        pass


def test_taking_part_keeps_sqlites_locks(path):
    with taking_part(path) as store:
        with store.transaction():
            store.write_history(History(np.array([7, 8])))
            held = os.open(path, os.O_RDONLY)
            with pytest.raises(BlockingIOError):
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        store.close()
        os.close(held)
    assert items(path) == [7, 8]
