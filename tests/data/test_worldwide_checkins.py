"""Check-ins of the whole world in their authors' layout: one country, the latest of each pair."""

import pytest

import federank as fr
from federank.data.datasets import WORLDWIDE, find
from federank.data.formats import CHECK_INS, VENUES
from federank.errors import BadFile, DataError, SettingError

POIS = """\
4b1\t45.46\t9.19\tItalian Restaurant\tIT
4b2\t41.90\t12.49\tHome (private)\tIT
4b3\t-23.55\t-46.63\tBar\tBR
4b4\t43.65\t-79.38\tAirport\tCA
"""
VISITS = """\
50756\t4b2\tTue Apr 03 18:00:06 +0000 2012\t120
50756\t4b1\tWed Apr 04 10:00:00 +0000 2012\t120
50756\t4b2\tFri Jun 01 07:30:00 +0000 2012\t120
190571\t4b1\tTue Apr 03 18:00:07 +0000 2012\t120
190571\t4b3\tTue Apr 03 19:00:07 +0000 2012\t-180
7\t4b3\tTue Apr 03 18:00:08 +0000 2012\t-180
"""


@pytest.fixture
def worldwide(tmp_path, monkeypatch):
    folder = tmp_path / WORLDWIDE / "dataset_TIST2015"
    folder.mkdir(parents=True)
    (folder / VENUES).write_text(POIS)
    (folder / CHECK_INS).write_text(VISITS)
    monkeypatch.setenv("FEDERANK_DATA", str(tmp_path))
    return folder


def test_a_country_is_cut_out_by_its_code_and_keeps_the_latest_of_repeated_check_ins(worldwide):
    italy = fr.load("foursquare-italy")
    rows = {
        (italy.user_ids[u].item(), str(italy.item_ids[i])): int(t)
        for u, i, t in zip(italy.users, italy.items, italy.times, strict=True)
    }
    assert rows == {(50756, "4b1"): 1333533600, (50756, "4b2"): 1338535800, (190571, "4b1"): 1333476007}
    assert italy.repeats_left_out == 1
    assert italy.name == "foursquare-italy"
    assert italy.categories.of(1) == ("Home (private)",)
    assert fr.load("foursquare-brazil").n_users == 2


def test_the_files_of_the_world_go_before_a_file_of_the_country(worldwide, tmp_path):
    (tmp_path / "foursquare-italy").mkdir()
    (tmp_path / "foursquare-italy" / "Italy.tsv").write_text("user_id\tvenue_id\n1\ta\n2\tb\n")
    assert find("foursquare-italy") == worldwide
    (worldwide / VENUES).unlink()
    assert fr.load("foursquare-italy").n_items == 2


def test_a_country_without_check_ins_and_a_time_that_is_none_are_reported(worldwide):
    with pytest.raises(DataError):
        fr.load("foursquare-canada")
    (worldwide / CHECK_INS).write_text(VISITS + "8\t4b1\tyesterday\t0\n")
    with pytest.raises(BadFile, match=r"8.*'yesterday'"):
        fr.load("foursquare-italy")
    with pytest.raises(SettingError):
        fr.load("foursquare-italy", delimiter=",")
