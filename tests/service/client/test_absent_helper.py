"""Where the second server does not answer, a device says so, loses nothing, and goes on when it is back."""

import threading
import time
from contextlib import contextmanager

import httpx
import pytest
from tests.commands import refused, succeeded
from tests.service.client.homes import HISTORIES, leading, secure_home
from tests.service.federations import wait_until
from tests.service.helper.helpers import helper_process
from tests.service.server.secure.federations import LEAST, establish_sums

from federank.errors import HelperAway
from federank.service.client import federation
from federank.service.client import secure as sums
from federank.service.client.client import WAITS_FOR_HELPER

pytestmark = pytest.mark.slow


@contextmanager
def two_processes(folder):
    """A leader, and a helper process that a test may stop."""
    store = f"sqlite:///{folder / 'leader.sqlite'}"
    with helper_process(folder) as helper:
        establish_sums(store, helper.address)
        with leading(store) as leader:
            yield leader, helper


def status(leader):
    return httpx.get(f"{leader.address}/api/v1/status").json()


def test_new_client_cannot_join_and_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(sums, "_ATTEMPTS", 1)
    (tmp_path / "me.csv").write_text("item\n" + "\n".join(HISTORIES[0]) + "\n")
    given = ["--profile", str(tmp_path / "me.csv"), "--state", str(tmp_path / "device.sqlite"), "--pi", "1"]
    given += ["--sharing", "fixed-subset", "--rounds", "0", "--server"]
    with two_processes(tmp_path) as (leader, helper):
        helper.kill()
        given.append(leader.address)
        error = refused("client", *given)
        assert isinstance(error, HelperAway)
        assert helper.address not in str(error)
        assert not (tmp_path / "device.sqlite").exists()
        assert status(leader)["clients"] == 0
        helper.start()
        succeeded("client", *given)
        wait_until(lambda: status(leader)["clients"] == 1)


def test_waiting_client_says_why_and_continues(tmp_path, monkeypatch):
    monkeypatch.setattr(federation, "LONG_POLL", 1)
    with two_processes(tmp_path) as (leader, helper):
        homes = [secure_home(leader, tmp_path, number) for number in range(LEAST)]
        helper.kill()
        stored = []
        threads = [threading.Thread(target=lambda home=home: stored.append(home.take_part(rounds=2))) for home in homes]
        for thread in threads:
            thread.start()
        while not all(WAITS_FOR_HELPER in home.notes for home in homes):
            assert all(thread.is_alive() for thread in threads), [home.notes for home in homes]
            time.sleep(0.1)
        assert status(leader)["version"] == 0
        helper.start()
        for thread in threads:
            thread.join()
        assert stored == [2] * LEAST, "what was sent while the helper was away is in a sum too"
        for home in homes:
            assert home.notes.count(WAITS_FOR_HELPER) == 1, "said once, not at every look"
        wait_until(lambda: not status(leader)["health"]["reasons"])
