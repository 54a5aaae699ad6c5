"""New environments, and what is installed into them."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
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


def surroundings(**more: str) -> dict[str, str]:
    """The variables of a user who has installed the product: nothing points to its sources."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "MYPYPATH")}
    return kept | more
