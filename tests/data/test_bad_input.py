"""What cannot stand is refused in one sentence that names the file, the line and the column."""

import gzip
import io
import struct
import zipfile
from typing import Any

import numpy as np
import pandas
import polars as pl
import pytest

from federank.data.loading import load
from federank.errors import BadFile, DataError, FedeRankError, SettingError

HEADER = "user,item,rating,time\n"
GOOD = "1,10,4,1000\n2,10,5,1001\n"

TABLES: dict[str, tuple[str, bytes, tuple[str, ...]]] = {
    # what is wrong: the file's name, its content, and what the sentence must say
    "empty file": ("a.csv", b"", ("a.csv", "is empty")),
    "blank lines only": ("a.csv", b"\n \n\n", ("a.csv", "blank lines")),
    "header only": ("a.csv", HEADER.encode(), ("a.csv", "no rows")),
    "no delimiter": ("a.csv", b"hello\nworld\n", ("a.csv", "tab, comma")),
    "missing user column": ("a.csv", b"who,item\n1,2\n2,2\n", ("a.csv", "users", "'who', 'item'")),
    "missing item column": ("a.csv", b"user,what\n1,2\n2,2\n", ("a.csv", "items", "'user', 'what'")),
    "too many columns without header": ("a.csv", b"1,2,3,4,5\n2,2,3,4,5\n", ("a.csv", "5 columns and no header")),
    "rating that is a word": (
        "a.csv", f"{HEADER}{GOOD}3,10,good,1002\n".encode(), ("Line 4", "a.csv", "'good'", "'rating'", "finite number")
    ),
    "rating that is a word, without header": (
        "a.tsv", b"1\t10\t4\n2\t10\tbad\n", ("Line 2", "a.tsv", "'bad'", "column 3")
    ),
    "rating missing": ("a.csv", f"{HEADER}{GOOD}3,10,,1002\n".encode(), ("Line 4", "nothing", "'rating'")),
    "rating not a number": ("a.csv", f"{HEADER}{GOOD}3,10,NaN,1002\n".encode(), ("Line 4", "'NaN'", "'rating'")),
    "rating infinite": ("a.csv", f"{HEADER}3,10,-inf,1002\n{GOOD}".encode(), ("Line 2", "'-inf'", "'rating'")),
    "rating beyond all numbers": ("a.csv", f"{HEADER}{GOOD}3,10,1e400,1\n".encode(), ("Line 4", "'1e400'")),
    "time that is a word": (
        "a.csv", f"{HEADER}{GOOD}3,10,3,yesterday\n".encode(), ("Line 4", "'yesterday'", "'time'", "seconds since 1970")
    ),
    "date among seconds": ("a.csv", f"{HEADER}{GOOD}3,10,3,2012-04-03\n".encode(), ("Line 4", "same form")),
    "date that does not exist": (
        "a.tsv",
        b"user_id\tvenue_id\ttype\tutc\n1\ta\tGym\tTue Apr 03 18:00:12 +0000 2012\n"
        b"2\ta\tGym\tTue Apr 33 18:00:12 +0000 2012\n",
        ("Line 3", "Apr 33", "'utc'", "date"),
    ),
    "date before 1970": (
        "a.csv", f"{HEADER}1,10,3,1969-12-31\n2,10,3,2000-01-01\n".encode(), ("Line 2", "1970 to 2100")
    ),
    "negative time": ("a.csv", f"{HEADER}{GOOD}3,10,3,-5\n".encode(), ("Line 4", "'-5'", "1970 to 2100")),
    "time in milliseconds": (
        "a.csv", f"{HEADER}{GOOD}3,10,3,1333476012000\n".encode(), ("Line 4", "1970 to 2100", "milliseconds", "1000")
    ),
    "absurd time": ("a.csv", f"{HEADER}{GOOD}3,10,3,99999999999999999\n".encode(), ("Line 4", "1970 to 2100")),
    "time that is not a number": ("a.csv", f"{HEADER}{GOOD}3,10,3,nan\n".encode(), ("Line 4", "'nan'")),
    "user missing": ("a.csv", f"{HEADER}{GOOD},10,3,5\n".encode(), ("Line 4", "nothing", "'user'", "id of a user")),
    "item missing": ("a.csv", f'{HEADER}{GOOD}3,"",3,5\n'.encode(), ("Line 4", "nothing", "'item'", "id of an item")),
    "row too short": ("a.csv", f"{HEADER}{GOOD}3,10\n".encode(), ("Line 4", "2 columns", "header has 4")),
    "row too long": ("a.csv", f"{HEADER}{GOOD}3,10,3,5,6\n".encode(), ("Line 4", "5 columns", "header has 4")),
    "first row too long": ("a.csv", f"{HEADER}3,10,3,5,6\n{GOOD}".encode(), ("Line 2", "5 columns", "header has 4")),
    "first row too short": ("a.csv", f"{HEADER}3,10,3\n{GOOD}".encode(), ("Line 2", "3 columns", "header has 4")),
    "row too short in a column not read": (
        "a.csv", b"user,item,note\n1,10,x\n2,10\n3,10,\n", ("Line 3", "2 columns", "header has 3")
    ),
    "row too long, without header": ("a.csv", b"1,10\n2,10\n3,10,4\n", ("Line 3", "3 columns", "first line has 2")),
    "duplicate header": ("a.csv", b"user,item,user\n1,2,3\n2,2,3\n", ("a.csv", "'user'", "twice")),
    "duplicate RecBole header": (
        "a.inter", b"user_id:token\titem_id:token\titem_id:float\n1\t2\t3\n", ("a.inter", "'item_id'", "twice")
    ),
    "one user only": ("a.csv", f"{HEADER}1,10,4,1000\n1,11,4,1000\n".encode(), ("a.csv", "one user", "two users")),
    "Latin-1": ("a.csv", "user,item\nJosé,1\nAna,1\n".encode("latin-1"), ("Line 2", "a.csv", "UTF-8")),
    "Latin-1 far below": ("a.csv", b"user,item\n" + b"1,1\n2,2\n" * 50_000 + b"\xe9,1\n", ("Line 100002", "UTF-8")),
    "UTF-16": ("a.csv", (HEADER + GOOD).encode("utf-16"), ("a.csv", "UTF-16", "UTF-8")),
    "binary": ("a.csv", bytes(range(256)) * 20, ("a.csv", "binary")),
    "binary without a zero": ("a.csv", bytes(range(128, 256)) * 20, ("Line 1 of", "a.csv", "UTF-8")),
    "old Macintosh line ends": ("a.csv", (HEADER + GOOD).replace("\n", "\r").encode(), ("a.csv", "carriage return")),
    "quote that never closes": ("a.csv", f'{HEADER}{GOOD}"3,10,3,5\n{GOOD}'.encode(), ("line 4", "a.csv", "quot")),
    "text after a closing quote": ("a.csv", f'{HEADER}{GOOD}"3"x,10,3,5\n'.encode(), ("line 4", "a.csv", "quot")),
    "gzip cut short": ("a.csv.gz", gzip.compress((HEADER + GOOD * 99).encode())[:-12], ("a.csv.gz", "cut short")),
    "gzip cut to its first bytes": ("a.csv.gz", gzip.compress(b"1,2\n")[:5], ("a.csv.gz", "cut short")),
    "gzip damaged": ("a.csv.gz", gzip.compress(b"1,2\n2,2\n")[:-8] + b"12345678", ("a.csv.gz", "damaged")),
    "gzip of nothing": ("a.csv.gz", gzip.compress(b""), ("a.csv.gz", "empty")),
    "gzip of binary": ("a.csv.gz", gzip.compress(b"\0\1\2"), ("a.csv.gz", "binary")),
    "gzip bomb": ("a.csv.gz", gzip.compress(b"1,2\n" * (17 << 20), 1), ("a.csv.gz", "64 MiB", "refused")),
    "Parquet cut short": ("a.parquet", b"PAR1" + b"x" * 50, ("a.parquet", "Parquet", "cut short")),
    "Zstandard cut to its first bytes": ("a.zst", b"\x28\xb5\x2f\xfd\0", ("a.zst", "cut short")),
    "zip cut to its first bytes": ("a.zip", b"PK\x03\x04" + b"\0" * 30, ("a.zip", "cut short")),
}  # fmt: skip


