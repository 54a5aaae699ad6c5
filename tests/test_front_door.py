"""The names that `import federank` offers."""

import pytest

import federank as fr


@pytest.mark.parametrize("name", fr.__all__)
def test_every_name_is_there_and_documented(name):
    assert getattr(fr, name).__doc__


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="FLP"):
        fr.FLP  # noqa: B018
