"""What the page knows of Python's declarations is generated and current, and no other file of a client has its own."""

import re
from dataclasses import fields
from pathlib import Path

import pytest
from tests.service.web.conftest import PAGE
from tests.service.web.schemas import CONSTANTS, FILE, generated

from federank.methods.registry import federated_method
from federank.service.client import rules


def test_the_file_is_what_python_declares():
    assert FILE.read_text() == generated(), "python -m tests.service.web.schemas --write"


def test_no_other_file_of_a_client_sets_what_is_declared():
    service = Path(rules.__file__).parents[1]
    python = [file for name in ("client", "simulated_clients") for file in (service / name).rglob("*.py")]
    scripts = {name for group in CONSTANTS.values() for name in group}
    for files, names in ((python, set(CONSTANTS["RULES"])), (list(PAGE.rglob("*.js")), scripts)):
        assert len(files) > 10
        for file in files:
            if file not in (FILE, Path(rules.__file__)):
                set_here = re.findall(r"^(?:export )?(?:const )?([A-Z_]+) = ", file.read_text(), re.MULTILINE)
                assert not set(set_here) & names, file


@pytest.mark.parametrize(
    ("change", "refused"),
    [
        ({}, None),
        ({"factors": 1024}, None),
        ({"factors": 1025}, "factors"),
        ({"factors": 2.5}, "factors"),
        ({"learning_rate": 0}, "learning_rate"),
        ({"learning_rate": "0.1"}, "learning_rate"),
        ({"order": "as-heard"}, "order"),
        ({"most_triples": None}, None),
        ({"most_triples": 0}, "most_triples"),
        ({"beta1": 1}, "beta1"),
        ({"triples": None}, "triples"),
    ],
)
def test_settings_out_of_their_bounds_are_refused(ask, change, refused):
    kind = federated_method("fpl")
    declared = kind(n_items=5, triples=3)
    names = [part.name for part in fields(kind) if part.name not in kind.owner_choices]
    published = {name: getattr(declared, name) for name in names}
    [answer] = ask({"kind": "settings", "method": "fpl", "recipe": published | change})
    assert answer == (f"recipe ({refused})" if refused else None)
