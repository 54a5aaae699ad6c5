"""A clone in which someone types what the README says: the targets of make install what they need, and work.

`make demo` comes first, so the environment has core dependencies only until `make visit`.
"""

import urllib.request

import pytest
from tests.cli.test_extras import CORE, EXTRA_OF, answers_of
from tests.packaging.environments import Clone

SERVE = ("serve", "--plain", "--data", "city", "--port", "0", "--admin-port", "0")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """A clone after `make demo`."""
    made = Clone(tmp_path_factory.mktemp("a folder") / "with spaces" / "federank")
    made.run("make", "demo")
    return made


@pytest.fixture(scope="module")
def answers(clone, tmp_path_factory):
    """What commands come to with core dependencies only."""
    return answers_of(clone.program("python"), tmp_path_factory.mktemp("core"), env=clone.environment)


def test_demo_writes_a_report(clone):
    assert (clone.folder / "federank-demo" / "report.html").stat().st_size > 10_000


@pytest.mark.parametrize("name", [*EXTRA_OF, *CORE])
def test_core_dependencies_are_enough_or_the_extra_is_named(answers, name):
    kind, extra, output = answers[name]
    assert (kind, extra) == (("MissingExtra", EXTRA_OF[name]) if name in EXTRA_OF else (None, None)), output


def test_the_words_of_a_missing_extra_install_it(clone, answers):
    assert answers["serve"][1] == "service"
    complaint = clone.run(clone.program("federank"), "serve", code=2).stderr
    clone.run("sh", "-c", complaint.partition("Install it with: ")[2])
    with clone.serving(clone.program("federank"), *SERVE) as address:
        assert urllib.request.urlopen(f"{address}/health").status == 200


@pytest.mark.usefixtures("answers")
def test_visit_serves_the_page(clone):
    with clone.serving("make", "visit", "PORT=0") as address:
        assert urllib.request.urlopen(address).status == 200


@pytest.mark.usefixtures("answers")
@pytest.mark.parametrize(
    ("words", "made"),
    [
        (("docs",), ["build/site/index.html", "build/site/reference.html"]),
        (("release",), ["dist/*.whl", "dist/*.tar.gz"]),
        (("bench", "REPEATS=1"), []),
    ],
    ids=["docs", "release", "bench"],
)
def test_a_target_makes_what_it_should(clone, words, made):
    printed = clone.run("make", *words).stdout
    assert all(list(clone.folder.glob(name)) for name in made)
    assert words[0] != "bench" or '"sfpl_vs_implicit"' in printed
