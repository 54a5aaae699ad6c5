"""`federank demo --serve`: a city, or films, with virtual neighbours, visited with a real browser."""

import re
import signal
import subprocess
import sys
import time

import httpx
import pytest
from tests.service.page.browsing import Visitor, browsing

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("world", "noun"), [([], "places"), (["--films"], "films")], ids=["city", "films"])
def test_a_visitor_of_the_demo_has_company(chromium, world, noun):
    command = [sys.executable, "-m", "federank", "demo", "--serve", *world, "--port", "0"]
    demo = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        address = next(found[0] for line in demo.stdout if (found := re.findall(r"Open (http\S+)", line)))
        with browsing(chromium) as browser:
            visitor = Visitor(browser, address).open().pick(4)
            assert visitor.page.locator("#recommended li").count() == 10
            assert visitor.page.locator("#yours-title").inner_text() == f"Your 4 {noun}"
            assert "made-up people, before you came" in visitor.page.locator("#about").inner_text()
            visitor.take_part().wait_for_rounds(2)
            visitor.close()
        assert _devices_in_the_end(address) > 20
    finally:
        demo.send_signal(signal.SIGINT)
        code = demo.wait(30)
        demo.stdout.close()
    assert code == 0


def _devices_in_the_end(address):
    """Neighbours come when their engine is compiled."""
    devices = 0
    for _ in range(300):
        devices = httpx.get(f"{address}/api/v1/status").json()["devices"]
        if devices > 20:
            break
        time.sleep(0.2)
    return devices
