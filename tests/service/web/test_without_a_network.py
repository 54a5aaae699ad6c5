"""The page without a network: it opens, shows what is the person's, and takes a new version of itself as a whole."""

import json
import shutil

import pytest
from playwright.sync_api import expect
from tests.service.web.browsing import PATIENCE, Server, Visitor
from tests.service.web.conftest import PAGE

from federank.service.server.http.app import read_assets

pytestmark = pytest.mark.slow

KEPT = """async () => {
  const kept = {};
  for (const name of await caches.keys())
    kept[name] = (await (await caches.open(name)).keys()).map(({ url }) => new URL(url).pathname);
  return kept;
}"""


@pytest.fixture
def town(tmp_path):
    """A server that a test may stop and start again."""
    server = Server(tmp_path).start()
    yield server
    if server.process.poll() is None:
        server.stop()


@pytest.fixture
def visitor(browser, town):
    """Someone whose browser has service workers."""
    visitor = Visitor(browser, town.public, service_workers="allow")
    yield visitor
    visitor.close()


def wait_until_kept(visitor, page=None):
    """Until one whole version of the page is kept, and its worker answers for it."""
    page = page or visitor.page
    page.wait_for_function("() => navigator.serviceWorker.controller !== null", timeout=PATIENCE)
    for _ in range(PATIENCE // 100):
        kept = page.evaluate(KEPT)
        if len(kept) == 1 and not next(iter(kept)).startswith("draft"):
            return kept
        page.wait_for_timeout(100)
    raise AssertionError(f"The page was never kept: {kept}")


def test_reload_without_a_network(town, visitor, words):
    page = visitor.open().pick(4).page
    [files] = wait_until_kept(visitor).values()
    scripts = {"/app.js", "/client/worker.js", "/client/secure.js"}
    assert scripts | {"/", "/style.css", "/icon.svg", "/words/de.json"} <= set(files)
    assert not [file for file in files if "api" in file or "admin" in file], "no answer, and nothing of the operator's"
    recommended = visitor.recommended()
    town.stop()
    page.reload()
    page.wait_for_selector("html[data-ready]", timeout=PATIENCE)
    assert visitor.recommended() == recommended
    expect(page.locator("#trouble")).to_have_text(words["en"]["notice.away"])
    visitor.pick(1)
    assert len(visitor.stored()["history"]) == 5
    town.start()
    expect(page.locator("#trouble")).to_be_hidden(timeout=PATIENCE)
    assert len(visitor.stored()["history"]) == 5


def test_new_version_of_the_page_replaces_the_old_one(town, visitor, tmp_path):
    page = visitor.open().pick(3).page
    before = wait_until_kept(visitor)
    town.stop()
    changed = tmp_path / "page"
    shutil.copytree(PAGE, changed)
    english = changed / "words" / "en.json"
    english.write_text(english.read_text().replace("How this works", "How all this works"))
    town.options["page"] = str(changed)
    town.start()
    visitor.open()
    expect(page.locator("footer")).to_contain_text("How all this works", timeout=PATIENCE)
    for _ in range(PATIENCE // 100):
        if (after := wait_until_kept(visitor)) != before:
            break
        page.wait_for_timeout(100)
    assert set(after) != set(before)
    town.stop()
    visitor.open()
    expect(page.locator("footer")).to_contain_text("How all this works", timeout=PATIENCE)
    assert len(visitor.stored()["history"]) == 3


def test_leaving_leaves_nothing_behind(visitor):
    page = visitor.open().pick(3).page
    wait_until_kept(visitor)
    visitor.leave()
    assert page.evaluate(KEPT) == {}
    assert page.evaluate("async () => (await navigator.serviceWorker.getRegistrations()).length") == 0
    assert all(not records for records in visitor.stored().values())


def test_icons_of_the_manifest():
    assets = read_assets(PAGE)
    told = json.loads(assets["manifest.webmanifest"].content)
    assert assets["manifest.webmanifest"].media_type == "application/manifest+json"
    for icon in told["icons"]:
        asset = assets[icon["src"]]
        assert asset.media_type == icon["type"]
        if icon["type"] == "image/png":
            wide, high = (int.from_bytes(asset.content[place : place + 4]) for place in (16, 20))
            assert f"{wide}x{high}" == icon["sizes"]
