"""Pages of the site that are not files of docs/: they are copied from elsewhere in the repository, or generated.

index.md, changelog.md, contributing.md, benchmarks.md      README.md and its like, links adapted to the site
reference.md        every name of the public API, by its package, from the docstrings
commands.md         `--help` of every command
rest.md             every route of the server, as its OpenAPI document has it
metrics.md          every metric: name, column of reports, meaning
wire.md             the messages of every served method, as their records declare them
first-steps.md      the executed notebook, code and output
"""

from __future__ import annotations

import ast
import json
import re
from itertools import groupby
from pathlib import Path
from typing import Any

import click
from mkdocs.structure.files import File

from federank.cli import federank
from federank.cli.options import MethodGroup
from federank.federation.wire import arrays
from federank.methods.registry import SERVED, federated_method
from federank.service.server.http.routes import ADMIN_ROUTES, PUBLIC_ROUTES, openapi_document
from federank.studies.metric_words import KNOWN

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
"""The parts of the public API, in the order of a first day."""


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are made here."""
    pages = {name: (ROOT / source).read_text(encoding="utf-8") for name, source in BORROWED.items()}
    pages |= {
        "reference.md": reference(),
        "commands.md": commands(),
        "rest.md": rest(),
        "metrics.md": metrics(),
        "wire.md": wire_formats(),
        "first-steps.md": notebook(ROOT / "docs" / "first-steps.ipynb"),
    }
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
    return re.sub(r"\[([^\]]+)\]\((?:\.\./)?(?:benchmarks/)?[\w-]+\.(?:json|cff)\)", r"`\1`", text)


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


def commands() -> str:
    """A page with the help of every command; of commands with a form per method, that of the first method too."""
    lines = [
        "# Command line",
        "",
        "`--help` of every command. `federank train METHOD --help` lists one method's settings.",
        "",
    ]

    def add(command: click.Command, parent: click.Context | None, name: str) -> None:
        context = click.Context(command, info_name=name, parent=parent, terminal_width=100, max_content_width=100)
        context.help_option_names = ["-h", "--help"]
        lines.extend([f"## {context.command_path}", "", "```text", command.get_help(context).rstrip(), "```", ""])
        if isinstance(command, click.Group):
            methods = isinstance(command, MethodGroup)
            names = command.list_commands(context)
            own = [*names[:1], *command.others] if methods else names
            for each in own:
                child = command.get_command(context, each)
                if child is not None and not child.hidden:
                    add(child, context, each)

    add(federank, None, "federank")
    return "\n".join(lines)


def rest() -> str:
    """A page with every route of the server."""
    lines = [
        "# REST API",
        "",
        "A server describes itself at `/api/v1/openapi.json`. Messages are safetensors, everything else is JSON.",
        "",
    ]
    for title, routes in (("For clients and anyone", PUBLIC_ROUTES), ("For the operator", ADMIN_ROUTES)):
        lines += [f"## {title}", "", "| request | token | meaning | answers |", "|---|---|---|---|"]
        for path, operations in openapi_document(routes, "FedeRank")["paths"].items():
            for way, operation in operations.items():
                token = ", ".join(name for security in operation.get("security", []) for name in security)
                query = [part["name"] for part in operation.get("parameters", []) if part["in"] == "query"]
                asked = f"{way.upper()} {path}{'?' + '&'.join(query) if query else ''}"
                answers = ", ".join(sorted(operation["responses"]))
                lines.append(f"| `{asked}` | {token} | {operation['summary']} | {answers} |")
        lines.append("")
    return "\n".join(lines)


def metrics() -> str:
    """A page with every metric."""
    lines = [
        "# Metrics",
        "",
        "`{n}` is the length of the lists, as in `precision@10`. Formulas: [evaluation](evaluation.md).",
        "",
        "| name | column | meaning | better |",
        "|---|---|---|---|",
    ]
    lines += [f"| `{name}` | {words.short} | {words.axis} | {words.better or ''} |" for name, words in KNOWN.items()]
    return "\n".join([*lines, ""])


def wire_formats() -> str:
    """A page with the messages of every served method."""
    lines = [
        "# Wire formats",
        "",
        "A message is a safetensors file with the arrays below. An array with a length of 0 is left out. A *broadcast* is "
        "what clients download, an *update* what one client uploads. Clients that have an earlier version download "
        "changed rows of arrays with the axis `items`. Under [secure aggregation](sums.md) the update is one vector of "
        "integers instead.",
        "",
        "`f4` is a 32-bit float, `i1` an 8-bit integer, `index` a 32-bit item number, ascending.",
        "",
    ]
    for name in SERVED:
        method = federated_method(name)
        if method is None:
            continue
        lines += [f"## {name}", "", "| message | array | axes | type | from | to |", "|---|---|---|---|---|---|"]
        for message, record in (("broadcast", method.records.sent), ("update", method.records.update)):
            for part in arrays(record):
                about = part.metadata
                axes = " x ".join(str(axis) for axis in about["axes"])
                bounds = ["" if about[end] is None else f"{about[end]:g}" for end in ("minimum", "maximum")]
                lines.append(f"| {message} | `{part.name}` | {axes} | {about['dtype']} | {bounds[0]} | {bounds[1]} |")
        lines.append("")
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
