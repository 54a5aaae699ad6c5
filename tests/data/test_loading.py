"""Every format says the same thing: one tiny world, written in each of them, is read back as the same data."""

import gzip
import io
import subprocess
import sys
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas
import polars as pl
import pytest

import federank as fr
from federank.data.datasets import KNOWN, WORLDWIDE, find
from federank.data.formats import CHECK_INS, VENUES
from federank.data.interactions import Interactions
from federank.data.loading import load
from federank.data.split_files import write_tsv
from federank.errors import BadFile, DataError, SettingError, UnknownDataset

USERS = [2, 1, 1, 3]
ITEMS = [10, 20, 10, 30]
RATINGS = [4.0, 2.5, 5.0, 1.0]
TIMES = [1333476012, 1333476013, 1333476014, 1333476015]
TITLES = {10: "Amélie (2001)", 20: "Star, The (1999)", 30: "Plain (1990)"}
GENRES = {10: ["Comedy", "Romance"], 20: ["War"], 30: []}


def world(*, ratings=True, times=True):
    return Interactions.from_columns(USERS, ITEMS, RATINGS if ratings else None, TIMES if times else None)


def lines(delimiter, *, header=None, columns=4, end="\n"):
    rows = [delimiter.join(map(str, row[:columns])) for row in zip(USERS, ITEMS, RATINGS, TIMES, strict=True)]
    return "".join(line + end for line in ([header] if header else []) + rows)


def write(path, content, encoding="utf-8"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode(encoding))
    return path


def zipped(folder, name):
    archive = folder.parent / name
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for file in folder.iterdir():
            packed.write(file, f"{folder.name}/{file.name}")
    return archive


def movielens_100k(folder):
    names = "unknown|Action|Adventure|Animation|Children's|Comedy|Crime|Documentary|Drama|Fantasy|Film-Noir|Horror|"
    genres = (names + "Musical|Mystery|Romance|Sci-Fi|Thriller|War|Western").split("|")
    rows = [
        "|".join([str(i), TITLES[i], "01-Jan-1995", "", "http", *(str(int(g in GENRES[i])) for g in genres)])
        for i in TITLES
    ]
    write(folder / "u.item", "\n".join(rows) + "\n", "latin-1")
    write(folder / "u.data", lines("\t"))
    return folder


def movielens_dat(folder, encoding):
    rows = [f"{item}::{TITLES[item]}::{'|'.join(GENRES[item])}\n" for item in TITLES]
    write(folder / "movies.dat", "".join(rows), encoding)
    write(folder / "ratings.dat", lines("::"))
    return folder


def movielens_csv(folder):
    rows = [f'{item},"{TITLES[item]}",{"|".join(GENRES[item]) or "(no genres listed)"}\r\n' for item in TITLES]
    write(folder / "movies.csv", "movieId,title,genres\r\n" + "".join(rows))
    write(folder / "tags.csv", "userId,movieId,tag,timestamp\n1,10,fun,1\n")
    write(folder / "ratings.csv", lines(",", header="userId,movieId,rating,timestamp", end="\r\n"))
    return folder


def recbole(folder):
    header = "user_id:token\titem_id:token\trating:float\ttimestamp:float"
    rows = [f"{item}\t{TITLES[item]}\t{' '.join(GENRES[item])}\n" for item in TITLES]
    write(folder / "films.item", "item_id:token\tmovie_title:token_seq\tclass:token_seq\n" + "".join(rows))
    write(folder / "films.user", "user_id:token\tage:float\n1\t20\n")
    return write(folder / "films.inter", lines("\t", header=header))


def zstandard(path, content):
    held = io.BytesIO(content.encode())
    pl.scan_lines(held).sink_csv(
        path, include_header=False, quote_style="never", compression="zstd", check_extension=False
    )
    return path


def parquet(path):
    pl.DataFrame({"userId": USERS, "itemId": ITEMS, "rating": RATINGS, "timestamp": TIMES}).write_parquet(path)
    return path