@pytest.mark.parametrize(("name", "content", "said"), TABLES.values(), ids=TABLES)
def test_a_bad_file_is_refused(name, content, said, tmp_path):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError) as caught:
        load(path)
    message = str(caught.value)
    assert all(part in message for part in said), message
    assert message.endswith(".")
    assert message[0].isupper() or message.startswith(str(path))
    assert "\n" not in message
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_the_line_is_right_where_quoted_fields_and_blank_lines_come_before(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(f'\n{HEADER}"a\nb",10,4,1000\n\n"c",10,5,1000\nd,10,six,1000\n')
    with pytest.raises(BadFile, match=r"7.*'six'"):
        load(path)


def test_a_missing_file_is_named(tmp_path):
    for source in (tmp_path / "absent", str(tmp_path / "absent.csv"), "absent.csv", f"absent/{'x' * 5000}"):
        with pytest.raises(BadFile, match="absent"):
            load(source)


def test_a_wrong_delimiter_is_answered_with_a_likely_one(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("1\t2\n2\t2\n")
    with pytest.raises(BadFile, match=r"','.*'\\t'"):
        load(path, delimiter=",")
    for impossible in ("", '"', "\n"):
        with pytest.raises(SettingError, match="cut at"):
            load(path, delimiter=impossible)


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        ({"users": "absent"}, "'absent' for users.*'user', 'item', 'rating', 'time'"),
        ({"ratings": 4}, "no column 4 for ratings.*0 to 3"),
        ({"times": -1}, "no column -1"),
        ({"users": "item"}, "chosen twice"),
        ({"users": False}, "users=False"),
        ({"ratings": True}, "ratings=True"),
        ({"ratings": "rating", "header": False}, "no header.*'rating'"),
    ],
)
def test_a_choice_of_columns_that_cannot_be_met_is_refused(choice, said, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(HEADER + GOOD)
    with pytest.raises(FedeRankError, match=said):
        load(path, **choice)


def archive(path, members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in members.items():
            packed.writestr(name, content)
    return path


@pytest.mark.parametrize("name", ["../a.csv", "in/../../a.csv", "/etc/a.csv", "..\\a.csv", "C:\\a.csv", "C:/a.csv"])
def test_a_zip_with_a_name_that_points_outside_is_refused(name, tmp_path):
    path = archive(tmp_path / "a.zip", {"b.csv": b"1,2\n2,2\n", name: b"1,2\n2,2\n"})
    with pytest.raises(BadFile, match="outside"):
        load(path)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("keep", [0.3, 0.9, 0.99])
def test_a_zip_cut_short_is_refused(keep, tmp_path):
    whole = archive(tmp_path / "a.zip", {"a.csv": b"1,2\n2,2\n" * 1000}).read_bytes()
    (tmp_path / "a.zip").write_bytes(whole[: int(len(whole) * keep)])
    with pytest.raises(BadFile, match=r"a\.zip"):
        load(tmp_path / "a.zip")


def test_a_zip_whose_content_was_changed_is_refused(tmp_path):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as packed:
        packed.writestr("a.csv", b"1,2\n2,2\n")
    path.write_bytes(path.read_bytes().replace(b"1,2\n", b"1,3\n"))
    with pytest.raises(BadFile, match="damaged"):
        load(path)


def test_a_zip_bomb_is_refused_before_it_is_unpacked(tmp_path):
    path = archive(tmp_path / "a.zip", {"a.csv": b"1,2\n" * (17 << 20)})
    with pytest.raises(BadFile, match="64"):
        load(path)


def test_a_zip_that_lies_about_its_size_is_refused(tmp_path):
    path = archive(tmp_path / "a.zip", {"a.csv": b"1,2\n2,2\n" * 1000})
    whole = path.read_bytes()
    path.write_bytes(whole.replace(struct.pack("<I", 8000), struct.pack("<I", 12)))
    with pytest.raises(BadFile, match="damaged"):
        load(path)


def test_a_locked_zip_is_refused(tmp_path):
    path = archive(tmp_path / "a.zip", {"a.csv": b"1,2\n2,2\n"})
    whole = bytearray(path.read_bytes())
    whole[whole.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(whole)
    with pytest.raises(BadFile, match="password"):
        load(path)


def test_a_folder_or_zip_without_a_known_set_says_what_it_holds(tmp_path):
    with pytest.raises(BadFile, match="only nothing"):
        load(tmp_path)
    (tmp_path / "letter.doc").write_text("Dear")
    with pytest.raises(BadFile, match=r"letter\.doc"):
        load(tmp_path)
    with pytest.raises(BadFile, match=r"only b\.doc"):
        load(archive(tmp_path / "a.zip", {"b.doc": b"Dear"}))
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text(HEADER + GOOD)
    with pytest.raises(BadFile, match=r"a\.csv.*b\.csv"):
        load(tmp_path)


def zstandard(content):
    packed = io.BytesIO()
    pl.scan_lines(content.encode()).sink_csv(packed, include_header=False, quote_style="never", compression="zstd")
    return packed.getvalue()


@pytest.mark.slow
def test_a_zstandard_file_cut_short_or_too_large_is_refused(tmp_path):
    path = tmp_path / "a.tsv.zst"
    whole = zstandard("".join(f"{row % 997}\t{row}\n" for row in range(50_000)))
    for cut in (len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:cut])
        with pytest.raises(BadFile, match=r"a\.tsv"):
            load(path)
    path.write_bytes(zstandard("1,2\n" * (17 << 20)))
    with pytest.raises(BadFile, match="64"):
        load(path)


MEMORY: dict[str, tuple[Any, str]] = {
    "mixed ids": (([1, "2"], [1, 1]), "'user' mixes types .int and str."),
    "mixed ids in a frame": (lambda: pandas.DataFrame({"user": [1, "2"], "item": [1, 1]}), "'user' mixes types"),
    "mixed ids in an array": ((np.array([1, "2"], object), [1, 1]), "'user' mixes types"),
    "ids that are fractions": (([1.5, 2.5], [1, 1]), "user ids are of type Float64"),
    "missing id": (([None, "2"], [1, 1]), "The data has nothing in row 1 of column 'user'"),
    "missing id in pandas": (
        lambda: pandas.DataFrame({"user": ["a", None], "item": [1, 1]}),
        "nothing in row 2 of column 'user'",
    ),
    "missing id in Polars": (pl.DataFrame({"user": [1, 2], "item": [None, "a"]}), "nothing in row 1 of column 'item'"),
    "ids beyond 64 bits": (([2**70, 1], [1, 1]), "'user'.*make these ids text"),
    "ids beyond 128 bits": (([2**130, 1], [1, 1]), "'user'.*make them text"),
    "ids beyond 63 bits": ((np.array([2**63, 1], np.uint64), [1, 1]), "'user'.*make these ids text"),
    "rating that is no number": (([1, 2], [1, 1], [3, float("nan")]), "nan in row 2 of column 'rating'.*finite"),
    "rating that is a word": (([1, 2], [1, 1], ["3", "good"]), "'good' in row 2 of column 'rating'.*finite"),
    "time before 1970": (([1, 2], [1, 1], [3, 4], [5, -6]), "-6 in row 2 of column 'time'.*1970"),
    "time in milliseconds": (([1, 2], [1, 1], [3, 4], [5, 1333476012000]), "in row 2 .*divide them by 1000"),
    "time that is a word": (([1, 2], [1, 1], [3, 4], ["2012-04-03", "once"]), "'once' in row 2"),
    "columns of different lengths": (([1, 2], [1]), "2 of user, 1 of item"),
    "one column": (([1, 2],), "1 columns"),
    "a vector": (np.array([1, 2]), "1 dimensions"),
    "nothing": (([], []), "no rows"),
    "an empty frame": (pl.DataFrame({"user": [], "item": []}), "no rows"),
    "a frame without users": (pl.DataFrame({"who": [1], "item": [1]}), "users: its columns are 'who', 'item'"),
    "one user": (([1, 1], [1, 2]), "one user only, 1"),
    "a number": (7, "A int cannot be loaded"),
}


@pytest.mark.parametrize(("source", "said"), MEMORY.values(), ids=MEMORY)
def test_bad_data_in_memory_is_refused(source, said):
    with pytest.raises(DataError, match=said):
        load(source() if callable(source) else source)


def test_bad_parquet_is_refused_by_row(tmp_path):
    path = tmp_path / "a.parquet"
    pl.DataFrame({"user": [1, 2], "item": [1, 1], "rating": [1.0, float("inf")]}).write_parquet(path)
    with pytest.raises(BadFile, match=r"a\.parquet.*2.*'rating'"):
        load(path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(BadFile):
        load(path)


def test_an_item_file_that_breaks_its_format_is_refused(tmp_path):
    table = tmp_path / "a.csv"
    table.write_text(HEADER + GOOD)
    items = tmp_path / "items.csv"
    for content, said in {
        "item_id,title\n10,Amélie\n11\n": r"Line 3 of .*items\.csv has 1 columns.* has 2;",
        "thing,title,user\n10,Amélie,1\n": "none is known to hold item ids",
        "1,2\n3,4\n": "is not a file of items",
    }.items():
        items.write_text(content)
        with pytest.raises(BadFile, match=said):
            load(table, item_file=items)
