"""The studies that come with the product, one TOML file each in packaged/, and any other by its path."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from federank.checks import no_such
from federank.errors import SettingError
from federank.studies.plan.study_file import read_document


def packaged() -> dict[str, dict[str, Any]]:
    """Every packaged study's content, by its name."""
    found = {}
    for entry in sorted((files("federank.studies") / "packaged").iterdir(), key=lambda entry: entry.name):
        if entry.name.endswith(".toml"):
            with as_file(entry) as path:
                found[entry.name.removesuffix(".toml")] = read_document(path)
    return found


def find_study(name: str) -> tuple[str, dict[str, Any]]:
    """A study's name and content, from a packaged study's name or a file's path."""
    if name.endswith(".toml") or "/" in name or Path(name).is_file():
        return Path(name).stem, beside(read_document(Path(name)), Path(name).parent)
    known = packaged()
    if name not in known:
        raise SettingError(no_such("study", name, known, otherwise="; or give a file's path"))
    return name, known[name]


def beside(document: dict[str, Any], folder: Path) -> dict[str, Any]:
    """A study whose files are named as its own file sees them: a path in a TOML is relative to the TOML.

    What is not there is left as it is: a known data set's name, or a path from where the command is given.
    """
    if folder.resolve() == Path.cwd():
        return document

    moved = []

    def found(value: Any) -> Any:
        if not isinstance(value, str) or not value or Path(value).is_absolute() or not (folder / value).exists():
            return value
        moved.append(value)
        return str(folder / value)

    def placed(table: Any) -> Any:
        if not isinstance(table, dict):
            return table
        return {key: found(value) if key in _FILES else placed(value) for key, value in table.items()}

    content = {
        key: [placed(part) for part in value] if isinstance(value, list) else placed(value)
        for key, value in document.items()
    }
    if isinstance(content.get("data"), list):
        content["data"] = [_with_source(entry, found) for entry in content["data"]]
    return content if moved else document


def _with_source(entry: Any, found: Any) -> Any:
    """A data set that is named by its path keeps its name, and has its path as its source."""
    table = {"name": entry} if isinstance(entry, str) else entry
    if not isinstance(table, dict) or "source" in table or found(table.get("name")) == table.get("name"):
        return table
    return table | {"source": found(table["name"])}


_FILES = ("source", "item_file", "policies", "trace", "pi")
"""The keys whose text may be a file."""