FILMS: dict[str, Callable[[Path], object]] = {
    "MovieLens 100K folder": lambda folder: movielens_100k(folder / "ml-100k"),
    "MovieLens 100K zip": lambda folder: zipped(movielens_100k(folder / "ml-100k"), "a.zip"),
    "MovieLens 1M folder": lambda folder: movielens_dat(folder / "ml-1m", "latin-1"),
    "MovieLens 1M zip": lambda folder: zipped(movielens_dat(folder / "ml-1m", "latin-1"), "a.zip"),
    "MovieLens 1M ratings file": lambda folder: movielens_dat(folder / "ml-1m", "latin-1") / "ratings.dat",
    "MovieLens 10M zip": lambda folder: zipped(movielens_dat(folder / "ml-10M100K", "utf-8"), "a.zip"),
    "MovieLens 20M folder": lambda folder: movielens_csv(folder / "ml-20m"),
    "MovieLens 32M zip": lambda folder: zipped(movielens_csv(folder / "ml-32m"), "a.zip"),
    "folder around a MovieLens folder": lambda folder: movielens_csv(folder / "ml-25m").parent,
    "folder around a MovieLens zip": lambda folder: zipped(movielens_csv(folder / "in" / "ml-25m"), "a.zip").parent,
    "RecBole file": lambda folder: recbole(folder),
    "RecBole folder": lambda folder: recbole(folder / "films").parent,
    "RecBole zip": lambda folder: zipped(recbole(folder / "films").parent, "a.zip"),
}

TABLES: dict[str, Callable[[Path], object]] = {
    "CSV with header": lambda folder: write(folder / "a.csv", lines(",", header="user,item,rating,time")),
    "CSV with byte order mark": lambda folder: write(
        folder / "a.csv", lines(",", header="user,item,rating,time").encode("utf-8-sig")
    ),
    "CSV without header": lambda folder: write(folder / "a.csv", lines(",")),
    "CSV with DOS line ends": lambda folder: write(folder / "a.csv", lines(",", end="\r\n")),
    "CSV that ends without a line end": lambda folder: write(folder / "a.csv", lines(",").rstrip()),
    "CSV with blank lines": lambda folder: write(folder / "a.csv", "\n" + lines(",", end="\n\n")),
    "CSV with blank lines and a header": lambda folder: write(
        folder / "a.csv", "\n" + lines(",", header="user,item,rating,time", end="\n\n")
    ),
    "CSV with all quoted": lambda folder: write(folder / "a.csv", '"' + lines('","', end='"\n"')[:-1]),
    "semicolons": lambda folder: write(folder / "a.txt", lines(";", header="User ID;Item ID;Rating;Timestamp")),
    "bars": lambda folder: write(folder / "a.txt", lines("|")),
    "spaces": lambda folder: write(folder / "a.txt", lines(" ")),
    "double colons": lambda folder: write(folder / "a.dat", lines("::")),
    "Amazon style TSV": lambda folder: write(folder / "a.tsv", lines("\t", header="user_id\titem_id\trating\tutc")),
    "Elliot's TSV": lambda folder: write(folder / "a.tsv", lines("\t")),
    "TSV with an odd name": lambda folder: write(folder / "a [x]*? é.tsv", lines("\t")),
    "TSV in gzip": lambda folder: write(folder / "a.tsv.gz", gzip.compress(lines("\t").encode())),
    "TSV in Zstandard": lambda folder: zstandard(folder / "a.tsv.zst", lines("\t")),
    "TSV in a zip": lambda folder: zipped(write(folder / "in" / "a.tsv", lines("\t")).parent, "a.zip"),
    "folder with one table": lambda folder: write(folder / "a.tsv", lines("\t")).parent,
    "Parquet": lambda folder: parquet(folder / "a.parquet"),
    "Parquet by another name": lambda folder: parquet(folder / "data"),
    "our own TSV": lambda folder: write_tsv(world(), folder / "a.tsv") or folder / "a.tsv",
    "Polars frame": lambda _: pl.DataFrame({"user": USERS, "item": ITEMS, "rating": RATINGS, "time": TIMES}),
    "Polars lazy frame": lambda _: pl.LazyFrame({"user": USERS, "item": ITEMS, "rating": RATINGS, "time": TIMES}),
    "Polars frame with dates": lambda _: pl.DataFrame(
        {"user": USERS, "item": ITEMS, "rating": RATINGS, "date": [datetime.fromtimestamp(t, UTC) for t in TIMES]}
    ),
    "pandas frame": lambda _: pandas.DataFrame({"user": USERS, "item": ITEMS, "rating": RATINGS, "time": TIMES}),
    "pandas frame with dates": lambda _: pandas.DataFrame(
        {"user": USERS, "item": ITEMS, "rating": RATINGS, "time": pandas.to_datetime(TIMES, unit="s")}
    ),
    "pandas frame with dates elsewhere": lambda _: pandas.DataFrame(
        {"user": USERS, "item": ITEMS, "rating": RATINGS}
    ).assign(time=pandas.to_datetime(TIMES, unit="s", utc=True).tz_convert("Asia/Tokyo")),
    "pandas frame with missing allowed": lambda _: pandas.DataFrame(
        {"user": USERS, "item": ITEMS, "rating": RATINGS, "time": TIMES}
    ).astype({"user": "Int64", "rating": "Float64"}),
    "pandas frame without names": lambda _: pandas.DataFrame(list(zip(USERS, ITEMS, RATINGS, TIMES, strict=True))),
    "tuple of lists": lambda _: (USERS, ITEMS, RATINGS, TIMES),
    "tuple of arrays": lambda _: (np.array(USERS, ">i4"), np.array(ITEMS), np.array(RATINGS, "f2"), np.array(TIMES)),
    "matrix": lambda _: np.array([USERS, ITEMS, RATINGS, TIMES]).T,
}

