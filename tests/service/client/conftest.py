"""What the tests of a device share."""

import pytest


@pytest.fixture
def state(tmp_path):
    """Where a device keeps itself."""
    return tmp_path / "device.sqlite"
