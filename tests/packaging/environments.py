"""New environments, and what is installed into them."""

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NO_INDEX = ("No matching distribution found for hatchling", "Failed to establish a new connection")
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]


def new_environment(folder: Path) -> Path:
    """An environment with nothing in it, not even pip; its Python."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    return folder / "bin" / "python"


def install(python: Path, *what: str) -> None:
    """Install packages into an environment from outside it."""
    command = [*PIP, "--python", python, "install", "--no-compile", "-c", ROOT / "constraints.txt", *what]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def skip_without_index(complaints: str) -> None:
    """Skip the test where pip complains that there is no package index, or fail if this machine must have one."""
    if any(sign in complaints for sign in NO_INDEX):
        message = "packages are needed for this test, and no index of them can be reached"
        if "packages" in os.environ.get("FEDERANK_TESTS_MUST_NOT_SKIP", "").split():
            pytest.fail(message)
        pytest.skip(message)


def surroundings(**more: str) -> dict[str, str]:
    """The variables of a user who has installed the product: nothing points to its sources."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "MYPYPATH")}
    return kept | more


class Clone:
    """The sources without anything that was made from them, and the variables of a user."""

    def __init__(self, folder):
        self.folder = folder
        listing = ["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        for name in subprocess.run(listing, capture_output=True, text=True, check=True).stdout.split("\0"):
            if name and (ROOT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, folder / name)
        self.environment = surroundings(PIP_CONSTRAINT="constraints.txt")  # a path with a space would be two
        self.environment.pop("FEDERANK_DATA", None)

    def program(self, name):
        return self.folder / ".venv" / "bin" / name

    def run(self, *words, code=0, **options):
        done = subprocess.run(
            words, cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False, **options
        )
        skip_without_index(done.stderr)
        assert done.returncode == code, done.stdout[-3000:] + done.stderr[-3000:]
        return done

    def serving(self, *words):
        """A server until its block ends, and its address."""
        return Serving(self, words)


class Serving:
    """A program that serves, in a terminal of its own: it is ended with Ctrl-C."""

    def __init__(self, clone, words):
        self.process = subprocess.Popen(
            words,
            cwd=clone.folder,
            env=clone.environment,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def __enter__(self):
        for line in self.process.stdout:
            if address := re.search(r"http://127\.0\.0\.1:\d+", line):
                return address[0]
        raise AssertionError(f"the server has ended with {self.process.wait()}")

    def __exit__(self, *_):
        os.killpg(self.process.pid, signal.SIGINT)
        self.process.communicate()