PAIRS: dict[str, Callable[[Path], object]] = {
    "CSV": lambda folder: write(folder / "a.csv", lines(",", columns=2)),
    "TSV with header": lambda folder: write(folder / "a.tsv", lines("\t", columns=2, header="userId\tsongId")),
    "tuple": lambda _: (USERS, ITEMS),
    "matrix of integers": lambda _: np.array([USERS, ITEMS]).T,
    "frame": lambda _: pl.DataFrame({"user_id": USERS, "asin": ITEMS}),
}


@pytest.mark.parametrize("make", [*FILMS.values(), *TABLES.values()], ids=[*FILMS, *TABLES])
def test_every_format_is_read_as_the_same_interactions(make, tmp_path):
    assert load(make(tmp_path)).fingerprint == world().fingerprint


@pytest.mark.parametrize("make", FILMS.values(), ids=FILMS)
def test_films_come_with_titles_and_genres(make, tmp_path):
    data = load(make(tmp_path))
    assert data.titles.tolist() == list(TITLES.values())
    assert [list(data.categories.of(item)) for item in range(3)] == list(GENRES.values())


@pytest.mark.parametrize("make", PAIRS.values(), ids=PAIRS)
def test_ratings_and_times_may_be_absent(make, tmp_path):
    assert load(make(tmp_path)).fingerprint == world(ratings=False, times=False).fingerprint


@pytest.mark.parametrize(
    "form",
    [
        "%a %b %d %H:%M:%S +0000 %Y",
        "%Y-%m-%dT%H:%M:%SZ",
        "%Y-%m-%d %H:%M:%S",
        "%Y-%m-%dT%H:%M:%S.250",
        "%Y-%m-%d %H:%M:%S+00:00",
    ],
)
def test_check_ins_have_textual_dates_and_the_kind_of_each_venue(form, tmp_path):
    kinds = {10: "Café", 20: "Bus Station", 30: "Gym / Fitness Center"}
    rows = [
        f"{user}\t{item}\t{kinds[item]}\t{datetime.fromtimestamp(time, UTC).strftime(form)}\n"
        for user, item, time in zip(USERS, ITEMS, TIMES, strict=True)
    ]
    path = write(tmp_path / "town.tsv", "user_id\tvenue_id\ttype\tutc\n" + "".join(rows))
    data = load(path)
    assert data.fingerprint == world(ratings=False).fingerprint
    assert [data.categories.of(item) for item in range(3)] == [("Café",), ("Bus Station",), ("Gym / Fitness Center",)]


def test_the_type_of_an_event_is_not_taken_for_a_category(tmp_path):
    path = write(tmp_path / "a.csv", "user_id,item_id,type\n1,1,click\n2,1,order\n")
    assert load(path).categories is None


