"""Execute docs/first-steps.ipynb and keep its answers: `make notebook`."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parents[1] / "first-steps.ipynb"


def execute(path: Path) -> nbformat.NotebookNode:
    """The notebook with the answers of today, executed in a folder that is gone afterwards."""
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(
            notebook, timeout=1200, kernel_name="python3", resources={"metadata": {"path": folder}}
        ).execute()
    for cell in notebook.cells:
        cell.metadata.clear()
    notebook.metadata.pop("language_info", None)
    return notebook


if __name__ == "__main__":
    os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    nbformat.write(execute(NOTEBOOK), NOTEBOOK)
