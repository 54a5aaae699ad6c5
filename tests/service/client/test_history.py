"""An owner's history file: items matched by id and title, and unknown names listed."""

import pytest

from federank.errors import BadFile, SettingError
from federank.service.client.federation import Catalogue
from federank.service.client.http import shown
from federank.service.client.owner import never_items, read_profile

CATALOGUE = Catalogue(
    ["10", "20", "30", "40"],
    ["The Harbour", "Old Mill", "Twin", "Twin"],
    [["Food"], ["Food", "Arts"], [], ["Shop"]],
)


def written(tmp_path, text):
    path = tmp_path / "me.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_items_are_matched_by_id_and_by_title(tmp_path):
    matched = read_profile(written(tmp_path, "date,item\n2024-01-01,30\n2024-01-02,the harbour\n,10\n"), CATALOGUE)
    assert matched.profile.tolist() == [0, 2]
    assert (matched.named, matched.unknown) == (3, [])


def test_an_id_is_known_whatever_letters_of_it_cannot_be_shown(tmp_path):
    ids = ["tab\tbed", "\u202ereversed"]
    catalogue = Catalogue([shown(name) for name in ids], ["", ""], [[], []])
    assert read_profile(written(tmp_path, "item\n" + "\n".join(ids) + "\n"), catalogue).profile.tolist() == [0, 1]


def test_unknown_and_ambiguous_names_are_listed(tmp_path):
    matched = read_profile(written(tmp_path, "item\n10\nNowhere\n99\nTwin\n"), CATALOGUE)
    assert matched.profile.tolist() == [0]
    assert matched.unknown == ["Nowhere", "99", "Twin"]


@pytest.mark.parametrize("text", ["", "user,place\n1,2\n", "date,item\n2024-01-01\n"])
def test_a_file_of_another_form_is_an_error(tmp_path, text):
    with pytest.raises(BadFile, match="item"):
        read_profile(written(tmp_path, text), CATALOGUE)


def test_a_missing_file_and_a_binary_one_are_errors(tmp_path):
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00item")
    for name in ("none.csv", "binary.csv"):
        with pytest.raises(BadFile):
            read_profile(tmp_path / name, CATALOGUE)


def test_never_lists_are_resolved_to_items():
    assert never_items(CATALOGUE, ["10", "old mill"], []) == {0, 1}
    assert never_items(CATALOGUE, [], ["food", "SHOP"]) == {0, 1, 3}
    assert never_items(CATALOGUE, [], []) == frozenset()


@pytest.mark.parametrize(("items", "categories"), [(["Nowhere"], []), (["Twin"], []), ([], ["Sport"])])
def test_a_never_list_of_unknown_names_is_refused(items, categories):
    with pytest.raises(SettingError, match="--never"):
        never_items(CATALOGUE, items, categories)
