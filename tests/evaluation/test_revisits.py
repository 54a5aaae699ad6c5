"""Revisits: rows divided in time with their repeats, and judged with what people knew among the candidates."""

import json

import pytest
from tests.cli.program import program

import federank as fr
from federank.errors import BadSplit, DataError

# Everybody goes to the station again and again; ann tries the museum last, bob the park.
ROWS = [
    *[("ann", "station", time) for time in range(4)],
    *[("ann", "park", 4), ("ann", "museum", 5)],
    *[("bob", "station", time) for time in range(3)],
    *[("bob", "museum", 3), ("bob", "park", 4), ("bob", "station", 5)],
    *[("cem", "station", time) for time in range(3)],
    *[("cem", "park", 3), ("cem", "museum", 4), ("cem", "station", 5)],
]
USERS, ITEMS, TIMES = (list(column) for column in zip(*ROWS, strict=True))
COLUMNS = (USERS, ITEMS, [1.0] * len(ROWS), TIMES)


def test_each_persons_newest_rows_are_later_whether_known_or_not():
    first, later = fr.split_revisits(COLUMNS, test=0.2)
    assert [later.item_ids[items].tolist() for items in map(later.profiles.of, range(3))] == [
        ["museum"],
        ["station"],
        ["station"],
    ]
    assert len(first) == 2 + 3 + 3
    assert first.repeats_left_out == 3 + 2 + 2


def test_known_places_are_ranked_and_told_apart_from_new_ones():
    first, later = fr.split_revisits(COLUMNS, test=0.2)
    model = fr.MostPopular().fit(first)
    found = fr.evaluate_revisits(model, later, at=1)
    # Equally popular: station and park; the smaller number is first, and the museum has two people.
    assert found["known_share"] == pytest.approx(2 / 3)
    assert found["users"] == 3
    assert fr.evaluate_revisits(model, later, at=3)["recall@3"] == 1
    assert fr.evaluate_revisits(model, later, at=3)["recall_new@3"] == 1
    assert found["recall_known@1"] + found["recall_new@1"] <= 1


def test_what_cannot_be_divided_or_judged_is_a_sentence():
    with pytest.raises(DataError, match="has no times, so nobody can say what came later"):
        fr.split_revisits([("ann", "park"), ("bob", "park")])
    with pytest.raises(DataError, match="city is generated, and has each pair once"):
        fr.split_revisits("city")
    with pytest.raises(BadSplit, match="One of the two parts would be empty"):
        fr.split_revisits(COLUMNS, test=0.01)
    first, _ = fr.split_revisits(COLUMNS)
    with pytest.raises(BadSplit, match="Nobody of these data is known to the model"):
        fr.evaluate_revisits(fr.MostPopular().fit(first), [("dan", "moon")])


def test_from_a_file_of_checkins_to_figures(tmp_path):
    source, parts, out = tmp_path / "checkins.csv", tmp_path / "parts", tmp_path / "model"
    source.write_text("user,item,time\n" + "".join(f"{user},{item},{time}\n" for user, item, time in ROWS))
    assert program("data", "split", source, "--revisits", 0.2, "--out", parts).returncode == 0
    train = ("train", "popular", "--data", parts / "first.tsv", "--split", "none", "--out", out, "--quiet")
    assert program(*train).returncode == 0
    told = program("evaluate", out, "--revisits", parts / "later.tsv", "--at", 3, "--json")
    assert json.loads(told.stdout)["recall@3"] == 1
    assert "66.7% of what 3 people did later they had done before" in (
        program("evaluate", out, "--revisits", parts / "later.tsv", "--at", 3).stdout
    )
    again = program("data", "split", source, "--revisits", 0.2, "--out", parts)
    assert (again.returncode, "exists already" in again.stderr) == (2, True)
