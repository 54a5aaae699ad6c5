"""Pictures of the page for the documentation: `PYTHONPATH=. python tests/service/web/pictures.py [FOLDER]`.

The demo as shipped, with films: a way on a phone from the first poster to the report, in light and dark, in three
languages; the same at a desk; the operator's page in trouble. Federations of the tests show who can read a message
elsewhere.
"""

import json
import re
import shutil
import sys
import tempfile
from pathlib import Path

from PIL import Image
from tests.service.helper.helpers import HelperProcess
from tests.service.web.browsing import Visitor, browsing, serving
from tests.service.web.test_neighbourhood import running

DESK = {"viewport": {"width": 1180, "height": 860}}
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
LIKED = ("Blade Runner", "Alien", "Spirited Away", "Notting Hill", "Taxi Driver")
COLOURS = 256
"""Of a picture: posters are flat, and a picture of few colours is small."""
TALL = {"viewport": {"width": 390, "height": 1600}}
OUTCOMES = ("aggregated", "discarded")


def pick(visitor):
    """Pick films by their names."""
    for title in LIKED:
        visitor.page.locator("#search-text").fill(title)
        visitor.page.wait_for_timeout(500)
        visitor.tap(visitor.page.locator("#grid .tile").first)
    return visitor


def picture(visitor, folder, name, *, full=False, **more):
    """One picture, in few colours; its path."""
    page = visitor.page
    page.mouse.move(0, 0)
    page.evaluate("() => { document.activeElement?.blur(); scrollTo(0, 0); }")
    page.wait_for_timeout(700)
    path = Path(folder) / f"page-{name}.png"
    size = page.viewport_size
    if full:  # a taller screen: on a page that is scrolled the tabs stand in its middle
        page.set_viewport_size(size | {"height": page.evaluate("() => document.documentElement.scrollHeight")})
    page.screenshot(path=path, **more)
    page.set_viewport_size(size)
    Image.open(path).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
    return path


def phone(browser, address, folder):
    visitor = Visitor(browser, address, **PHONE).open()
    page = visitor.page
    yield picture(visitor, folder, "1-pick")
    pick(visitor).recommended()
    yield picture(visitor, folder, "2-for-you")
    page.locator("#shelves .rail .tile").first.click()
    yield picture(visitor, folder, "item")
    page.locator("#item .close").click()
    page.locator("[data-answer=love]").first.click()
    yield picture(visitor, folder, "answered")
    visitor.share("few")
    yield picture(visitor, folder, "3-sheet", full=True)
    visitor.take_part()
    yield picture(visitor, folder, "hold")
    visitor.wait_until(lambda kept: any(played["outcome"] in OUTCOMES for played in kept["rounds"]))
    page.locator("#guess").wait_for()
    yield picture(visitor, folder, "4-report")
    page.locator("#curious summary").click()
    page.locator("#raw pre").wait_for()
    yield picture(visitor, folder, "curious", full=True)
    yield picture(visitor.pause(), folder, "paused")
    yield picture(visitor.go("mine"), folder, "mine")
    visitor.close()


def languages(browser, address, folder):
    for language, scheme in (("it", "light"), ("de", "dark")):
        visitor = Visitor(browser, address, locale=language, color_scheme=scheme, **PHONE).open()
        yield picture(visitor, folder, f"{language}-pick")
        for place in (0, 4, 8):
            visitor.tap(visitor.page.locator("#grid .tile").nth(place))
        visitor.recommended()
        yield picture(visitor, folder, f"{language}-for-you")
        visitor.share("few")
        yield picture(visitor, folder, f"{language}-sheet", full=True)
        visitor.close()


def desk(browser, address, folder):
    visitor = Visitor(browser, address, **DESK).open()
    yield picture(visitor, folder, "desk-pick")
    pick(visitor).recommended()
    yield picture(visitor, folder, "desk-for-you")
    visitor.go("leaves").page.locator("#how summary").click()
    yield picture(visitor, folder, "how", full=True)
    visitor.close()


def operator(browser, printed, folder):
    [(address, token)] = re.findall(r"operator's page is (\S+), its token (\S+)", printed)
    visitor = Visitor(browser, address, **DESK)
    page = visitor.page
    page.goto(address)
    page.locator("#token").fill(token)
    page.locator("#sign-in button").click()
    page.locator("#charts svg").first.wait_for()
    reason = {"code": "no-round-aggregated", "state": "failing", "count": 5, "of": 5}

    def ailing(route):
        answer = route.fetch()
        route.fulfill(
            response=answer, body=json.dumps(answer.json() | {"health": {"state": "failing", "reasons": [reason]}})
        )

    visitor.context.route("**/overview", ailing)
    page.locator('#standing[data-health="failing"]').wait_for()
    yield picture(visitor, folder, "operator-attention", clip={"x": 0, "y": 0, "width": 1180, "height": 300})
    visitor.close()


def readers(browser, folder):
    """Who can read a message: with a helper of another organisation, with and without noise, or without a helper."""
    with tempfile.TemporaryDirectory() as store, tempfile.TemporaryDirectory(dir="/dev/shm") as keys:
        (Path(store) / "helper").mkdir()
        helper = HelperProcess(Path(store) / "helper", keys).start()
        common = {"films": 60, "method": "frugal", "noun": {"one": "film", "many": "films"}, "name": "Film club"}
        common |= {"settings": {"messages": 5, "factors": 8}, "rounds": {"target": 8, "minimum": 8}}
        sums = {"helper": helper.address, "least_cohort": 8}
        settings = {"apart": sums | {"sigma": 0.0}, "noise": sums | {"sigma": 40.0}, "reads": None}
        for name, terms in settings.items():
            options = common | ({"sums": terms} if terms else {})
            (Path(store) / name).mkdir()
            with serving(Path(store) / name, **options) as server:
                # A name that no helper has: as where two organisations run the two servers.
                address = server.public.replace("127.0.0.1", "films.localhost")
                visitor = Visitor(browser, address, **PHONE | TALL).open().pick(5).go("leaves")
                visitor.page.locator(".who").wait_for()
                path = Path(folder) / f"page-who-{name}.png"
                visitor.page.locator(".who").screenshot(path=path)
                visitor.close()
                yield path
        helper.stop()


def take_pictures(folder):
    command = [sys.executable, "-m", "federank", "demo", "--serve", "--films", "--port", "0"]
    with browsing(shutil.which("chromium")) as browser:
        yield from readers(browser, folder)
        with tempfile.TemporaryDirectory() as store, running(command, Path(store)) as demo:
            demo.wait_until(lambda status: status["version"] >= 3)
            for make in (desk, phone, languages):
                yield from make(browser, demo.address, folder)
            yield from operator(browser, demo.printed, folder)


if __name__ == "__main__":
    default = Path(__file__).parents[3] / "docs" / "figures"
    for made in take_pictures(sys.argv[1] if len(sys.argv) > 1 else default):
        print(made, made.stat().st_size)  # noqa: T201
