"""The notes of the packaged studies: each names what shows it, and that is there."""

import ast
from pathlib import Path

import pytest

from federank.studies.documents import packaged
from federank.studies.report_spec import report_spec_of

ROOT = Path(__file__).parents[2]
NOTES = [
    (study, document, note)
    for study, document in packaged().items()
    for note in report_spec_of(document, study).notes
    if note.shown_by
]


def named(value):
    return [value] if isinstance(value, str) else list(value)


def rows_of(document):
    """The groups, and the best points of those that are swept."""
    groups = [entry["group"] for entry in document["model"]]
    best = (f"{entry['group']}, best {key}" for entry in document["model"] for key in entry.get("sweep", ()))
    return {*groups, *best}


@pytest.mark.parametrize(("study", "document", "note"), NOTES, ids=[f"{one[0]}-{n}" for n, one in enumerate(NOTES)])
def test_what_a_note_names_is_there(study, document, note):
    groups = {entry["group"]: entry for entry in document["model"]}
    sets = {entry["name"] if isinstance(entry, dict) else entry for entry in document["data"]}
    by = note.shown_by
    if "test" in by:
        path, name = by["test"].split("::")
        functions = [one for one in ast.parse((ROOT / path).read_text()).body if isinstance(one, ast.FunctionDef)]
        assert name in [function.name for function in functions]
    if "group" in by:
        assert by["group"] in rows_of(document)
        assert by["group"] not in named(note.group)
    if "data" in by:
        assert by["data"] in sets
        assert by["data"] not in named(note.data)
    if "sweep" in by:
        assert "sweep" in groups[by["sweep"]]


@pytest.mark.parametrize("study", sorted(packaged()))
def test_notes_speak_of_rows_and_data_that_the_study_has(study):
    document = packaged()[study]
    rows = rows_of(document)
    sets = {entry["name"] if isinstance(entry, dict) else entry for entry in document["data"]}
    for note in report_spec_of(document, study).notes:
        assert set(named(note.group)) <= rows
        assert set(named(note.data)) <= sets
