"""For the tests of the service: stores, SQLite in a file and PostgreSQL on a server that the tests start."""

import pytest
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
