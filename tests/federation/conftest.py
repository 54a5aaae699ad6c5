"""Methods on the interface: every registered one, and the examples of the documentation."""

from dataclasses import is_dataclass
from pathlib import Path

import pytest

from federank import extensions
from federank.methods.registry import METHODS, federated_method

DOCS = Path(__file__).parents[2] / "docs" / "extending.md"
REGISTERED = [name for name in METHODS if federated_method(name)]
EXAMPLES = ("Gradients", "Voting")


def example_source(name):
    """The class of an example, with what stands above it, as the page has it."""
    blocks = [block.split("```")[0] for block in DOCS.read_text().split("```python\n")[1:]]
    [block] = [block for block in blocks if f"class {name}(" in block]
    return block.split("\n\n\nsplit = ")[0].split("\n\n\nmodel = ")[0] + "\n"


def example(name):
    """A method of the documentation; it is not registered afterwards."""
    before = dict(extensions._registered["methods"])
    content = {"__name__": "docs"}
    exec(compile(example_source(name), str(DOCS), "exec"), content)
    extensions._registered["methods"] = before
    assert is_dataclass(content[name])
    return content[name]


@pytest.fixture(scope="session", params=[*REGISTERED, *EXAMPLES])
def kind(request):
    return federated_method(request.param) if request.param in METHODS else example(request.param)
