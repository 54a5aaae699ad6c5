"""Searching by name finds what is meant, and never ends in nothing."""

import pytest
from tests.service.web.conftest import PAGE
from tests.service.web.conversing import conversing

TITLES = [
    "Matrix, The (1999)",
    "2001: A Space Odyssey (1968)",
    "Schindler's List (1993)",
    "Die Hard (1988)",
    ["Life Is Beautiful (1997)", "La vita è bella", "Das Leben ist schön"],
    "The Lord of the Rings: The Two Towers (2002)",
    "Matriarch (2022)",
    "Heat (1995)",
    "Dead Heat (1988)",
    ["The Godfather (1972)", "Il padrino", "Der Pate"],
    ["The Godfather Part II (1974)", "Il padrino - Parte II", "Der Pate – Teil II"],
    "Star Wars: Episode V - The Empire Strikes Back (1980)",
    "Terminator 2: Judgment Day (1991)",
    "Spider-Man (2002)",
    "Casablanca (1942)",
    "X-Men (2000)",
    "No Country for Old Men (2007)",
    "Blade Runner 2049 (2017)",
    "Blade Runner (1982)",
]
FIRST = {
    "the matrix": "Matrix, The (1999)",
    "Matrix, The": "Matrix, The (1999)",
    "matrx": "Matrix, The (1999)",
    "mtarix": "Matrix, The (1999)",
    "2001 space": "2001: A Space Odyssey (1968)",
    "odyssey 1968": "2001: A Space Odyssey (1968)",
    "Schindler’s": "Schindler's List (1993)",
    "die hrad": "Die Hard (1988)",
    "la vita e bella": "Life Is Beautiful (1997)",
    "das leben ist schon": "Life Is Beautiful (1997)",
    "rings lord": "The Lord of the Rings: The Two Towers (2002)",
    "lotr": "The Lord of the Rings: The Two Towers (2002)",
    "godfather 2": "The Godfather Part II (1974)",
    "godfather ii": "The Godfather Part II (1974)",
    "il padrino": "The Godfather (1972)",
    "der pate 2": "The Godfather Part II (1974)",
    "star wars v": "Star Wars: Episode V - The Empire Strikes Back (1980)",
    "star wars 5": "Star Wars: Episode V - The Empire Strikes Back (1980)",
    "t2": "Terminator 2: Judgment Day (1991)",
    "spiderman": "Spider-Man (2002)",
    "spider man": "Spider-Man (2002)",
    "casblnca": "Casablanca (1942)",
    "xmen": "X-Men (2000)",
    "heat": "Heat (1995)",
    "blade runner": "Blade Runner (1982)",
}


@pytest.fixture(scope="module")
def search(node):
    with conversing(node, "searching.mjs", PAGE / "client" / "catalogue.js") as ask:
        yield lambda *searches, names=(): ask({"titles": TITLES, "searches": searches, "names": names})


def test_a_search_finds_what_is_meant(search):
    found = {text: result["titles"][0] for text, result in zip(FIRST, search(*FIRST)["found"], strict=True)}
    assert found == FIRST


def test_better_matches_come_first(search):
    heat, begun = (result["titles"] for result in search("heat", "matri")["found"])
    assert heat == ["Heat (1995)", "Dead Heat (1988)"]
    assert begun == ["Matrix, The (1999)", "Matriarch (2022)"]


def test_a_search_never_ends_in_nothing(search):
    for result in search("xqzzy", "hea rd", "清明上河图", "!!!q")["found"]:
        assert result["nearest"]
        assert len(result["titles"]) == 12
    [near] = search("schindlers lost ark")["found"]
    assert near["titles"][0] == "Schindler's List (1993)"


def test_a_decade_is_a_filter(search):
    [eighties, heats] = search({"text": "", "decade": 1980}, {"text": "heat", "decade": 1990})["found"]
    assert len(eighties["titles"]) == 4
    assert heats["titles"] == ["Heat (1995)"]


def test_names_match_with_their_article_anywhere(search):
    told = search(names=["The Matrix", "Matrix", "La vita è bella", "Heat", "Cold"])
    assert told["matched"] == ["Matrix, The (1999)", "Life Is Beautiful (1997)", "Heat (1995)"]
    assert told["unmatched"] == ["Cold"]
