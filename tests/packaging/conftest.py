"""The wheel that `pip wheel .` makes, built once for all the tests that install it."""

import subprocess
from pathlib import Path

import pytest
from tests.packaging.environments import PIP, ROOT, skip_without_index

from federank.studies.results import lock


@pytest.fixture(scope="session")
def wheel(tmp_path_factory, worker_id) -> Path:
    """The product as people install it."""
    own = tmp_path_factory.getbasetemp()
    # Processes that run tests in parallel share the folder around their own.
    folder = (own if worker_id == "master" else own.parent) / "wheel"
    folder.mkdir(exist_ok=True)
    with lock(folder / "lock"):
        if not list(folder.glob("*.whl")):
            made = subprocess.run(
                [*PIP, "wheel", "--no-deps", "--wheel-dir", folder, ROOT], capture_output=True, text=True, check=False
            )
            skip_without_index(made.stderr)
            assert made.returncode == 0, made.stderr
    [found] = folder.glob("*.whl")
    return found
