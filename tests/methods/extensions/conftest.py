"""What a test registers is gone after it."""

import pytest

from federank import extensions


@pytest.fixture
def nothing_stays():
    before = {kind: dict(brought) for kind, brought in extensions._registered.items()}
    yield
    for kind, brought in before.items():
        extensions._registered[kind] = brought
