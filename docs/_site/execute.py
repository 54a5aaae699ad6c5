"""Execute docs/first-steps.ipynb and keep its answers: `make notebook`.

Cells run one after the other in this interpreter, and what they print becomes their answer. No Jupyter is needed: its
kernels may belong to another Python, which does not have this package.
"""

from __future__ import annotations

import io
import json
import tempfile
from contextlib import chdir, redirect_stdout
from pathlib import Path
from typing import Any

NOTEBOOK = Path(__file__).parents[1] / "first-steps.ipynb"


def execute(notebook: dict[str, Any]) -> None:
    """Give every cell of code the answer of today; files are written to a folder that is gone afterwards."""
    names: dict[str, Any] = {"__name__": "__main__"}
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
        for number, cell in enumerate(code, start=1):
            with redirect_stdout(io.StringIO()) as out:
                exec(compile("".join(cell["source"]), f"cell {number}", "exec"), names)
            printed = out.getvalue().splitlines(keepends=True)
            if not printed:
                raise SystemExit(f"Cell {number} prints nothing; an answer is needed for the page.")
            cell["execution_count"] = number
            cell["outputs"] = [{"name": "stdout", "output_type": "stream", "text": printed}]


if __name__ == "__main__":
    content = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    execute(content)
    NOTEBOOK.write_text(json.dumps(content, ensure_ascii=False, indent=1, sort_keys=True) + "\n", encoding="utf-8")