def test_columns_are_chosen_by_name_or_position(tmp_path):
    rows = "".join(f"x,{t},{r},{i},{u}\n" for u, i, r, t in zip(USERS, ITEMS, RATINGS, TIMES, strict=True))
    named = write(tmp_path / "named.csv", "note,when,mark,what,who\n" + rows)
    bare = write(tmp_path / "bare.csv", rows)
    wanted = world().fingerprint
    assert load(named, users="who", items="what", ratings="mark", times="when").fingerprint == wanted
    assert load(named, users=4, items=3, ratings=2, times=1, header=True).fingerprint == wanted
    assert load(bare, users=4, items=3, ratings=2, times=1).fingerprint == wanted
    assert load(bare, users=4, items=3).ratings is None


def test_ratings_and_times_can_be_left_out(tmp_path):
    path = write(tmp_path / "a.tsv", lines("\t"))
    assert load(path, ratings=False).fingerprint == world(ratings=False).fingerprint
    assert load(path, times=False).fingerprint == world(times=False).fingerprint
    assert load(path, users=0, items=1, times=3).fingerprint == world(ratings=False).fingerprint


def test_a_caller_who_knows_better_is_believed_about_header_and_delimiter(tmp_path):
    path = write(tmp_path / "a.csv", "user,item\na,b\nc,b\n")
    assert load(path).user_ids.tolist() == ["a", "c"]
    assert load(path, header=False).user_ids.tolist() == ["a", "c", "user"]
    odd = write(tmp_path / "odd", "1--10\n2--10\n")
    assert load(odd, delimiter="--").user_ids.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (["1", "20"], [1, 20]),
        (["-1", "0"], [-1, 0]),
        (["007", "7"], ["007", "7"]),
        (["+1", "2"], ["+1", "2"]),
        (["-0", "2"], ["-0", "2"]),
        (["1.0", "2"], ["1.0", "2"]),
        (["9223372036854775807", "2"], [2, 9223372036854775807]),
        (["9223372036854775808", "2"], ["2", "9223372036854775808"]),
        (["B000002", "5"], ["5", "B000002"]),
    ],
)
def test_ids_are_numbers_only_if_all_are_written_as_numbers_are(written, read, tmp_path):
    path = write(tmp_path / "a.tsv", "".join(f"{user}\t1\n" for user in written))
    assert load(path).user_ids.tolist() == read


def test_a_late_word_makes_a_complete_column_text(tmp_path):
    rows = "".join(f"{user},5\n" for user in range(1000))
    data = load(write(tmp_path / "a.csv", rows + "last,5\n"))
    assert data.n_users == 1001
    assert data.user_index("999") != data.user_index("last")
    assert data.item_ids.tolist() == [5]


def test_text_ids_in_a_frame_stay_text():
    assert load(pl.DataFrame({"user": ["1", "2"], "item": [1, 1]})).user_ids.tolist() == ["1", "2"]
    assert load(pandas.DataFrame({"user": ["1", "2"], "item": [1, 1]})).user_ids.tolist() == ["1", "2"]


def test_a_quote_inside_a_field_is_a_letter_where_no_field_is_quoted(tmp_path):
    path = write(tmp_path / "a.tsv", '7" single\t1\nhalf"\t1\n')
    assert load(path).user_ids.tolist() == ['7" single', 'half"']


@pytest.mark.parametrize(
    "rows",
    [
        [(1, 2), (1, 3), (2, 3)],
        np.array([(1, 2), (1, 3), (2, 3)]),
        ([1, 1, 2], [2, 3, 3]),
        (np.array([1, 1, 2]), np.array([2, 3, 3])),
    ],
    ids=["tuples", "a matrix", "columns", "arrays"],
)
def test_rows_in_memory_are_rows_and_columns_are_columns(rows):
    data = load(rows)
    assert (data.user_ids.tolist(), data.item_ids.tolist()) == ([1, 2], [2, 3])
    assert list(zip(data.user_ids[data.users], data.item_ids[data.items], strict=True)) == [(1, 2), (1, 3), (2, 3)]


def test_rows_may_have_ratings_and_times():
    data = load([("ann", "tea", 5, 30), ("ann", "jam", 3, 10), ("bob", "tea", 4, 20)])
    assert data.item_ids.tolist() == ["jam", "tea"]
    assert data.ratings.tolist() == [3, 5, 4]
    assert data.times.tolist() == [10, 30, 20]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ([[1, 2], [1, 3], [2, 3]], "rows as a list of tuples"),
        (((1, 2), (1, 3), (2, 3)), "columns as a tuple of lists"),
        ([(1, 2), (1, 3, 4), (2, 3)], "Row 2 has 3 values and row 1 has 2"),
        ([(1, 2, 3, 4, 5)], "5 columns were given"),
        (["ann", "bob"], "A list of str is neither"),
        ([{"user": 1, "item": 2}], "A list of dict is neither"),
    ],
)
def test_what_may_be_rows_or_columns_is_not_guessed(given, sentence):
    with pytest.raises(DataError, match=sentence):
        load(given)


