"""What the tests share: the folder of real data, where there is one."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real data sets; the test is skipped where there is none."""
    folder = Path(os.environ.get("FEDERANK_DATA") or Path(__file__).parents[2] / "shared" / "data").resolve()
    if not (folder / "ml-1m").exists():
        pytest.skip(f"real data sets are needed, and {folder} does not hold them: set FEDERANK_DATA")
    return folder
