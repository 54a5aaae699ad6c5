"""Files of recommendations: what is written is read back, and what does not fit is refused with its line."""

import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import federank as fr
from federank.data.interactions import Interactions
from federank.errors import BadFile, DataError
from federank.methods.recommendations import Recommendations, match_ids, read_recommendations

TEXT = np.dtypes.StringDType()


def table_of(user_ids, item_ids, lists, score=lambda place: 2.0 - place):
    items = np.full((len(lists), max(map(len, lists))), -1, dtype=np.int32)
    scores = np.full(items.shape, -np.inf, dtype=np.float32)
    for row, numbers in enumerate(lists):
        items[row, : len(numbers)] = numbers
        scores[row, : len(numbers)] = [score(place) for place in range(len(numbers))]
    return Recommendations(user_ids, items, scores, item_ids)


some_text = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=30)
check_ints = st.integers(-(2**40), 2**40)


@st.composite
def recommendations(draw):
    kind = draw(st.sampled_from([some_text, check_ints]))
    users, items = (draw(st.lists(kind, min_size=1, max_size=6, unique=True)) for _ in range(2))
    dtype = np.int64 if kind is check_ints else TEXT
    numbers = range(len(items))
    lists = [draw(st.lists(st.sampled_from(numbers), min_size=1, unique=True)) for _ in users]
    tied = draw(st.booleans())
    return table_of(
        np.array(users, dtype=dtype),
        np.array(items, dtype=dtype),
        lists,
        score=lambda place: 0.5 if tied else 1 / (place + 3),
    )


@pytest.mark.slow
@given(made=recommendations())
def test_what_is_written_is_read_back_in_the_same_order(made, tmp_path_factory):
    path = tmp_path_factory.mktemp("lists") / "lists.tsv"
    made.write(path)
    read = read_recommendations(path)
    assert [(str(user), str(item), score) for user, item, score in read.rows()] == [
        (str(user), str(item), score) for user, item, score in made.rows()
    ]


def test_the_file_has_three_columns_and_no_header(tmp_path):
    table_of(np.array([7, 3]), np.array([10, 20]), [[1, 0], [0]]).write(tmp_path / "lists.tsv")
    assert (tmp_path / "lists.tsv").read_text() == "7\t20\t2.0\n7\t10\t1.0\n3\t10\t2.0\n"


def test_the_higher_score_comes_first_and_of_equal_ones_the_earlier_line(tmp_path):
    path = tmp_path / "lists.tsv"
    path.write_text("a\tx\t1\nb\ty\t5\na\ty\t3\na\tw\t1\n")
    read = read_recommendations(path)
    assert list(read.rows()) == [("a", "y", 3.0), ("a", "x", 1.0), ("a", "w", 1.0), ("b", "y", 5.0)]


def test_ids_with_leading_zeros_stay_text(tmp_path):
    path = tmp_path / "lists.tsv"
    path.write_text("007\t1\t1\n8\t2\t1\n")
    read = read_recommendations(path)
    assert read.users.tolist() == ["007", "8"]
    assert read.item_ids.tolist() == [1, 2]


def test_windows_line_ends_blank_lines_and_gzip_are_read(tmp_path):
    path = tmp_path / "lists.tsv.gz"
    path.write_bytes(gzip.compress(b"a\tx\t1\r\n\r\nb\ty\t2\r\n"))
    assert list(read_recommendations(path).rows()) == [("a", "x", 1.0), ("b", "y", 2.0)]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"\n\n", "blank lines only"),
        (b"a\tx\t1\nb\ty\n", "Line 2 .* has 2 columns; three columns"),
        (b"a\tx\t1\n\nb\ty\t1\t9\n", "Line 3 .* has 4 columns"),
        (b"a x 1\n", "Line 1 .* has 1 column;"),
        (b"user\titem\tscore\na\tx\t1\n", "Line 1 .* the score 'score'.*If it is a header, remove it"),
        (b"a\tx\t1\nb\ty\tmany\n", r"Line 2 .* the score 'many', which is not a number\.$"),
        (b"a\tx\tNaN\n", "Line 1 .* the score 'NaN'"),
        (b"a\tx\t1\n\ty\t1\n", "Line 2 .* lacks its user or its item"),
        (b"a\tx\t2\nb\tx\t2\na\tx\t1\n", "Line 3 .* recommends item x to user a a second time"),
        (b"a\t\xff\t1\n", "not UTF-8"),
        (b"a\tx\t1\n\x00\x00", "binary"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(tmp_path, content, words):
    path = tmp_path / "lists.tsv"
    path.write_bytes(content)
    with pytest.raises(BadFile, match=words):
        read_recommendations(path)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("zoe\tx\t1", "Line 2 .* names the user 'zoe', which the data do not have; a known one is ann"),
        (
            "ann\tzebra\t1",
            "Line 2 .* names the item 'zebra', which the data do not have.*1 of the file's 2 items are unknown",
        ),
    ],
)
def test_ids_that_the_data_do_not_know_are_refused_with_their_line(tmp_path, line, words):
    known = Interactions.from_columns(["ann", "bob"], ["x", "y"])
    path = tmp_path / "lists.tsv"
    path.write_text(f"bob\tx\t1\n{line}\n")
    with pytest.raises(BadFile, match=words):
        read_recommendations(path, known=known)


def test_an_id_with_a_tab_is_refused_and_nothing_written(tmp_path):
    odd = table_of(np.array(["a\tb"], dtype=TEXT), np.array(["x"], dtype=TEXT), [[0]])
    with pytest.raises(BadFile):
        odd.write(tmp_path / "lists.tsv")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("text_ids", [True, False])
@pytest.mark.parametrize("text_known", [True, False])
def test_ids_are_matched_by_what_is_written(text_ids, text_known):
    ids, known = np.array([30, 10**18, 7, 4]), np.array([4, 30, 10**18])
    found = match_ids(ids.astype(TEXT) if text_ids else ids, known.astype(TEXT) if text_known else known)
    assert found.tolist() == [1, 2, -1, 0]


@pytest.mark.parametrize("name", ["lists.csv", "lists.parquet", "lists.json", "lists.tsv", "lists"])
def test_a_file_is_what_its_name_says_and_is_read_back(tmp_path, name):
    model = fr.MostPopular().fit(fr.load([("ann", 1), ("ann", 2), ("bob", 2), ("bob", 3), ("cid", 4)]))
    lists = model.recommend(n=3)
    lists.write(tmp_path / name)
    back = read_recommendations(tmp_path / name, known=model.training)
    assert list(back.rows()) == [(user, item, pytest.approx(score)) for user, item, score in lists.rows()]
    content = (tmp_path / name).read_bytes()
    beginning = {".csv": b"user,item,score\n", ".parquet": b"PAR1", ".json": b"[{"}.get(
        (tmp_path / name).suffix, b"ann\t"
    )
    assert content.startswith(beginning)


def test_a_file_that_is_not_what_its_name_says_is_refused(tmp_path):
    (tmp_path / "lists.parquet").write_text("ann\t3\t2.0\n")
    with pytest.raises(BadFile, match=r"lists\.parquet"):
        read_recommendations(tmp_path / "lists.parquet")
    (tmp_path / "lists.csv").write_text("ann\t3\t2.0\nbob\t1\t1.0\n")
    with pytest.raises(DataError):
        read_recommendations(tmp_path / "lists.csv")
    (tmp_path / "lists.csv").write_text("user,item,score\nann,3,high\n")
    with pytest.raises(DataError, match=r"lists\.csv"):
        read_recommendations(tmp_path / "lists.csv")
