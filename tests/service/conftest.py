"""For the tests of the service: stores (SQLite in a file, PostgreSQL on a server that the tests start); for those of
the page, a browser and servers that serve it."""

import pytest
from tests.service.page_browsing import Visitor, browsing, serving
from tests.service.postgres import PostgreSQL


@pytest.fixture(scope="session")
def postgresql_server(postgresql):
    """A running PostgreSQL server, for the whole session."""
    server = PostgreSQL(postgresql)
    server.start()
    yield server
    server.remove()


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def store(request, tmp_path):
    """The address of an empty store, of either kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'federation.sqlite'}"
    return request.getfixturevalue("postgresql_server").database()


@pytest.fixture
def sqlite_store(tmp_path):
    """The address of an empty SQLite store."""
    return f"sqlite:///{tmp_path / 'federation.sqlite'}"


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
