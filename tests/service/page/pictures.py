"""Pictures of the page for the documentation: `python tests/service/page/pictures.py [FOLDER]`.

A small city federation with a few Python neighbours, a visitor who picks, takes part for some rounds and looks at what
has left; on a desk in light, on a phone in dark, and the operator's page.
"""

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.service.page.browsing import Visitor, browsing, serving

NEIGHBOURS = 12
DESK = {"viewport": {"width": 1180, "height": 1020}}
PHONE = {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"}


def take_pictures(chromium, folder):
    """Draw every picture into a folder; their paths."""
    told = {"name": "A city and its neighbours", "noun": {"one": "place", "many": "places"}}
    rounds = {"target": 6, "over_selection": 1.5, "deadline": 10.0}
    program = Path(__file__).with_name("neighbours.py")
    with (
        tempfile.TemporaryDirectory() as store,
        browsing(chromium) as browser,
        serving(store, rounds=rounds, learnt=True, **told) as server,
    ):
        neighbours = subprocess.Popen([sys.executable, str(program), server.public, str(NEIGHBOURS), "10000", "8"])
        try:
            while server.get("status").json()["devices"] < NEIGHBOURS:
                time.sleep(0.5)
            return [*_visitors(browser, server, folder), _operator(browser, server, folder)]
        finally:
            neighbours.kill()
            neighbours.wait()


def _visitors(browser, server, folder):
    visitor = Visitor(browser, server.public, **DESK).open()
    first = _picture(visitor.page, folder, "page-first-visit")
    names = visitor.page.locator("#search-category option").evaluate_all("all => all.map((one) => one.value)")
    for name in ("Food", "Outdoors & Recreation", "Arts & Entertainment"):
        assert name in names
        visitor.page.get_by_label("Category").select_option(name)
        visitor.page.wait_for_timeout(500)
        visitor.pick(3)
    visitor.page.get_by_label("Category").select_option("")
    visitor.page.wait_for_timeout(500)
    visitor.pick(1).take_part().wait_for_rounds(8)
    visitor.page.evaluate("() => window.scrollTo(0, 0)")
    taking_part = _picture(visitor.page, folder, "page-taking-part")
    visitor.page.evaluate("() => document.querySelector('#left').scrollIntoView()")
    left = _picture(visitor.page, folder, "page-what-has-left", height=760)
    visitor.close()
    phone = Visitor(browser, server.public, **PHONE).open().pick(6)
    phone.page.evaluate("() => document.querySelector('#recommendations').scrollIntoView()")
    dark = _picture(phone.page, folder, "page-phone")
    phone.close()
    return first, taking_part, left, dark


def _operator(browser, server, folder):
    operator = Visitor(browser, server.admin, **DESK)
    operator.page.goto(f"{server.admin}/admin")
    operator.page.get_by_label("Operator's token").fill(server.token)
    operator.page.get_by_role("button", name="Sign in").click()
    operator.page.locator("#charts svg").first.wait_for()
    picture = _picture(operator.page, folder, "page-operator")
    operator.close()
    return picture


def _picture(page, folder, name, height=None):
    page.mouse.move(0, 0)
    page.wait_for_timeout(500)
    path = Path(folder) / f"{name}.png"
    size = page.viewport_size
    page.screenshot(path=path, clip={"x": 0, "y": 0, "width": size["width"], "height": height or size["height"]})
    return path


if __name__ == "__main__":
    default = Path(__file__).parents[3] / "docs" / "figures"
    for picture in take_pictures(shutil.which("chromium"), sys.argv[1] if len(sys.argv) > 1 else default):
        print(picture, picture.stat().st_size)  # noqa: T201
