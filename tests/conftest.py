"""What the tests share: the folder of real data, where there is one, and how examples are generated."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

# No time limits, and the same examples every time: a test's outcome depends on the code alone.
settings.register_profile("federank", deadline=None, derandomize=True)
settings.load_profile("federank")


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real data sets; the test is skipped where there is none."""
    folder = Path(os.environ.get("FEDERANK_DATA") or Path(__file__).parents[2] / "shared" / "data").resolve()
    if not (folder / "ml-1m").exists():
        pytest.skip(f"real data sets are needed, and {folder} does not hold them: set FEDERANK_DATA")
    return folder


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What reads real data sets takes seconds: it is left to `make test`."""
    for item in items:
        if "real_data" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)
