"""MovieLens 100K's published folds are rows of the whole set, and a copy in which they are not is refused."""

from pathlib import Path

import numpy as np
import pytest

from federank.data.loading import load
from federank.data.sources.formats.movielens_folds import read_movielens_folds
from federank.errors import BadFile

ROWS = [f"{user}\t{item}\t{1 + (user + item) % 5}\t{1000 + user}" for user in (3, 1, 2) for item in (7, 5, 6, 9, 8)]


@pytest.fixture
def movielens(tmp_path: Path) -> Path:
    folder = tmp_path / "ml-100k"
    folder.mkdir()
    (folder / "u.data").write_text("\n".join(ROWS) + "\n")
    (folder / "u.item").write_text("".join(f"{item}|Film {item}|||{'|0' * 19}\n" for item in (5, 6, 7, 8, 9)))
    for number in range(5):
        test = ROWS[number::5]
        (folder / f"u{number + 1}.base").write_text("\n".join(row for row in ROWS if row not in test) + "\n")
        (folder / f"u{number + 1}.test").write_text("\n".join(test) + "\n")
    return folder


def test_each_fold_holds_the_rows_of_its_files(movielens: Path) -> None:
    whole = load(movielens)
    for number, (base, test) in enumerate(read_movielens_folds(movielens)):
        assert len(base) == 12
        listed = {tuple(map(int, row.split("\t")[:2])) for row in ROWS[number::5]}
        assert set(zip(test.user_ids[test.users], test.item_ids[test.items], strict=True)) == listed
        assert np.array_equal(test.item_ids, whole.item_ids)
        assert base.titles is not None
        assert base.titles[0] == "Film 5"


def test_a_row_in_both_parts_is_refused(movielens: Path) -> None:
    (movielens / "u3.base").write_text("\n".join(ROWS) + "\n")
    with pytest.raises(BadFile, match=r"Fold u3 .* 15 and 3 of 15"):
        read_movielens_folds(movielens)


def test_a_row_moved_for_another_is_refused(movielens: Path) -> None:
    rows = (movielens / "u2.base").read_text().splitlines()
    tested = (movielens / "u2.test").read_text().splitlines()
    (movielens / "u2.base").write_text("\n".join([*rows[1:], tested[0]]) + "\n")
    with pytest.raises(BadFile, match=r"Fold u2 .* does not part"):
        read_movielens_folds(movielens)


def test_a_rating_that_the_whole_does_not_have_is_refused(movielens: Path) -> None:
    (movielens / "u5.test").write_text("1\t999\t3\t1000\n2\t5\t3\t1000\n3\t5\t3\t1000\n")
    with pytest.raises(BadFile, match=r"u5\.test .* does not have"):
        read_movielens_folds(movielens)


def test_a_missing_fold_is_named(movielens: Path) -> None:
    (movielens / "u4.test").unlink()
    with pytest.raises(BadFile, match=r"no file u4\.test"):
        read_movielens_folds(movielens)


def test_another_set_has_no_folds(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1,2\n2,2\n")
    for source in (tmp_path, tmp_path / "a.csv"):
        with pytest.raises(BadFile, match="not MovieLens 100K"):
            read_movielens_folds(source)
