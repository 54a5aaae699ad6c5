"""axe-core finds nothing serious on the page, on how it works and on the operator's page.

Narrow and wide, light and dark, with everything that can be unfolded open.
"""

import pytest
from tests.service.web.browsing import PATIENCE, Visitor

pytestmark = pytest.mark.slow

FORMS = [(width, scheme) for width in (320, 1280) for scheme in ("light", "dark")]
OPEN = "() => document.querySelectorAll('details').forEach((box) => (box.open = true))"
RUN = """async () => {
  const { violations } = await axe.run(document, { resultTypes: ["violations"] });
  return violations.map(({ id, impact, nodes }) => [impact, id, nodes.map(({ html }) => html).slice(0, 3)]);
}"""


@pytest.fixture(params=FORMS, ids=lambda form: f"{form[0]} px, {form[1]}")
def visitor(request, browser, town):
    """Someone who has picked, answered and taken part."""
    width, scheme = request.param
    visitor = Visitor(browser, town.public, viewport={"width": width, "height": 800}, color_scheme=scheme)
    yield visitor
    visitor.close()


@pytest.fixture(scope="module")
def faults(axe):
    """What axe-core finds on a page as it is now, serious or worse."""
    program = axe.read_text()

    def faults(page):
        page.evaluate(OPEN)
        page.evaluate(program)
        found = page.evaluate(RUN)
        return [fault for fault in found if fault[0] in ("serious", "critical")]

    return faults


def test_nothing_serious_is_found_on_any_page(visitor, town, faults):
    page = visitor.open().page
    assert faults(page) == [], "on the first visit"
    visitor.pick(5).recommended()
    page.locator("#shelves .card [data-answer=love]").first.click()
    page.locator("#shelves .undo").wait_for()
    assert faults(page) == [], "on the shelves"
    visitor.go("leaves")
    assert faults(page) == [], "on the sheet"
    visitor.take_part().wait_for_rounds(1)
    assert faults(page) == [], "on the report"
    page.locator("#leave").click()
    assert faults(page) == [], "asked whether to leave"
    page.locator('#sure [value="no"]').click()
    visitor.go("mine").page.locator("#own .tile").first.click()
    assert faults(page) == [], "on one item"
    page.goto(f"{town.public}/how.html")
    page.wait_for_selector("html[data-ready]")
    assert faults(page) == [], "on how this works"
    page.goto(f"{town.admin}/admin")
    assert faults(page) == [], "before signing in"
    page.get_by_label("Operator's token").fill(town.token)
    page.get_by_role("button", name="Sign in").click()
    page.locator("#charts svg").first.wait_for(timeout=PATIENCE)
    assert faults(page) == [], "on the operator's page"
