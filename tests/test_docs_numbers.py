"""Measured figures in the documentation are those of a report or benchmark that their page links to."""

import re

import pytest

from tests.pasted import ROOT

PAGES = sorted((ROOT / "docs").glob("*.md"))  # the README has tests of its own
FIGURE = re.compile(r"(?<![\w./:-])\d*\.(\d{2,})(?![\w.])")
NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?|(?<![\w.])\.\d+")
SOURCE = re.compile(r"\]\(((?:[\w./-]*/)?[\w-]+\.md)")
ELSEWHERE = {
    "audits.md": {
        "benchmarks/jumps.py": ".146 .151 .158 .161 .162 .166 .171 .173 .175 .183 .184 .187 .245 .446 .457 .458",
        "federank audit fpl, tests/methods/fpl/test_audit_figures.py": ".9999 0.449 0.503 0.506 0.587 0.611 0.633 "
        "0.654 0.662 0.667 0.685 0.711 0.726 0.75 0.777 0.785 0.792 0.822 0.836 0.849 0.862 0.8624 0.873 0.885 0.8850 "
        "0.908 0.909 0.933 0.948 0.963 0.966 0.986 0.995 0.998 0.9980 0.9987",
        "benchmarks/partial_rounds.py": ".93 .95 .97 .98",
        "federank audit pmf, tests/methods/fedrec": "0.333 0.699 0.902 0.95 1.35",
    },
    "fedrec.md": {
        "benchmarks/rating_promises.py": ".914 1.035 1.036 1.753",
        "federank train pmf, one run": ".940",
    },
    "frugal.md": {
        "federank audit frugal, the commands above its table": ".74 .75 .77 .83 .94",
        "federank train frugal --item-weights ridge, three seeds; Gowalla one": ".0207 .0414 .1117 .1275 .1285 .1548 "
        ".1727 .1783",
        "the same with earlier constants": ".0209 .1494 .1549",
        "federank audit poison --sees checked --item-weights ridge": ".097 .302 .306 .331 .333 .335 .339 .343 "
        ".355 .370",
        "federank train frugal --epsilon 1, newest round alone": ".1136",
    },
    "norm-proof.md": {"arithmetic in the page": ".43 .56 1.98 2.61 2.84"},
    "operating.md": {
        "federank audit poison": ".124 .132 .134 .161 .330 .352 .55",
    },
    "page.md": {"benchmarks/page.py": "0.80 1.10"},
    "privacy.md": {"Phi(mu / sqrt 2), tests/privacy": ".57 .72 .86"},
    "scale.md": {"arithmetic in the page": "0.88"},
    "seasons.md": {"tests/service/simulated_clients/test_three_seasons.py, one run": ".044 .053 .058 .060 .068"},
    "sharing.md": {
        "benchmarks/choices.py": ".01 .0996 .1102 .1130 .1148 .1171 .1173 .1179 .1242 .1326 .1401 .1476 .1484 .1496 "
        ".1503"
    },
    "sums.md": {
        "benchmarks/sums.py": "0.15 0.69 1.00",
        "federank audit sybil": ".03 .17 .18 .22 .26 .40",
    },
}
"""Figures of a page that no report has: where each comes from."""


def prose(text):
    """The text without programs, code and the targets of links."""
    text = re.sub(r"^```.*?^```$|`[^`]*`", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"\]\([^)]*\)|doi:\S+|arXiv:\S+", "]", text)


def sources(page):
    """The reports and benchmarks that a page links to."""
    linked = {(page.parent / target).resolve() for target in SOURCE.findall(page.read_text())}
    return {path for path in linked if path.parent.name in ("results", "benchmarks") and path.exists()}


def figures(page):
    """The figures of a page, each with its number of decimals."""
    return sorted({(found[0], len(found[1])) for found in FIGURE.finditer(prose(page.read_text()))})


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_figures_are_in_a_report_that_the_page_links_to(page):
    known = [float(n.replace(",", "")) for path in sources(page) for n in NUMBER.findall(path.read_text())]
    elsewhere = " ".join(ELSEWHERE.get(page.name, {}).values()).split()
    missing = [
        text
        for text, decimals in figures(page)
        if text not in elsewhere and not any(abs(float(text) - value) <= 0.5 * 10**-decimals + 1e-9 for value in known)
    ]
    assert not missing


@pytest.mark.parametrize("name", ELSEWHERE)
def test_figures_from_elsewhere_are_still_on_their_page(name):
    listed = " ".join(ELSEWHERE[name].values()).split()
    assert set(listed) <= {text for text, _ in figures(ROOT / "docs" / name)}
