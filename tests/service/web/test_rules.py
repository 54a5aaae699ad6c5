"""A rule of devices has one value: the page's and the Python device's are the same."""

import re
from pathlib import Path

from federank.methods.fpl.method import HOME_STEPS
from federank.service.client import rules

PAGE = Path(rules.__file__).parents[1] / "web"


def constants(script):
    """What a script exports as constants: numbers, sums of numbers, lists of words."""
    found = re.findall(r"^export const ([A-Z_]+) = ([\w *+.\-\[\]\", ]+);", (PAGE / script).read_text(), re.MULTILINE)
    return {name: eval(value, {"__builtins__": {}}) for name, value in found}


def test_the_page_and_the_python_client_keep_the_same_rules():
    of_python = {name: value for name, value in vars(rules).items() if name.isupper()}
    of_the_page = constants("client/rules.js")
    assert of_the_page == {name: list(v) if isinstance(v, tuple) else v for name, v in of_python.items()}
    assert of_the_page["MOST_VERSION"] == 999_999_999_999_999, "expressions are worked out"


def test_the_page_learns_at_home_in_as_many_steps():
    assert constants("methods/fpl.js")["HOME_STEPS"] == HOME_STEPS


def test_no_other_file_of_a_client_sets_a_rule_of_its_own():
    names = [name for name in vars(rules) if name.isupper()]
    folders = [Path(rules.__file__).parent, Path(rules.__file__).parents[1] / "fleet", PAGE]
    files = [file for folder in folders for pattern in ("*.py", "*.js") for file in folder.rglob(pattern)]
    for file in files:
        if file.stem != "rules":
            set_here = re.findall(r"^(?:export )?(?:const )?([A-Z_]+) = ", file.read_text(), re.MULTILINE)
            assert not set(set_here) & set(names), file
