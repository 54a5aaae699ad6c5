"""Searching by name finds what people mean: articles moved, words in any order, one slip of the finger."""

import pytest
from tests.service.web.conftest import PAGE
from tests.service.web.conversing import conversing

TITLES = [
    "Matrix, The (1999)",
    "2001: A Space Odyssey (1968)",
    "Schindler's List (1993)",
    "Die Hard (1988)",
    "Vita è bella, La (1997)",
    "Lord of the Rings, The (2001)",
    "Matriarch (2022)",
    "Heat (1995)",
    "Dead Heat (1988)",
]


@pytest.fixture(scope="module")
def search(node):
    with conversing(node, "searching.mjs", PAGE / "device" / "catalogue.js") as ask:
        yield lambda *searches, names=(): ask({"titles": TITLES, "searches": searches, "names": names})


def test_a_search_finds_what_is_meant(search):
    meant = {
        "the matrix": "Matrix, The (1999)",
        "Matrix, The": "Matrix, The (1999)",
        "matrx": "Matrix, The (1999)",
        "mtarix": "Matrix, The (1999)",
        "2001 space": "2001: A Space Odyssey (1968)",
        "odyssey 1968": "2001: A Space Odyssey (1968)",
        "schindlers list": "Schindler's List (1993)",
        "Schindler’s": "Schindler's List (1993)",
        "die hrad": "Die Hard (1988)",
        "la vita e bella": "Vita è bella, La (1997)",
        "rings lord": "Lord of the Rings, The (2001)",
    }
    assert search(*meant)["found"] == [[title] for title in meant.values()]


def test_the_better_match_comes_first_and_a_slip_is_forgiven_only_where_nothing_fits(search):
    heat, begun, nothing, short = search("heat", "matri", "xqzzy", "hea rd")["found"]
    assert heat == ["Heat (1995)", "Dead Heat (1988)"]
    assert begun == ["Matrix, The (1999)", "Matriarch (2022)"]
    assert nothing == []
    assert short == [], "in a word of three letters a slip would be another word"


def test_names_of_a_file_are_matched_wherever_their_article_stands(search):
    told = search(names=["The Matrix", "Matrix", "La vita è bella", "Heat", "Cold"])
    assert told["matched"] == ["Matrix, The (1999)", "Vita è bella, La (1997)", "Heat (1995)"]
    assert told["unmatched"] == ["Cold"]
