"""The README is short, its example prints what it says, and its numbers are those of reports."""

import contextlib
import io
import re
import tomllib

import pytest

from tests.pasted import ROOT, blocks

README = ROOT / "README.md"
NAMES = ("MovieLens 1M", "ml-1m", "Apache License 2.0")
"""Digits that are part of a name."""


def prose(text):
    """The text without programs, generated tables and the targets of links."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"<!-- (\w+) -->.*?<!-- end of \1 -->", "", text, flags=re.DOTALL)
    return re.sub(r"\]\([^)]*\)", "]", text)


def test_readme_is_short():
    text = re.sub(r"^```.*?^```$", "", README.read_text(), flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"\]\([^)]*\)|<!--.*?-->", " ", text)
    assert len(re.findall(r"[A-Za-z][\w'+-]*", text)) <= 500
    for sentence in re.split(r"[.:;]\s|\n\n|\n- |\|", prose(README.read_text())):
        assert len(sentence.split()) <= 20, sentence


def test_numbers_outside_generated_tables_are_looked_up():
    text = prose(README.read_text())
    for name in NAMES:
        text = text.replace(name, "")
    python = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"].lstrip(">=")
    assert set(re.findall(r"\d[\d.,]*\d|\d", text)) == {python}


@pytest.mark.slow
def test_example_prints_what_it_says():
    [program] = [block.text for block in blocks(README) if block.kind == "python"]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(program, "README.md", "exec"), {})
    assert printed.getvalue().splitlines() == re.findall(r"^# (.*)$", program, re.MULTILINE)
