"""Adjacency lists (`user item item ...` on each line) and files of a catalogue."""

import gzip

import numpy as np
import pytest

from federank.data.formats import is_catalogue_file, read_catalogue_file
from federank.data.loading import load
from federank.errors import BadFile, SettingError
from federank.methods.fpl.method import FPL
from federank.service.server.config import catalogue_of
from federank.service.server.methods import SERVER_METHODS


def write(tmp_path, content):
    path = tmp_path / "train.txt"
    path.write_text(content)
    return path


def test_lists_are_recognised(tmp_path):
    data = load(write(tmp_path, "0 10 11 12\n1 10\n7 12 11\n"))
    assert data.user_ids.tolist() == [0, 1, 7]
    assert data.item_ids.tolist() == [10, 11, 12]
    assert data.profiles.of(2).tolist() == [1, 2]
    assert data.ratings is None


def test_lists_may_be_packed(tmp_path):
    path = tmp_path / "train.txt.gz"
    path.write_bytes(gzip.compress(b"0 10 11 12\n1 10\n"))
    assert len(load(path)) == 4


def test_repeats_and_empty_lists_are_counted(tmp_path):
    data = load(write(tmp_path, "0 1 2 2 2\n1 3\n2\n\n0 1 5\n"))
    assert len(data) == 4
    assert data.repeats_left_out == 3
    assert data.n_users == 2


def test_lists_of_the_same_length_are_asked_for(tmp_path):
    path = write(tmp_path, "0 1 2\n1 2 3\n")
    assert load(path).ratings is not None
    data = load(path, lists=True)
    assert np.array_equal(data.popularity, [1, 2, 1])
    with pytest.raises(SettingError):
        load(path, lists=True, users=1)


@pytest.mark.parametrize("bad", ["two", "2.5", "99999999999999999999", "-x"])
def test_a_word_in_a_list_is_refused(tmp_path, bad):
    with pytest.raises(BadFile, match=rf"Line 3 .*'{bad}'"):
        load(write(tmp_path, f"0 1 2 3\n1 2\n2 3 {bad} 4 5\n"))


def test_users_without_items_are_refused(tmp_path):
    with pytest.raises(BadFile):
        load(write(tmp_path, "0\n1\n"), lists=True)


def test_a_table_with_one_uneven_line_is_no_list(tmp_path):
    with pytest.raises(BadFile, match="Line 3"):
        load(write(tmp_path, "1 2 3\n1 3 4\n2 3\n2 4 5\n3 4 5\n"))


@pytest.fixture
def written(tmp_path):
    def write(text):
        path = tmp_path / "films.csv"
        path.write_text(text)
        return path

    return write


def test_items_keep_their_order_titles_and_categories_and_there_are_no_users(written):
    path = written("item_id,title,genres\n7,Seven,Crime|Drama\n3,Three,\n")
    assert is_catalogue_file(path)
    data = read_catalogue_file(path)
    assert (data.item_ids.tolist(), data.titles.tolist(), data.n_users, len(data)) == ([7, 3], ["Seven", "Three"], 0, 0)
    assert b'"categories":["Crime","Drama"]' in catalogue_of(data).content
    assert data.name == "films"


@pytest.mark.parametrize(
    "text",
    ["user,item,title\n1,2,Two\n", "1\t2\t3\n", "user\titem\n1\t2\n", "item_id\n3\n", "item_id,price\n3,4\n", ""],
)
def test_a_table_of_choices_or_of_something_else_is_none(written, text):
    assert not is_catalogue_file(written(text))


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("item_id,title\n1,One\n2,Two\n1,Uno\n", "'1'"),
        ("item_id,genres\n1,Crime\n2,Drama\n", "titles"),
        ("item_id,title\n", "no item"),
    ],
)
def test_a_catalogue_names_each_item_once_with_a_title(written, text, fact):
    with pytest.raises(BadFile, match=fact):
        read_catalogue_file(written(text))


def test_a_folder_or_no_file_is_none(tmp_path):
    assert not is_catalogue_file(tmp_path)
    assert not is_catalogue_file(tmp_path / "nowhere.csv")


def test_a_mean_of_no_users_is_an_error(written):
    data = read_catalogue_file(written("item_id,title\na,A\nb,B\n"))
    with pytest.raises(SettingError, match="triples"):
        SERVER_METHODS["fpl"].settle(FPL(), data, None)
    assert SERVER_METHODS["fpl"].settle(FPL(triples=5), data, None).triples == 5
