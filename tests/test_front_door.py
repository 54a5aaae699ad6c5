"""The names that `import federank` offers."""

import ast
from importlib import import_module
from pathlib import Path

import pytest

import federank as fr


def shown_to_type_checkers():
    tree = ast.parse(Path(fr.__file__).read_text(encoding="utf-8"))
    [block] = [node for node in tree.body if isinstance(node, ast.If)]
    return {alias.asname: line.module for line in block.body for alias in line.names}


def test_type_checkers_and_programs_see_the_same_names_from_the_same_homes():
    assert shown_to_type_checkers() == fr._HOMES


@pytest.mark.parametrize("name", fr.__all__)
def test_every_name_is_there_and_documented(name):
    assert getattr(fr, name) is getattr(import_module(fr._HOMES[name]), name)
    assert getattr(fr, name).__doc__


def test_a_name_that_is_not_there_is_refused_with_those_that_are():
    with pytest.raises(AttributeError, match="'FLP'"):
        fr.FLP  # noqa: B018
