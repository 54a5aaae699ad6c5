"""Pictures of the page for the documentation: `PYTHONPATH=. python tests/service/web/pictures.py [FOLDER]`.

The demo as shipped, with films: a way on a phone from the first poster to the report, in light and dark, in three
languages; the same at a desk; and the operator's page.
"""

import re
import shutil
import sys
import tempfile
from pathlib import Path

from PIL import Image
from tests.service.web.browsing import Visitor, browsing
from tests.service.web.test_neighbourhood import running

DESK = {"viewport": {"width": 1180, "height": 860}}
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True}
LIKED = ("Blade Runner", "Alien", "Spirited Away", "Notting Hill", "Taxi Driver")
COLOURS = 200
"""Of a picture: posters are flat, and a picture of few colours is small."""


def pick(visitor):
    """Pick films by their names."""
    for title in LIKED:
        visitor.page.locator("#search-text").fill(title)
        visitor.page.wait_for_timeout(500)
        visitor.tap(visitor.page.locator("#grid .tile").first)
    return visitor


def picture(visitor, folder, name, *, full=False):
    """One picture, in few colours; its path."""
    visitor.page.mouse.move(0, 0)
    visitor.page.wait_for_timeout(700)
    path = Path(folder) / f"{name}.png"
    visitor.page.screenshot(path=path, full_page=full)
    Image.open(path).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
    return path


def phone(browser, address, folder):
    visitor = Visitor(browser, address, **PHONE).open()
    yield picture(visitor, folder, "page-journey-1-pick")
    pick(visitor).recommended()
    yield picture(visitor, folder, "page-journey-2-for-you")
    visitor.page.locator("#shelves .rail .tile").first.click()
    yield picture(visitor, folder, "page-item")
    visitor.page.locator("#item .close").click()
    visitor.page.locator("[data-answer=love]").first.click()
    yield picture(visitor, folder, "page-answered")
    visitor.share("few")
    yield picture(visitor, folder, "page-journey-3-what-would-leave", full=True)
    visitor.take_part()
    yield picture(visitor, folder, "page-hold")
    visitor.wait_until(lambda kept: any(played["outcome"] == "aggregated" for played in kept["rounds"]))
    visitor.page.locator("#guess").wait_for()
    visitor.page.evaluate("() => scrollTo(0, 0)")
    yield picture(visitor, folder, "page-journey-4-what-has-left")
    visitor.page.locator("#curious summary").click()
    visitor.page.locator("#raw pre").wait_for()
    yield picture(visitor, folder, "page-what-has-left", full=True)
    visitor.go("mine")
    yield picture(visitor, folder, "page-mine")
    visitor.close()


def languages(browser, address, folder):
    for language, scheme in (("it", "light"), ("de", "dark")):
        visitor = Visitor(browser, address, locale=language, color_scheme=scheme, **PHONE).open()
        if language == "de":
            yield picture(visitor, folder, "page-phone")
        for place in (0, 4, 8):
            visitor.tap(visitor.page.locator("#grid .tile").nth(place))
        visitor.recommended()
        yield picture(visitor, folder, f"page-{language}")
        visitor.close()


def desk(browser, address, folder):
    visitor = Visitor(browser, address, **DESK).open()
    yield picture(visitor, folder, "page-first-visit")
    pick(visitor).recommended()
    yield picture(visitor, folder, "page-taking-part")
    visitor.go("leaves").page.locator("#how summary").click()
    yield picture(visitor, folder, "page-promise", full=True)
    visitor.close()


def operator(browser, printed, folder):
    [(address, token)] = re.findall(r"operator's page is (\S+), its token (\S+)", printed)
    visitor = Visitor(browser, address, **DESK)
    visitor.page.goto(address)
    visitor.page.locator("#token").fill(token)
    visitor.page.locator("#sign-in button").click()
    visitor.page.locator("#charts svg").first.wait_for()
    yield picture(visitor, folder, "page-operator")
    visitor.close()


def take_pictures(folder):
    command = [sys.executable, "-m", "federank", "demo", "--serve", "--films", "--port", "0"]
    with (
        tempfile.TemporaryDirectory() as store,
        running(command, Path(store)) as demo,
        browsing(shutil.which("chromium")) as browser,
    ):
        demo.wait_until(lambda status: status["version"] >= 3)
        for make in (desk, phone, languages):
            yield from make(browser, demo.address, folder)
        yield from operator(browser, demo.printed, folder)


if __name__ == "__main__":
    default = Path(__file__).parents[3] / "docs" / "figures"
    for made in take_pictures(sys.argv[1] if len(sys.argv) > 1 else default):
        print(made, made.stat().st_size)  # noqa: T201
