"""Browsers, and a real server for them: what the page's tests and the screenshots share.

`serving` runs server.py until the block ends; `Visitor` is one person's browser, with a storage of its own, that
notes every request and every complaint of the browser.
"""

import atexit
import functools
import json
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import httpx
from playwright.sync_api import expect, sync_playwright
from tests.pasted import free_ports
from tests.worlds import decode_update

PATIENCE = 300_000  # ms; only a bound: nothing waits longer than it has to


ARRIVED = ("received", "aggregated", "discarded", "left out", "unknown")
"""What the page writes down of a message that the server has, before its round has ended and after."""


ROOT = Path(__file__).parents[3]
PAGE = ROOT / "src" / "federank" / "service" / "web"


@functools.cache
def quick_page(wait=300):
    """The page with another wait before something leaves for the first time, in ms; the journey has the real one."""
    folder = Path(tempfile.mkdtemp(prefix="federank-page-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    shutil.copytree(PAGE, folder, dirs_exist_ok=True)
    script = folder / "client" / "client.js"
    before = "export const WAIT = 30_000;"
    text = script.read_text()
    assert before in text
    script.write_text(text.replace(before, f"export const WAIT = {wait};"))
    return str(folder)


class Server:
    """A server process on a folder, which can be stopped and started again on the same port."""

    def __init__(self, folder, **options):
        self.folder, self.options = Path(folder), {"page": quick_page(), "port": free_ports(1)[0]} | options
        self.process = None

    def start(self):
        command = [sys.executable, "-m", "tests.service.web.server", str(self.folder), json.dumps(self.options)]
        self.process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        told = json.loads(self.process.stdout.readline())
        self.public, self.admin = told["public"], told["admin"]
        self.token = told["token"] or self.token
        return self

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        self.process.wait()
        self.process.stdout.close()

    def get(self, path):
        answer = httpx.get(f"{self.public}/api/v1/{path}")
        answer.raise_for_status()
        return answer

    def rows(self, query, *values):
        """What the store itself holds."""
        connection = sqlite3.connect(self.folder / "federation.db")
        try:
            return connection.execute(query, values).fetchall()
        finally:
            connection.close()

    def updates(self):
        """Every Update that the server has kept, in order."""
        told = self.get("federation").json()
        bodies = self.rows("SELECT body FROM uploads ORDER BY round, ticket")
        return [decode_update(bytes(body), told["recipe"]["factors"], told["items"]) for (body,) in bodies]


@contextmanager
def serving(folder, **options):
    """A server while the block runs."""
    server = Server(folder, **options).start()
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def browsing(chromium):
    """One browser while the block runs."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(chromium), args=["--no-sandbox", "--disable-gpu"])
        try:
            yield browser
        finally:
            browser.close()


class Visitor:
    """One person's browser: a storage of their own, and a page in it."""

    def __init__(self, browser, address, **options):
        # Service workers are for the tests of the page without a network: no other test's requests pass one.
        usual = {"viewport": {"width": 1280, "height": 900}, "service_workers": "block"}
        self.context = browser.new_context(**(usual | options))
        self.context.set_default_timeout(PATIENCE)
        self.address = address
        self.requests, self.complaints = [], []
        self.page = self.tab()

    def tab(self):
        page = self.context.new_page()
        page.on("request", lambda request: self.requests.append(request))
        page.on("console", lambda message: message.type == "error" and self.complaints.append(message.text))
        page.on("pageerror", lambda fault: self.complaints.append(str(fault)))
        return page

    def open(self, page=None, path="/"):
        """Go to the page and wait until it can be used."""
        page = page or self.page
        page.goto(self.address + path)
        page.wait_for_selector("html[data-ready]", timeout=PATIENCE)
        return self

    def go(self, screen):
        """Show a screen of the page: wall, for-you, mine, leaves."""
        self.page.evaluate("(screen) => (location.hash = screen)", screen)
        self.page.locator(f'body[data-screen="{screen}"]').wait_for()
        return self

    def pick(self, count):
        """Tap the first posters that are not picked yet."""
        self.go("wall")
        for _ in range(count):
            self.tap(self.page.locator("#grid .tile[aria-pressed=false]").first)
        return self

    def tap(self, tile):
        """Tap a poster of the wall, until it is kept."""
        key = tile.get_attribute("data-key")
        tile.click()
        self.page.wait_for_function("(key) => document.querySelector('#stack').dataset.for.startsWith(key)", arg=key)

    def share(self, level):
        """Choose how much goes out: none, few, half, all."""
        self.go("leaves")
        change = self.page.locator('#leaves [data-key="change"]')
        if change.is_visible():
            change.click()
        self.page.locator(f'[data-level="{level}"]').click()
        self.page.locator(f'[data-level="{level}"][aria-pressed=true]').wait_for()
        return self

    def take_part(self):
        """Agree on the sheet, or go on after a pause."""
        self.go("leaves")
        self.page.locator('#leaves [data-key="go"], #leaves [data-key="pause"].yes').first.click()
        self.page.locator('#leaves [data-key="pause"]:not(.yes)').wait_for()
        return self

    def pause(self):
        self.go("leaves")
        self.page.locator('#leaves [data-key="pause"]:not(.yes)').click()
        self.page.locator('#leaves [data-key="go"], #leaves [data-key="pause"].yes').first.wait_for()
        return self

    def leave(self):
        self.go("leaves").page.locator("#leave").click()
        self.page.locator('#sure [value="yes"]').click()
        expect(self.page.locator("#trouble")).to_be_visible()
        return self

    def recommended(self):
        """The ids of the best recommendations, in order."""
        self.go("for-you").page.locator("#shelves .card[data-item]").first.wait_for()
        return self.page.locator("#shelves .card[data-item]").evaluate_all("all => all.map((one) => one.dataset.item)")

    def wait_for_rounds(self, count):
        """Until this many messages have been received by the server."""
        return self.wait_until(lambda kept: self.received(kept) >= count)

    def wait_until(self, holds):
        """Until something is true of what is stored."""
        for _ in range(PATIENCE // 100):
            if holds(self.stored()):
                return self
            self.page.wait_for_timeout(100)
        raise AssertionError(f"It never came to that; the page says: {self.page.locator('main').inner_text()}")

    @staticmethod
    def received(kept):
        return sum(played["outcome"] in ARRIVED for played in kept["rounds"])

    def stored(self, page=None):
        """Everything the page keeps in this browser."""
        return (page or self.page).evaluate(f"({STORED})()")

    def close(self):
        self.context.close()


STORED = """async () => {
  const database = await new Promise((resolve, reject) => {
    const request = indexedDB.open("federank");
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
  const settled = (request) => new Promise((resolve) => (request.onsuccess = () => resolve(request.result)));
  const kept = {};
  for (const store of database.objectStoreNames) {
    const objects = database.transaction(store).objectStore(store);
    const [keys, values] = await Promise.all([settled(objects.getAllKeys()), settled(objects.getAll())]);
    kept[store] = store === "records" ? Object.fromEntries(keys.map((key, place) => [key, values[place]])) : values;
  }
  database.close();
  const plain = (key, value) => (ArrayBuffer.isView(value) ? Array.from(value) : value);
  return JSON.parse(JSON.stringify(kept, plain));
}"""
