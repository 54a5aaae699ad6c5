"""What the tests of a client share."""

import pytest


@pytest.fixture
def state(tmp_path):
    """Where a client keeps itself."""
    return tmp_path / "device.sqlite"
