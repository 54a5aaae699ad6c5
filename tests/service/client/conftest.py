"""What the tests of a client share."""

import pytest
from tests.service.client.homes import ALL_OF_IT, Home


@pytest.fixture
def state(tmp_path):
    """Where a client keeps itself."""
    return tmp_path / "device.sqlite"


@pytest.fixture
def home(federation, tmp_path):
    """A client of the scripted federation that shares all of its history."""
    return Home(federation, tmp_path, policy=ALL_OF_IT)
