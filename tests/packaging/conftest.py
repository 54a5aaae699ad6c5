"""The wheel that `pip wheel .` makes, built once for all the tests that install it."""

import os
import subprocess
from pathlib import Path

import pytest
from tests.packaging.environments import PIP, ROOT

from federank.studies.results.locking import alone

NO_INDEX = ("No matching distribution found for hatchling", "Failed to establish a new connection")


@pytest.fixture(scope="session")
def wheel(tmp_path_factory, worker_id) -> Path:
    """The product as people install it."""
    own = tmp_path_factory.getbasetemp()
    # Processes that run tests in parallel share the folder around their own.
    folder = (own if worker_id == "master" else own.parent) / "wheel"
    folder.mkdir(exist_ok=True)
    with alone(folder / "lock"):
        if not list(folder.glob("*.whl")):
            made = subprocess.run(
                [*PIP, "wheel", "--no-deps", "--wheel-dir", folder, ROOT], capture_output=True, text=True, check=False
            )
            if any(sign in made.stderr for sign in NO_INDEX):
                message = "packages are needed for this test, and no index of them can be reached"
                if "packages" in os.environ.get("FEDERANK_TESTS_MUST_NOT_SKIP", "").split():
                    pytest.fail(message)
                pytest.skip(message)
            assert made.returncode == 0, made.stderr
    [found] = folder.glob("*.whl")
    return found
