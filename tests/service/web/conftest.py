"""For the tests of the page: its protocol under node, a browser, and servers that serve it."""

import json
from pathlib import Path

import pytest
from tests.service.helper.helpers import helper_process
from tests.service.web.browsing import Visitor, browsing, serving
from tests.service.web.conversing import conversing

PAGE = Path(__file__).parents[3] / "src" / "federank" / "service" / "web"
LANGUAGES = sorted(file.stem for file in (PAGE / "words").glob("*.json"))


@pytest.fixture(scope="session")
def ask(node):
    """Questions to the page's methods and policies under node."""
    with conversing(node, "answers.mjs", PAGE) as ask:
        yield lambda *questions: ask(questions)


@pytest.fixture(scope="session")
def words():
    """Every language's words, by their keys."""
    return {language: json.loads((PAGE / "words" / f"{language}.json").read_text()) for language in LANGUAGES}


@pytest.fixture(scope="module")
def browser(chromium):
    """A Chromium that a module's visitors share."""
    with browsing(chromium) as started:
        yield started


@pytest.fixture(scope="session")
def ask_secagg(node):
    """Questions to the page's secure aggregation under node."""
    with conversing(node, "secagg.mjs", PAGE) as ask:
        yield lambda *questions: ask(questions)


@pytest.fixture(scope="module")
def helper(tmp_path_factory):
    """A helper process for a module's federations."""
    with helper_process(tmp_path_factory.mktemp("helper")) as started:
        yield started


@pytest.fixture
def server(tmp_path):
    """A server that serves the page, for one test."""
    with serving(tmp_path) as started:
        yield started


@pytest.fixture(scope="module")
def town(tmp_path_factory):
    """A server for those who leave no trace on it."""
    with serving(tmp_path_factory.mktemp("town")) as started:
        yield started


@pytest.fixture
def visit(browser):
    """People who visit, whatever their browsers complain about."""
    visitors = []

    def visit(server):
        visitors.append(Visitor(browser, server.public))
        return visitors[-1]

    yield visit
    for visitor in visitors:
        visitor.close()
