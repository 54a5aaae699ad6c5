"""For the tests of the service: stores, SQLite in a file and PostgreSQL on a server that the tests start."""

import tempfile
from pathlib import Path

import pytest
from tests.service.client.worlds import scripted_federation
from tests.service.helper.helpers import ThreadedHelper
from tests.service.postgres import PostgreSQL

from federank.service.client import store as device_store
from federank.service.server import secure_rounds as rounds_of_sums
from federank.service.server import selection, service
from federank.service.server import worker_cache as latest
from federank.service.server.store import database

SYNCHRONOUS = {module: module.SYNCHRONOUS for module in (database, device_store)}
PAUSES = (
    (latest, "RARELY_SECONDS"),
    (service, "REFUSALS_SECONDS"),
    (rounds_of_sums, "FIRST_PAUSE"),
    (rounds_of_sums, "LONGEST_PAUSE"),
    (rounds_of_sums, "PASS_PAUSE"),
    (selection, "GATHER_SECONDS"),
)
"""How long a server leaves things as they are before it looks again."""


@pytest.fixture(scope="session", autouse=True)
def unsynchronised():
    """Stores that are opened in the tests' own process need not outlive a power cut: no one waits for the disk."""
    with pytest.MonkeyPatch.context() as patch:
        for module in SYNCHRONOUS:
            patch.setattr(module, "SYNCHRONOUS", "OFF")
        yield


@pytest.fixture(scope="session", autouse=True)
def eager():
    """Servers in the tests' own process look again soon: their tests wait for little else."""
    with pytest.MonkeyPatch.context() as patch:
        for module, name in PAUSES:
            patch.setattr(module, name, 0.05)
        yield


@pytest.fixture
def synchronised(monkeypatch):
    """Stores that wait for the disk, as everywhere but in tests."""
    for module, synchronous in SYNCHRONOUS.items():
        monkeypatch.setattr(module, "SYNCHRONOUS", synchronous)


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
def memory():
    """A folder of memory for the keys of a helper's rounds, which the helper makes."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield Path(folder) / "keys"


@pytest.fixture
def helper(tmp_path):
    """A helper on a port of this machine."""
    with ThreadedHelper(tmp_path) as running:
        yield running


@pytest.fixture
def federation():
    """A scripted federation of FPL."""
    with scripted_federation() as federation:
        yield federation


@pytest.fixture
def sqlite_store(tmp_path):
    """The address of an empty SQLite store."""
    return f"sqlite:///{tmp_path / 'federation.sqlite'}"
