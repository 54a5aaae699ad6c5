"""Pages of the site that are not files of docs/: they are copied from elsewhere in the repository, or generated.

index.md, changelog.md, contributing.md, benchmarks.md      README.md and its like, links adapted to the site
reference.md        every name of the public API, by its package, from the docstrings
first-steps.md      the executed notebook, code and output
"""

from __future__ import annotations

import ast
import json
import re
from itertools import groupby
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[2]
BORROWED = {
    "index.md": "README.md",
    "changelog.md": "CHANGELOG.md",
    "contributing.md": "CONTRIBUTING.md",
    "benchmarks.md": "benchmarks/README.md",
}
PACKAGES = {
    "data": "Data",
    "methods": "Methods",
    "evaluation": "Evaluation",
    "simulation": "Training runs",
    "federation": "Writing a method",
    "privacy": "Privacy",
    "audit": "Audits",
    "studies": "Studies",
    "errors": "Errors",
}
"""The rooms of the front door, in the order of a first day."""


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are made here."""
    pages = {name: (ROOT / source).read_text(encoding="utf-8") for name, source in BORROWED.items()}
    pages |= {"reference.md": reference(), "first-steps.md": notebook(ROOT / "docs" / "first-steps.ipynb")}
    for name, text in pages.items():
        files.append(File.generated(config, name, content=bent(text)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Bend the links of pages that are also read in the repository."""
    return bent(markdown)


def bent(text: str) -> str:
    """Links as they are in the repository, as they are on the site; what the site does not have is named instead."""
    text = re.sub(r"\]\((?:\.\./)?docs/", "](", text)
    text = re.sub(r"\]\(\.\./(CHANGELOG|CONTRIBUTING)\.md", lambda found: f"]({found[1].lower()}.md", text)
    text = re.sub(r"\]\((?:\.\./)?benchmarks/README\.md", "](benchmarks.md", text)
    text = text.replace("](CONTRIBUTING.md", "](contributing.md").replace("](CHANGELOG.md", "](changelog.md")
    text = text.replace("](results)", "](results/README.md)")
    return re.sub(r"\[([^\]]+)\]\((?:\.\./)?(?:benchmarks/)?[\w-]+\.json\)", r"`\1`", text)


def reference() -> str:
    """A page with every name of the public API."""
    stub = ast.parse((ROOT / "src" / "federank" / "__init__.pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    homes = {alias.name: f"federank.{node.module}" for node in imports for alias in node.names}
    order = list(PACKAGES)

    def package(name: str) -> str:
        return homes[name].split(".")[1]

    lines = ["# Reference", "", "Every name that `import federank as fr` has, from the docstrings.", ""]
    for place, names in groupby(
        sorted(homes, key=lambda name: (order.index(package(name)), name.lower())), key=package
    ):
        lines += [f"## {PACKAGES[place]}", ""]
        for name in names:
            lines += [f"::: {homes[name]}.{name}", ""]
    return "\n".join(lines)


def notebook(path: Path) -> str:
    """An executed notebook as a page: text as it is, code, and what it answered."""
    lines: list[str] = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            lines += [source, ""]
            continue
        lines += ["```python", source, "```", ""]
        for output in cell["outputs"]:
            text = output.get("text") or output.get("data", {}).get("text/plain", "")
            lines += ["```text", "".join(text).rstrip(), "```", ""]
    return "\n".join(lines)
