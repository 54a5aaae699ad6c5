"""`make visit` and `federank demo --serve`: films, or a city, with simulated clients, visited with a real browser.

The demo is started as it ships; only its port is the operating system's choice. One visit is as a phone on the network
would make it: over https, with a certificate made at start.
"""

import hashlib
import json
import os
import re
import shlex
import signal
import sqlite3
import ssl
import subprocess
import sys
import time
from contextlib import closing, contextmanager
from itertools import pairwise
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import expect
from tests.service.web.browsing import Visitor, browsing

from federank.service.demo import CLIENTS, code_lines, code_rows
from federank.service.server.tickets import use_of

ROOT = Path(__file__).parents[3]
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
LAST_LINE = "End it with Ctrl-C"
OTHER_LOOPBACK = "127.0.0.2"  # of this machine too, but not its usual name: as an address of a network is
MOST_LOOKS = 600  # a second apart; only a bound: nothing waits longer than it has to


class Demo:
    """A demo that runs, and its stores in a folder."""

    def __init__(self, process, printed, folder):
        self.process, self.printed, self._folder = process, printed, folder
        [self.address] = re.findall(r"Open (http\S+[^.\s])", printed)

    def status(self):
        return httpx.get(f"{self.address}/api/v1/status", verify=False).json()

    def wait_until(self, holds):
        """Look at the status until something is true of it; the status."""
        for _ in range(MOST_LOOKS):
            status = self.status()
            if holds(status):
                return status
            time.sleep(1)
        raise AssertionError(f"the demo never came to that: {status}")

    def clients_process(self):
        """The id of the process with the simulated clients."""
        listed = subprocess.run(["ps", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
        rows = [line.split(None, 2) for line in listed.splitlines()]
        [found] = [
            int(process)
            for process, parent, arguments in rows
            if int(parent) == self.process.pid and "federank.service.demo" in arguments
        ]
        return found

    def record_of(self, device):
        """The server's record of a device: of each round with an upload of it, what became of it and its size.

        An upload is stored under a name that only the federation's key can work out.
        """
        [store] = self._folder.glob("federank-demo-*/federation.sqlite")
        stored = "SELECT r.state, u.outcome, u.size FROM uploads u JOIN rounds r ON r.number = u.round WHERE ticket = ?"
        words = {("aggregated", "counted"): "aggregated"} | {
            ("abandoned", seen): "discarded" for seen in ("", "counted")
        }
        record = {}
        with closing(sqlite3.connect(store)) as connection:
            [config] = connection.execute("SELECT value FROM metadata WHERE name = 'config'").fetchone()
            key = bytes.fromhex(json.loads(config)["ticket_key"])
            for (number,) in connection.execute("SELECT number FROM rounds").fetchall():
                for state, outcome, size in connection.execute(stored, [use_of(key, device, number)]):
                    record[number] = words.get((state, outcome), "left out"), size
        return record


@contextmanager
def running(command, folder):
    """A demo while the block runs; Ctrl-C must end it."""
    environment = {"TMPDIR": str(folder)}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=os.environ | environment, start_new_session=True
    )
    try:
        yield Demo(process, "".join(_until_it_serves(process.stdout)), folder)
    finally:
        process.send_signal(signal.SIGINT)
        code = process.wait()
        process.stdout.close()
    assert code == 0
    assert list(folder.iterdir()) == [], "nothing of it is kept"


def make_visit():
    """The command that `make visit` runs, on a port of the operating system's choice."""
    words = ["make", "--no-print-directory", "--dry-run", "--assume-old=.venv/.service"]
    words += ["visit", "PORT=0", f"RUN={sys.executable}"]
    return shlex.split(subprocess.run(words, capture_output=True, text=True, cwd=ROOT, check=True).stdout)


@pytest.mark.slow
def test_make_visit_restarts_killed_clients(tmp_path):
    with running(make_visit(), tmp_path) as demo:
        status = demo.wait_until(lambda status: status["version"] >= 3)
        assert status["simulated"] == {"state": "running", "clients": CLIENTS}
        assert status["clients"] == CLIENTS
        first = demo.clients_process()
        os.kill(first, signal.SIGKILL)
        gone = demo.wait_until(lambda status: status["simulated"]["state"] != "running")
        back = demo.wait_until(
            lambda status: status["simulated"]["state"] == "running" and status["version"] > gone["version"]
        )
        assert demo.clients_process() != first
    assert back["clients"] == 2 * CLIENTS, "those of before were killed and have not left"


@pytest.mark.slow
@pytest.mark.parametrize("world", [[], ["--films", "--host", OTHER_LOOPBACK]], ids=["city", "films"])
def test_a_visitor_of_the_demo_has_company(chromium, tmp_path, world):
    command = [sys.executable, "-m", "federank", "demo", "--serve", *world, "--port", "0"]
    with running(command, tmp_path) as demo, browsing(chromium) as browser:
        demo.wait_until(lambda status: status["version"] >= 1)
        visitor = Visitor(browser, demo.address, ignore_https_errors=True).open().pick(4)
        assert len(visitor.recommended()) == 5
        expect(visitor.go("leaves").page.locator(".who")).to_have_attribute("data-readers", "together")
        visitor.take_part().wait_for_rounds(1)
        visitor.close()
        if demo.address.startswith("https"):
            _joining_is_shown(browser, demo.address, demo.printed)


def _until_it_serves(lines):
    for line in lines:
        yield line
        if LAST_LINE in line:
            return


def _joining_is_shown(browser, address, said):
    """In the terminal and on the operator's page: the address as a code, and the fingerprint of the certificate."""
    port = int(address.rsplit(":", 1)[1])
    served = ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate((OTHER_LOOPBACK, port)))
    fingerprint = hashlib.sha256(served).hexdigest().upper()
    assert fingerprint in said.replace(":", "")
    assert COLOURS.sub("", code_lines(address)) in said, "without colours, as it is no terminal that reads it"
    [(admin, token)] = re.findall(r"operator's page is (\S+), its token (\S+)", said)
    operator = Visitor(browser, admin, ignore_https_errors=True)
    operator.page.goto(admin)
    operator.page.get_by_label("Operator's token").fill(token)
    operator.page.get_by_role("button", name="Sign in").click()
    expect(operator.page.locator("#joining")).to_contain_text(address)
    expect(operator.page.get_by_role("img", name=f"A code for {address}")).to_be_visible()
    assert fingerprint in operator.page.locator("#joining").inner_text().replace(":", "")
    operator.close()


def test_code_in_the_terminal():
    """Two rows a line, dark on light; the quiet edge is part of it."""
    rows = code_rows("https://192.0.2.7:8470")
    assert len(rows) == len(rows[0]) == 25 + 8, "version 2 and four of quiet on each side"
    assert all(row == "0" * len(row) for row in rows[:4])
    lines = [
        line.removeprefix("\x1b[30;107m").removesuffix("\x1b[0m")
        for line in code_lines("https://192.0.2.7:8470").split("\n")
    ]
    above = {" ": "0", "▀": "1", "▄": "0", "█": "1"}
    below = {" ": "0", "▀": "0", "▄": "1", "█": "1"}
    drawn = [row for line in lines for row in ("".join(map(kind.get, line)) for kind in (above, below))]
    assert drawn[: len(rows)] == rows
    assert any(one != other for one, other in pairwise(rows))
