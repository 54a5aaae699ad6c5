"""A device's file: owner's eyes only, whole or not at all, and a sentence for every way in which it can be broken."""

import fcntl
import os
import signal
import sqlite3
import subprocess
import sys

import numpy as np
import pytest

from federank.errors import BadState
from federank.federation.client import History, Model
from federank.service.client.store import FORMAT, DeviceStore, created, taking_part


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "device.sqlite"
    with created(path) as store:
        store.write_history(History(np.array([7])))
    return path


def items(path):
    with DeviceStore(path) as store:
        return store.profile().tolist()


def test_only_its_owner_can_open_the_file(path):
    assert path.stat().st_mode & 0o777 == 0o600
    assert items(path) == [7]


@pytest.mark.usefixtures("synchronised")
def test_what_is_written_is_on_the_disk_before_anything_is_sent(path):
    with DeviceStore(path) as store:
        assert store._sql.execute("PRAGMA synchronous").fetchone() == (3,)


def test_a_file_that_others_can_open_is_refused(path):
    path.chmod(0o644)
    with pytest.raises(BadState, match="chmod 600"):
        DeviceStore(path)


def test_a_making_that_fails_leaves_nothing(tmp_path):
    path = tmp_path / "device.sqlite"
    with pytest.raises(BadState, match="UNIQUE"), created(path) as store:
        store.write_history(History(np.array([7, 7])))
    assert list(tmp_path.iterdir()) == []


def test_a_client_is_never_replaced_by_a_new_one(path):
    with pytest.raises(BadState, match="there already"), created(path):
        pass
    assert items(path) == [7]


def test_of_two_processes_that_make_the_same_client_one_fails(tmp_path):
    path = tmp_path / "device.sqlite"
    with pytest.raises(BadState, match="in the meantime"), created(path):
        path.write_bytes(b"another's")
    assert path.read_bytes() == b"another's"
    assert list(tmp_path.iterdir()) == [path]


def test_a_transaction_that_fails_changes_nothing(path):
    def two_steps(store):
        with store.transaction():
            store.write_model(Model(1, {"vectors": np.zeros((1, 1))}))
            store.write_history(History(np.array([8, 8])))

    with DeviceStore(path) as store:
        with pytest.raises(BadState, match="UNIQUE"):
            two_steps(store)
        assert store.model_version() == -1
    assert items(path) == [7]


@pytest.mark.slow
def test_a_process_killed_inside_a_transaction_changes_nothing(path):
    program = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from federank.federation.client import History\n"
        "from federank.service.client.store import DeviceStore\n"
        "import numpy as np\n"
        "store = DeviceStore(Path(sys.argv[1]))\n"
        "with store.transaction():\n"
        "    store.write_history(History(np.arange(100, 100_000)))\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    ended = subprocess.run([sys.executable, "-c", program, str(path)], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert path.with_name(path.name + "-journal").exists()  # the crash was in the median of writing
    assert items(path) == [7]


def test_a_missing_file_says_how_to_make_one(tmp_path):
    with pytest.raises(BadState, match="enrols one"):
        DeviceStore(tmp_path / "nobody.sqlite")


@pytest.mark.parametrize("other", [FORMAT - 1, FORMAT + 1])
def test_a_file_of_another_format_is_refused(path, other):
    sql = sqlite3.connect(path)
    sql.execute(f"PRAGMA user_version = {other}")
    sql.close()
    with pytest.raises(BadState, match=f"format {other}"):
        DeviceStore(path)


def test_another_users_database_is_refused(tmp_path):
    path = tmp_path / "other.sqlite"
    sql = sqlite3.connect(path)
    sql.execute("CREATE TABLE things (one INTEGER)")
    sql.close()
    path.chmod(0o600)
    with pytest.raises(BadState, match="not a client's file"):
        DeviceStore(path)


@pytest.mark.parametrize("damage", ["no database", "cut", "holes"])
def test_a_damaged_file_is_an_error(path, damage):
    content = bytearray(path.read_bytes())
    if damage == "no database":
        content[:100] = bytes(100)
    elif damage == "cut":
        del content[len(content) // 2 :]
    else:
        content[4096 : len(content)] = b"\xff" * (len(content) - 4096)
    path.write_bytes(content)
    with pytest.raises(BadState, match=r"damaged|not a client's file"):
        DeviceStore(path)


@pytest.mark.slow
def test_a_second_process_cannot_take_part_with_the_same_file(path):
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
        with pytest.raises(BadState, match="Another process"), taking_part(path):
            pass
        assert items(path) == [7]  # looking is not taking part
        other.kill()
    with taking_part(path):  # a crash has released it
        pass


def test_taking_part_leaves_the_locks_of_sqlite_alone(path):
    with taking_part(path) as store:
        with store.transaction():
            store.write_history(History(np.array([7, 8])))
            held = os.open(path, os.O_RDONLY)
            with pytest.raises(BlockingIOError):
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        store.close()
        os.close(held)
    assert items(path) == [7, 8]
