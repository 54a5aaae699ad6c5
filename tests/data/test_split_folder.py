"""A split on disk is the split that was written, or it is refused."""

import pytest

import federank as fr
from federank.data.split_files import write_split_folder
from federank.errors import DataError

DATA = fr.load([(user, item, 1 + (user * item) % 5, 100 * item + user) for user in range(6) for item in range(8)])


def written(folder, **settings):
    split = fr.split_temporal(DATA, test=0.25, validation=0.2)
    write_split_folder(folder, [split], {"fingerprint": DATA.fingerprint} | settings)
    return folder


def test_what_was_written_is_read_back(tmp_path):
    split = fr.read_split(str(written(tmp_path / "s", repeats_left_out=7)))
    again = fr.split_temporal(DATA, test=0.25, validation=0.2)
    for part in ("train", "validation", "test"):
        assert getattr(split, part).fingerprint == getattr(again, part).fingerprint
    assert split.train.repeats_left_out == 7


def test_a_fold_is_read_back(tmp_path):
    folds = fr.split_folds(DATA, 3, seed=2)
    write_split_folder(tmp_path / "s", folds, {"fingerprint": DATA.fingerprint})
    assert fr.read_split(tmp_path / "s" / "fold-2").test.fingerprint == folds[1].test.fingerprint
    with pytest.raises(DataError, match="1"):
        fr.read_split(tmp_path / "s")
    (tmp_path / "s" / "fold-3" / "test.tsv").write_bytes((tmp_path / "s" / "fold-1" / "test.tsv").read_bytes())
    with pytest.raises(DataError, match=r"test\.tsv"):
        fr.read_split(tmp_path / "s" / "fold-3")


@pytest.mark.parametrize(
    ("file", "before", "after"),
    [("train.tsv", "0\t0\t1.0\t0\n", ""), ("test.tsv", "0\t7\t1.0", "0\t7\t5.0"), ("train.tsv", "0\t0\t", "9\t0\t")],
    ids=["a row less", "another rating", "another user"],
)
def test_a_part_that_was_changed_is_refused(tmp_path, file, before, after):
    folder = written(tmp_path / "s")
    text = (folder / file).read_text()
    assert text.count(before) == 1
    (folder / file).write_text(text.replace(before, after))
    with pytest.raises(DataError, match=r"split\.json"):
        fr.read_split(folder)


def test_rows_that_change_parts_are_refused(tmp_path):
    folder = written(tmp_path / "s")
    train, test = (folder / "train.tsv").read_text(), (folder / "test.tsv").read_text()
    (folder / "train.tsv").write_text(test)
    (folder / "test.tsv").write_text(train)
    with pytest.raises(DataError):
        fr.read_split(folder)


def test_a_part_that_came_or_went_is_refused(tmp_path):
    folder = written(tmp_path / "s")
    (folder / "validation.tsv").unlink()
    with pytest.raises(DataError, match=r"validation\.tsv.*split\.json"):
        fr.read_split(folder)


def test_parts_without_a_record_are_taken_as_they_are(tmp_path):
    folder = written(tmp_path / "s")
    (folder / "split.json").unlink()
    (folder / "validation.tsv").unlink()
    split = fr.read_split(folder)
    assert split.validation is None
    assert len(split.test) == 12


@pytest.mark.parametrize("content", ["[", "[]", '{"format": "federank split", "rows": {}}'])
def test_a_record_that_cannot_be_read_is_refused(tmp_path, content):
    folder = written(tmp_path / "s")
    (folder / "split.json").write_text(content)
    with pytest.raises(DataError):
        fr.read_split(folder)


def test_a_foreign_record_beside_the_folder_is_ignored(tmp_path):
    folder = written(tmp_path / "s")
    (folder / "split.json").unlink()
    (tmp_path / "split.json").write_text("{}")
    assert len(fr.read_split(folder).test) == 12
