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
        return Path(name).stem, read_document(Path(name))
    known = packaged()
    if name not in known:
        raise SettingError(no_such("study", name, known, otherwise="; or give a file's path"))
    return name, known[name]
