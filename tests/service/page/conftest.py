"""For the tests of the page: a browser, and servers that serve it."""

import pytest
from tests.service.page.browsing import Visitor, browsing, serving


@pytest.fixture(scope="module")
def browser(chromium):
    """A Chromium that a module's visitors share."""
    with browsing(chromium) as started:
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