def test_the_rows_that_were_left_out_as_repeats_are_counted(tmp_path):
    path = write(tmp_path / "a.tsv", "1\t5\t1\t300\n1\t5\t2\t100\n1\t5\t2\t50\n2\t5\t3\t100\n1\t6\t3\t100\n")
    data = load(path)
    assert data.repeats_left_out == 2
    assert data.keep_users(2).repeats_left_out == 2
    assert data.ratings.tolist() == [1, 3, 3]  # the latest
    first = load(path, repeats="first")
    assert (first.repeats_left_out, first.ratings.tolist()) == (2, [2, 3, 3])
    with pytest.raises(DataError, match="repeat"):
        load(path, repeats="refuse")
    with pytest.raises(SettingError, match="'newest'"):
        load(path, repeats="newest")
    assert load([(1, 2), (2, 2)]).repeats_left_out == 0


def test_an_item_file_brings_titles_and_categories(tmp_path):
    table = write(tmp_path / "a.tsv", "alice\t007\nbob\t8\n")
    info = write(tmp_path / "places.csv", 'item_id,name,category\n007,"Bar, Blue",Bar|Night\n9,Elsewhere,Gym\n')
    data = load(table, item_file=info)
    assert data.titles.tolist() == ["Bar, Blue", ""]
    assert [data.categories.of(item) for item in range(2)] == [("Bar", "Night"), ()]
    with pytest.raises(BadFile):
        load(table, item_file=write(tmp_path / "prices.csv", "item_id,price\n007,3\n"))
    with pytest.raises(BadFile, match="no file"):
        load(table, item_file=tmp_path / "absent.csv")


def test_data_is_called_by_its_file(tmp_path):
    assert load(write(tmp_path / "mine.tsv", lines("\t"))).name == "mine"
    assert load(write(tmp_path / "packed.tsv.gz", gzip.compress(lines("\t").encode()))).name == "packed"
    assert load(movielens_csv(tmp_path / "ml-25m")).name == "ml-25m"


def test_known_names_are_looked_for_where_known_sets_are_installed(tmp_path, monkeypatch):
    movielens_dat(tmp_path / "ml-1m" / "ml-1m", "latin-1")
    monkeypatch.setenv("FEDERANK_DATA", str(tmp_path))
    assert load("ml-1m").name == "ml-1m"
    assert load("ml-1m").fingerprint == world().fingerprint
    with pytest.raises(DataError):
        load("ml-20m")


def test_the_city_is_always_there():
    assert load("city").n_users > 1
    with pytest.raises(SettingError, match="users"):
        load("city", users="who")


def test_an_unknown_name_is_answered_with_the_nearest_and_all_known_ones():
    with pytest.raises(UnknownDataset) as caught:
        load("ml1m")
    message = str(caught.value)
    assert "'ml1m'" in message
    assert "'ml-1m'" in message
    assert all(name in message for name in KNOWN)


def test_choices_that_would_do_nothing_are_refused(tmp_path):
    with pytest.raises(SettingError, match="users"):
        load(movielens_csv(tmp_path / "ml-25m"), users="userId")
    with pytest.raises(SettingError, match="delimiter"):
        load(parquet(tmp_path / "a.parquet"), delimiter=",")
    with pytest.raises(SettingError, match="header"):
        load(recbole(tmp_path), header=False)
    with pytest.raises(SettingError, match="header"):
        load(pl.DataFrame({"user": USERS, "item": ITEMS}), header=True)
    with pytest.raises(SettingError, match="times"):
        load((USERS, ITEMS), times=1)


@pytest.mark.slow
def test_reading_a_file_does_not_import_pandas(tmp_path):
    path = write(tmp_path / "a.tsv", lines("\t"))
    program = "import sys, federank; federank.load(sys.argv[1]); sys.exit('pandas' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program, str(path)], check=False).returncode == 0


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
