"""`federank demo --serve`: a city, or films, with virtual neighbours, visited with a real browser.

The films are visited as a phone on the network would: over https, with a certificate made at start.
"""

import hashlib
import re
import signal
import ssl
import subprocess
import sys
import time
from itertools import pairwise

import httpx
import pytest
from playwright.sync_api import expect
from tests.service.page.browsing import Visitor, browsing

from federank.service.joining import code_lines, code_rows

COLOURS = re.compile(r"\x1b\[[0-9;]*m")
SPEAKING = "End it with Ctrl-C"
OTHER_LOOPBACK = "127.0.0.2"  # of this machine too, but not its usual name: as an address of a network is


@pytest.mark.slow
@pytest.mark.parametrize(
    ("world", "noun"), [([], "places"), (["--films", "--host", OTHER_LOOPBACK], "films")], ids=["city", "films"]
)
def test_a_visitor_of_the_demo_has_company(chromium, world, noun):
    command = [sys.executable, "-m", "federank", "demo", "--serve", *world, "--port", "0"]
    demo = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        said = "".join(_until_it_serves(demo.stdout))
        [address] = re.findall(r"Open (http\S+)", said)
        with browsing(chromium) as browser:
            visitor = Visitor(browser, address, ignore_https_errors=True).open().pick(4)
            page = visitor.page
            assert page.locator("#recommended li").count() == 10
            assert page.locator("#yours-title").inner_text() == f"Your 4 {noun}"
            assert "made-up people, before you came" in page.locator("#about").inner_text()
            assert "Run by whoever started this demonstration." in page.locator("#about").inner_text()
            expect(page.locator("#promise p").first).to_contain_text("could put the two halves together")
            expect(page.locator("#promise p").first).to_contain_text("adds no noise")
            visitor.take_part().wait_for_rounds(2)
            visitor.close()
            if address.startswith("https"):
                _joining_is_shown(browser, address, said)
        assert _devices_in_the_end(address) > 20
    finally:
        demo.send_signal(signal.SIGINT)
        code = demo.wait(30)
        demo.stdout.close()
    assert code == 0


def _until_it_serves(lines):
    for line in lines:
        yield line
        if SPEAKING in line:
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


def _devices_in_the_end(address):
    """Neighbours come when their engine is compiled."""
    devices = 0
    for _ in range(300):
        devices = httpx.get(f"{address}/api/v1/status", verify=False).json()["devices"]
        if devices > 20:
            break
        time.sleep(0.2)
    return devices


def test_a_code_in_the_terminal_is_the_code_that_is_drawn():
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
