"""What is written is there whole or not at all, and nothing is left beside it."""

import os

import pytest

from federank.errors import BadFile
from federank.files import PRIVATE, atomic_write, file_in_place, folder_in_place, put_in_place


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("content", ["città\n", "città\n".encode(), lambda file: file.write("città\n".encode())])
def test_text_bytes_and_functions_become_the_same_file(tmp_path, content):
    atomic_write(tmp_path / "a.txt", content)
    assert (tmp_path / "a.txt").read_bytes() == "città\n".encode()
    assert names_in(tmp_path) == ["a.txt"]


def test_a_file_that_could_not_be_finished_leaves_the_earlier_one(tmp_path):
    atomic_write(tmp_path / "a.txt", "before")

    def fails(file):
        file.write(b"half of it")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        atomic_write(tmp_path / "a.txt", fails)
    assert (tmp_path / "a.txt").read_text() == "before"
    assert names_in(tmp_path) == ["a.txt"]


def test_until_it_is_finished_a_file_has_another_name(tmp_path):
    with file_in_place(tmp_path / "a.txt") as draft:
        draft.write_text("all")
        assert not (tmp_path / "a.txt").exists()
        assert draft.parent == tmp_path, "a rename from another disk would be a copy"
    assert (tmp_path / "a.txt").read_text() == "all"


def test_a_private_file_is_never_readable_by_others_not_even_as_a_draft(tmp_path):
    with file_in_place(tmp_path / "key", mode=PRIVATE) as draft:
        assert draft.stat().st_mode & 0o777 == 0o600
    atomic_write(tmp_path / "key", "secret", mode=PRIVATE)
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600


def test_other_files_follow_the_umask(tmp_path):
    earlier = os.umask(0o027)
    try:
        atomic_write(tmp_path / "a.txt", "")
        with folder_in_place(tmp_path / "folder"):
            pass
    finally:
        os.umask(earlier)
    assert (tmp_path / "a.txt").stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "folder").stat().st_mode & 0o777 == 0o750


def test_missing_folders_are_made_only_where_that_is_asked_for(tmp_path):
    with pytest.raises(BadFile):
        atomic_write(tmp_path / "new" / "a.txt", "")
    assert names_in(tmp_path) == []
    atomic_write(tmp_path / "new" / "a.txt", "", parents=True)
    assert names_in(tmp_path / "new") == ["a.txt"]


def test_a_folder_is_not_replaced_by_a_file(tmp_path):
    (tmp_path / "taken").mkdir()
    with pytest.raises(BadFile):
        atomic_write(tmp_path / "taken", "")
    assert names_in(tmp_path) == ["taken"]


def test_a_folder_takes_the_place_of_the_earlier_one_once_it_is_complete(tmp_path):
    for content in ("first", "second"):
        with folder_in_place(tmp_path / "folder") as draft:
            (draft / content).touch()
    assert names_in(tmp_path / "folder") == ["second"]

    def fails(draft):
        (draft / "third").touch()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), folder_in_place(tmp_path / "folder") as draft:
        fails(draft)
    assert names_in(tmp_path / "folder") == ["second"]
    assert names_in(tmp_path) == ["folder"]


def test_an_earlier_folder_comes_back_when_the_new_one_cannot_take_its_place(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "kept").touch()
    with pytest.raises(FileNotFoundError):
        put_in_place(tmp_path / "was never made", tmp_path / "folder")
    assert names_in(tmp_path / "folder") == ["kept"]
    assert names_in(tmp_path) == ["folder"]
