"""A study's file names other files as it sees them."""

from federank.studies.documents import find_study
from federank.studies.spec import as_study


def test_paths_in_a_study_are_relative_to_it(tmp_path, monkeypatch):
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    (there / "visits.csv").write_text("user,item\n1,2\n")
    (there / "people.toml").write_text("")
    (there / "mine.toml").write_text(
        'data = ["visits.csv", "ml-100k"]\n'
        'model = [{ method = "fpl", settings = { policies = "people.toml", pi = "0.3" } }]\n'
    )
    monkeypatch.chdir(here)
    name, document = find_study("../there/mine.toml")
    first, second = as_study(document, name).data
    assert (first.name, first.source) == ("visits.csv", "../there/visits.csv")
    assert (second.name, second.source) == ("ml-100k", "ml-100k")
    assert document["model"][0]["settings"] == {"policies": "../there/people.toml", "pi": "0.3"}
    monkeypatch.chdir(there)
    assert find_study("mine.toml")[1]["data"] == ["visits.csv", "ml-100k"]
