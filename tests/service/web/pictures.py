"""Pictures of the page for the documentation: `python tests/service/web/pictures.py [FOLDER]`.

A small city federation with a few Python neighbours, a visitor who picks, takes part for some rounds and looks at what
has left; on a desk in light, on a phone in dark, and the operator's page. Who can read a message of sums. And a
person's whole way on a phone, with films.
"""

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.service.helper.helpers import HelperProcess
from tests.service.web.browsing import Visitor, browsing, serving

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


def take_picture_of_a_promise(chromium, folder):
    """Two people of a federation of sums, and what the page tells them of it; the picture's path."""
    rounds = {"target": 2, "minimum": 2, "over_selection": 3.0, "deadline": 60.0}
    with (
        tempfile.TemporaryDirectory(dir="/dev/shm") as keys,
        tempfile.TemporaryDirectory() as store,
        browsing(chromium) as browser,
    ):
        helper = HelperProcess(store, keys).start()
        sums = {"helper": helper.address, "sigma": 4.0, "least_cohort": 2}
        settings = {"messages": 10, "clip": 4.0}
        try:
            with serving(store, method="frugal", settings=settings, rounds=rounds, sums=sums) as server:
                visitors = [Visitor(browser, server.public, **DESK).open().pick(5).take_part() for _ in range(2)]
                page = visitors[0].wait_for_rounds(3).page
                page.get_by_role("button", name="Pause").click()
                page.get_by_text("What does this mean?").click()
                path = Path(folder) / "page-promise.png"
                page.locator("#sharing").screenshot(path=path)
                for visitor in visitors:
                    visitor.close()
                return path
        finally:
            helper.stop()


LIKED = ("The Matrix", "Blade Runner", "Alien", "The Terminator", "Back to the Future")


def take_pictures_of_the_journey(chromium, folder):
    """A phone, from the first pick to a friend, with films that people know; and the same in other languages."""
    noun = {"one": "film", "many": "films"}
    told = {"name": "Films and their friends", "description": "Real films; who likes them is made up.", "noun": noun}
    settings, light = {"factors": 16, "messages": 3}, {"viewport": PHONE["viewport"]}
    with (
        tempfile.TemporaryDirectory() as store,
        browsing(chromium) as browser,
        serving(store, method="frugal", films=1500, learnt=True, joining=True, settings=settings, **told) as server,
    ):
        visitor = Visitor(browser, server.public, **light).open()
        yield _picture(visitor.page, folder, "page-journey-1-pick")
        _like(visitor, LIKED)
        yield _part(visitor, folder, "recommendations", "page-journey-2-for-you")
        visitor.share(40)
        visitor.page.locator("#may-leave summary").click()
        yield _part(visitor, folder, "sharing", "page-journey-3-what-would-leave")
        visitor.take_part().wait_for_rounds(3)
        yield _part(visitor, folder, "left", "page-journey-4-what-has-left")
        visitor.page.locator("#friend summary").click()
        yield _part(visitor, folder, "federation", "page-journey-5-friend")
        visitor.close()
        for language in ("it", "de"):
            visitor = Visitor(browser, server.public, locale=language, **PHONE).open()
            _like(visitor, LIKED)
            yield _part(visitor, folder, "recommendations", f"page-{language}")
            visitor.close()


def _like(visitor, titles):
    for title in titles:
        visitor.page.locator("#search-text").fill(title)
        found = visitor.page.locator("#found button", has_text=title).first
        found.click()
        found.and_(visitor.page.locator("[aria-pressed=true]")).wait_for()
    visitor.page.locator("#search-text").fill("")


def _part(visitor, folder, section, name):
    visitor.page.wait_for_timeout(500)
    visitor.page.evaluate("(id) => document.getElementById(id).scrollIntoView()", section)
    return _picture(visitor.page, folder, name)


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
    operator.page.evaluate("() => document.querySelector('#charts').closest('section').scrollIntoView()")
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
    found, given = shutil.which("chromium"), sys.argv[1] if len(sys.argv) > 1 else default
    makers = (take_pictures_of_the_journey, take_pictures)
    for picture in [take_picture_of_a_promise(found, given), *(one for make in makers for one in make(found, given))]:
        print(picture, picture.stat().st_size)  # noqa: T201
