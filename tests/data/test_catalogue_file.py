"""A table of items alone is a catalogue: all that an operator has before anyone has come."""

import pytest

from federank.data.formats import is_catalogue_file, read_catalogue_file
from federank.errors import SettingError
from federank.methods.fpl.method import FPL
from federank.service.server.config import catalogue_of
from federank.service.server.methods import SERVER_METHODS


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


def test_a_folder_or_no_file_is_none(tmp_path):
    assert not is_catalogue_file(tmp_path)
    assert not is_catalogue_file(tmp_path / "nowhere.csv")


def test_a_mean_of_no_users_is_an_error(written):
    data = read_catalogue_file(written("item_id,title\na,A\nb,B\n"))
    with pytest.raises(SettingError, match="triples"):
        SERVER_METHODS["fpl"].settle(FPL(), data, None)
    assert SERVER_METHODS["fpl"].settle(FPL(triples=5), data, None).triples == 5
