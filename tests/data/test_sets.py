"""Known names, the folder they lie in, and what is said where a set is not there."""

import hashlib
import re

import pytest

from federank.data.datasets import KNOWN, data_folder, find, how_to_get, install_path, known_set, locate
from federank.errors import DataError

FETCHED = [known for known in KNOWN.values() if known.address]
BROUGHT = [known for known in KNOWN.values() if known.how_to_obtain]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDERANK_DATA", str(tmp_path))
    return tmp_path


def put(file):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"something")
    return file


def test_the_sets_of_the_papers_are_known():
    papers = {"ml-100k", "ml-1m", "ml-10m", "ml-20m", "ml-25m", "ml-32m", "amazon-digital-music", "foursquare-italy"}
    assert papers | {"librarything", "city"} <= set(KNOWN)


@pytest.mark.parametrize("known", KNOWN.values(), ids=list(KNOWN))
def test_every_set_can_be_fetched_brought_or_generated_and_states_its_terms(known):
    assert bool(known.address) + bool(known.how_to_obtain) + known.generated == 1
    assert known.terms.endswith(".")
    assert known.generated or known.citation


@pytest.mark.parametrize("known", FETCHED, ids=lambda known: known.name)
def test_every_fetched_set_comes_over_https_with_a_size_and_a_sum(known):
    assert known.address.startswith("https://")
    assert known.address.endswith(f"/{known.files[0]}")
    assert known.size > 1_000_000
    assert re.fullmatch("[0-9a-f]{32}", known.md5)


def test_the_data_folder_is_the_one_that_the_environment_names(folder):
    assert data_folder() == folder


def test_the_data_folder_is_in_the_users_cache_otherwise(monkeypatch, tmp_path):
    monkeypatch.delenv("FEDERANK_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert data_folder().is_relative_to(tmp_path)
    assert "federank" in data_folder().parts


@pytest.mark.parametrize("known", [*FETCHED, *BROUGHT], ids=lambda known: known.name)
def test_a_set_is_found_under_each_of_its_file_names(folder, known):
    for file in reversed(known.files):
        placed = put(folder / known.name / file)
        assert locate(known.name) == placed  # an earlier name goes before a later one


@pytest.mark.parametrize("known", FETCHED, ids=lambda known: known.name)
def test_an_unpacked_archive_is_found_as_a_folder(folder, known):
    deep = put(folder / known.name / known.unpacked[1])
    assert locate(known.name) == deep.parent
    flat = put(folder / known.name / known.unpacked[0])
    assert locate(known.name) == flat.parent
    archive = put(folder / known.name / known.files[0])
    assert locate(known.name) == archive


def test_a_part_of_a_download_is_not_taken_for_the_set(folder):
    put(folder / "ml-1m" / "ml-1m.zip.part")
    assert find("ml-1m") is None


def test_a_set_that_is_not_there_names_the_command_that_gets_it(folder):
    with pytest.raises(DataError) as mistake:
        locate("ml-1m")
    assert str(folder / "ml-1m") in str(mistake.value)


@pytest.mark.parametrize("known", BROUGHT, ids=lambda known: known.name)
def test_a_set_without_an_address_tells_how_to_come_by_it(folder, known):
    with pytest.raises(DataError) as mistake:
        locate(known.name)
    assert known.how_to_obtain in str(mistake.value)
    assert known.name in how_to_get(known)


def test_the_city_has_no_file(folder):
    assert find("city") is None
    with pytest.raises(DataError, match="generated"):
        locate("city")


def test_a_file_is_installed_under_the_sets_own_name_and_its_own_format(folder):
    amazon = known_set("amazon-digital-music")
    assert install_path(amazon, "Copy.TSV") == folder / "amazon-digital-music" / "AmazonDigitalMusic.tsv"
    assert install_path(amazon, "a.b.tsv.gz").name == "AmazonDigitalMusic.tsv.gz"
    assert install_path(known_set("ml-1m"), "downloaded (1).zip").name == "ml-1m.zip"
    with pytest.raises(DataError):
        install_path(known_set("ml-1m"), "ratings.dat")


def test_the_real_archive_is_as_its_entry_says(real_data, monkeypatch):
    monkeypatch.setenv("FEDERANK_DATA", str(real_data))
    archive, known = locate("ml-1m"), known_set("ml-1m")
    if archive.is_dir():
        pytest.skip(f"{archive} is unpacked, so there is no archive to compare")
    assert archive.stat().st_size == known.size
    assert hashlib.md5(archive.read_bytes()).hexdigest() == known.md5
