"""Files that other services export are understood: their titles, their years and their ratings."""

import json
import subprocess
from pathlib import Path

import pytest
from tests.service.web.conftest import PAGE

FEATURES = [
    {"geometry": {}, "properties": {"date": "2024", "location": {"name": "Bar Luce", "address": "Milano"}}},
    {"geometry": {}, "properties": {"Title": "Trattoria Milanese"}},
]
EXPORTS = {
    "letterboxd.csv": (
        "Date,Name,Year,Letterboxd URI,Rating\n2024-01-02,Heat,1995,https://x/1,4.5\n"
        "2024-01-03,Cats,2019,https://x/2,0.5\n2024-01-04,Alien,1979,https://x/3,\n",
        ["Heat (1995)", "Alien (1979)"],
        1,
    ),
    "imdb.csv": (
        "Const,Your Rating,Date Rated,Title,Original Title,URL,Title Type,IMDb Rating,Runtime (mins),Year\n"
        "tt1,9,2024-01-01,Heat,Heat,https://x,Movie,8.3,170,1995\ntt2,5,2024-01-01,Cats,Cats,https://x,Movie,2.8,110,2019\n",
        ["Heat (1995)"],
        1,
    ),
    "netflix.csv": (
        'Title,Date\n"Breaking Bad: Season 1: Pilot",1/2/24\n"Breaking Bad: Season 2: Down",1/3/24\n"Heat",1/4/24\n',
        ["Breaking Bad", "Heat"],
        0,
    ),
    "goodreads.csv": (
        "Book Id,Title,Author,My Rating,Average Rating\n1,Dune,Frank Herbert,5,4.2\n2,Emma,Jane Austen,2,4.0\n"
        "3,Ulysses,James Joyce,0,3.7\n",
        ["Dune", "Ulysses"],
        1,
    ),
    "places.csv": (
        "Title,Note,URL,Comment\nBar Luce,,https://x,\nTrattoria Milanese,nice,https://x,\n",
        ["Bar Luce", "Trattoria Milanese"],
        0,
    ),
    "places.json": (
        json.dumps({"type": "FeatureCollection", "features": FEATURES}),
        ["Bar Luce", "Trattoria Milanese"],
        0,
    ),
    "imdb of someone who likes nothing much.csv": (
        "Const,Your Rating,Title,Year\ntt1,5,Heat,1995\ntt2,,Alien,1979\n",
        ["Alien (1979)"],
        1,
    ),
    "ours.csv": ("item,title\n17,Heat\n18,Alien\n", ["17", "18"], 0),
    "list.txt": ("Heat\nAlien\n", ["Heat", "Alien"], 0),
}


@pytest.fixture(scope="module")
def read(node, tmp_path_factory):
    folder = tmp_path_factory.mktemp("exports")

    def read(files, scale=None):
        for name, text in files.items():
            (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        program, module = Path(__file__).with_name("reading.mjs"), (PAGE / "client" / "history_file.js").as_uri()
        paths = [folder / name for name in files]
        command = [node, program, module, json.dumps(scale), *paths]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return dict(zip(files, json.loads(done.stdout), strict=True))

    return read


RATED = {"letterboxd.csv", "imdb.csv", "goodreads.csv", "imdb of someone who likes nothing much.csv"}


def test_exports_are_read_without_low_ratings(read):
    told = read({name: text for name, (text, _, _) in EXPORTS.items()})
    assert told == {
        name: {"names": names, "low": low, "rated": name in RATED} for name, (_, names, low) in EXPORTS.items()
    }


def test_a_file_in_windows_1252_is_read_as_one_in_utf_8(read):
    text = "Name,Year\nAmélie,2001\nÜber uns,1986\n"
    told = read({"old.csv": text.encode("cp1252"), "new.csv": text.encode()})
    assert told["old.csv"] == told["new.csv"]
    assert told["old.csv"]["names"][0] == "Amélie (2001)"


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"Title,Rating\nCats,1\n", "file.all-low"),
        (b"x" * (10 * 2**20 + 1), "file.too-large"),
        (b"", "file.empty"),
        (b"title\n\0\0\0", "file.not-text"),
        (b'[{"title": "A', "file.not-json"),
        (b'{"a": 1}', "file.no-list"),
        (b'title\n"never ends', "file.open-quote"),
        (b"title\n\n\n", "file.no-items"),
    ],
)
def test_a_file_that_is_no_history_is_refused(read, content, code):
    assert read({"file.csv": content})["file.csv"] == {"fault": code}


WHOLE, HALVES = {"lowest": 1, "highest": 5, "step": 1}, {"lowest": 0.5, "highest": 5, "step": 0.5}


@pytest.mark.parametrize(
    ("name", "scale", "stars", "unrated"),
    [
        ("letterboxd.csv", HALVES, [["Heat (1995)", 4.5], ["Cats (2019)", 0.5]], 1),
        ("letterboxd.csv", WHOLE, [["Heat (1995)", 5], ["Cats (2019)", 1]], 1),
        ("imdb.csv", HALVES, [["Heat (1995)", 4.5], ["Cats (2019)", 2.5]], 0),
        ("imdb.csv", {"lowest": 1, "highest": 10, "step": 1}, [["Heat (1995)", 9], ["Cats (2019)", 5]], 0),
        ("goodreads.csv", WHOLE, [["Dune", 5], ["Emma", 2]], 1),
    ],
)
def test_stars_are_converted_to_the_scale(read, name, scale, stars, unrated):
    assert read({name: EXPORTS[name][0]}, scale)[name] == {"stars": stars, "unrated": unrated}


def test_ratings_beside_ids_have_the_federations_scale(read):
    ten = {"lowest": 0, "highest": 10, "step": 0}
    told = read({"own.csv": "item,rating\n17,3\n18,4.25\n17,2\n"}, ten)["own.csv"]
    assert told == {"stars": [["17", 2], ["18", 4.25]], "unrated": 0}


def test_file_without_ratings_is_refused_where_items_are_rated(read):
    told = read({"netflix.csv": EXPORTS["netflix.csv"][0]}, WHOLE)["netflix.csv"]
    assert told == {"fault": "file.unrated"}
