"""Wherever a page or a docstring names a source file, that file is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HOUSE = ROOT / "src" / "federank"
SOURCES = [
    path.relative_to(ROOT)
    for folder in ("src", "tests", "benchmarks")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in (".py", ".js", ".mjs")
]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    ROOT / "benchmarks/README.md",
]
NAMED = re.compile(r"(?<![\w./-])(?:[\w-]+/)*[\w-]+\.(?:py|mjs|js)(?![\w(])")


def is_there(name: str, mentioned_in: Path) -> bool:
    """With folders, a name is the end of some file's path; alone, it is in the same folder, or in one around it."""
    if "/" in name or mentioned_in.suffix == ".md":
        wanted = Path(name).parts
        return any(path.parts[-len(wanted) :] == wanted for path in SOURCES)
    around = [folder for folder in mentioned_in.parents if folder.is_relative_to(HOUSE)]
    return any((folder / name).exists() for folder in around)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_source_files_that_a_page_names_are_there(page):
    text = page.read_text(encoding="utf-8").replace("\\_", "_")  # as a reader sees it
    assert not [name for name in NAMED.findall(text) if not is_there(name, page)]


def test_source_files_that_sources_name_are_there():
    gone = {
        (str(path), name)
        for path in SOURCES
        if path.is_relative_to("src")
        for name in NAMED.findall((ROOT / path).read_text(encoding="utf-8"))
        if not is_there(name, ROOT / path)
    }
    assert not gone


def test_a_name_is_found_by_its_folders_or_in_its_own():
    assert is_there("federation/rng.py", ROOT / "README.md")
    assert is_there("draws.py", HOUSE / "protocol" / "round.py")
    assert is_there("errors.py", HOUSE / "protocol" / "round.py")
    assert not is_there("draws.py", HOUSE / "data" / "splits.py")
    assert not is_there("protocol/drawn.py", ROOT / "README.md")
