"""One tree of errors: all of them live in errors.py, and its drawing names each under its parent."""

import re
from pathlib import Path

import federank
from federank import errors
from federank.errors import FedeRankError

SOURCES = Path(federank.__file__).parent


def drawn():
    """Every error of the drawing and the one it stands under, by the depth of its branch."""
    parents, path = {}, ["FedeRankError"]
    for branch, name in re.findall(r"^    ([│ ]*[├└])── (\w+)", errors.__doc__, re.MULTILINE):
        depth = 1 + len(branch) // 4
        del path[depth:]
        parents[name] = path[-1]
        path.append(name)
    return parents


def test_the_drawing_shows_every_error_under_its_parent():
    defined = {
        name: cls.__base__.__name__
        for name, cls in vars(errors).items()
        if isinstance(cls, type) and issubclass(cls, FedeRankError) and cls is not FedeRankError
    }
    assert drawn() == defined


def test_no_error_for_users_is_defined_anywhere_else():
    family = "|".join(["FedeRankError", *drawn()])
    elsewhere = [
        path
        for path in SOURCES.rglob("*.py")
        if path != SOURCES / "errors.py" and re.search(rf"^class \w+\(({family})\)", path.read_text(), re.MULTILINE)
    ]
    assert not elsewhere
