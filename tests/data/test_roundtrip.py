"""Whatever is written is read back the same; whatever is not a table ends in a sentence."""

import csv
import gzip
import io
import re
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from federank.data.interactions import Interactions
from federank.data.loading import load
from federank.data.split_files import write_tsv
from federank.errors import BadFile, FedeRankError

LAWS = settings(deadline=None, derandomize=True)
IDS = st.text("aZ019 -+.\"'\t\n\r,;|:#\\éß漢😀", min_size=1, max_size=6) | st.integers(-(2**63), 2**63 - 1).map(str)
RATINGS = st.floats(width=32, allow_nan=False, allow_infinity=False)
TIMES = st.integers(0, 4_102_444_799)
ROWS = st.lists(st.tuples(IDS, IDS, RATINGS, TIMES), min_size=2, max_size=12).filter(
    lambda rows: len({user for user, *_ in rows}) > 1
)


def typed(ids):
    """Numbers where all are written as numbers are, said in another way than the reader does."""
    whole = all(re.fullmatch(r"0|-?[1-9][0-9]*", i) and -(2**63) <= int(i) < 2**63 for i in ids)
    return [int(i) for i in ids] if whole else ids


def interactions(rows, columns):
    users, items, ratings, times = map(list, zip(*rows, strict=True))
    return Interactions.from_columns(
        typed(users), typed(items), ratings if columns > 2 else None, times if columns > 3 else None
    )


def written(rows, columns, delimiter, header, quoting):
    content = io.StringIO(newline="")
    writer = csv.writer(content, delimiter=delimiter, quoting=quoting)
    if header:
        writer.writerow(["user_id", "item_id", "rating", "timestamp"][:columns])
    writer.writerows([row[:columns] for row in rows])
    return content.getvalue().encode()


def loaded(name, content, **asked):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        return load(path, **asked)


@pytest.mark.slow
@LAWS
@given(
    rows=ROWS,
    columns=st.integers(2, 4),
    ending=st.sampled_from([("a.csv", ","), ("a.tsv", "\t")]),
    header=st.booleans(),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    packed=st.booleans(),
)
def test_a_table_is_read_as_it_was_written(rows, columns, ending, header, quoting, packed):
    name, delimiter = ending
    content = written(rows, columns, delimiter, header, quoting)
    data = loaded(f"{name}.gz", gzip.compress(content)) if packed else loaded(name, content)
    wanted = interactions(rows, columns)
    assert data.user_ids.tolist() == wanted.user_ids.tolist()
    assert data.item_ids.tolist() == wanted.item_ids.tolist()
    assert data.fingerprint == wanted.fingerprint


@pytest.mark.slow
@LAWS
@given(rows=ROWS, ratings=st.booleans(), times=st.booleans(), header=st.booleans())
def test_what_is_written_is_loaded_as_the_same_data(rows, ratings, times, header):
    users, items, marks, moments = map(list, zip(*rows, strict=True))
    data = Interactions.from_columns(typed(users), typed(items), marks if ratings else None, moments if times else None)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.tsv"
        write_tsv(data, path, header=header)
        # Without a header nothing tells times from ratings where there are only times.
        again = load(path, times=2) if times and not ratings and not header else load(path)
        assert [file.name for file in Path(folder).iterdir()] == ["a.tsv"]
    assert again.fingerprint == data.fingerprint


@pytest.mark.slow
@LAWS
@given(rows=ROWS, wrong=st.integers(0, 11), header=st.booleans(), blank=st.booleans())
def test_the_line_of_a_bad_rating_is_named(rows, wrong, header, blank):
    assume(wrong < len(rows) and (header or wrong > 0))
    table: list[tuple[Any, ...]] = list(rows)
    table[wrong] = (*rows[wrong][:2], "bad", 5)
    before = written(table[:wrong], 4, ",", header, csv.QUOTE_MINIMAL) + (b"\r\n" if blank else b"")
    content = before + written(table[wrong:], 4, ",", False, csv.QUOTE_MINIMAL)
    line = before.count(b"\n") + 1
    with pytest.raises(BadFile, match=rf"Line {line} of .*'bad' in column"):
        loaded("a.csv", content)


PIECES = st.sampled_from(
    [
        "1,2,3,4\n",
        "user,item\n",
        "a\tb\n",
        "1::2\n",
        '"',
        '""',
        ",",
        "\t",
        "\n",
        "\r\n",
        "é",
        "nan",
        "\x1f",
        " ",
        "-",
        "::",
    ]
)


@pytest.mark.slow
@settings(LAWS, max_examples=300)
@given(
    name=st.sampled_from(["a.csv", "a.tsv", "a.inter", "a.zip", "a.gz", "a"]),
    content=st.binary(max_size=60)
    | st.lists(PIECES | st.text(max_size=3), max_size=12).map(lambda p: "".join(p).encode()),
)
@example("a.tsv", b'"a b","c\nd",5\n"x",y,6\n""')
@example("a.csv", b'"a b",d",5\n"x",y,6\n')
@example("a.csv", b"1::\x1f2\n2::3\n")
@example("a.inter", b'"')
@example("a.zip", b"PK\x05\x06" + b"\0" * 18)
def test_anything_at_all_is_loaded_or_refused(name, content):
    try:
        said = repr(loaded(name, content)) + "."
    except FedeRankError as refusal:
        said = str(refusal)
    assert said.endswith(".")
    assert "\n" not in said


def test_stray_quotes_in_a_quoted_table_are_letters():
    data = loaded("a.csv", b'"a, b",7" single\n"c",half"\n')
    assert data.user_ids.tolist() == ["a, b", "c"]
    assert data.item_ids.tolist() == ['7" single', 'half"']


def test_a_file_is_replaced_entirely(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("old")
    write_tsv(Interactions.from_columns(["a", "b"], [1, 2], [3.5, 4]), path)
    assert path.read_text() == "user\titem\trating\na\t1\t3.5\nb\t2\t4.0\n"
