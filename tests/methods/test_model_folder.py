"""A model's folder: whole or refused, in one sentence, anyone who sent it."""

import hashlib
import json
import shutil

import numpy as np
import polars as pl
import pytest
from safetensors.numpy import load_file, save_file
from tests.worlds import two_tastes

from federank.data.splits import split_random
from federank.errors import FedeRankError, ModelError
from federank.methods.baselines.knn import UserKNN
from federank.methods.baselines.popular import MostPopular
from federank.methods.frugal.recommender import FCF
from federank.methods.model_folder import digest_of_description, is_model, load_model, load_split

WORLD = two_tastes()


@pytest.fixture
def folder(tmp_path):
    """A saved FCF model: it has shared and private arrays."""
    FCF(factors=3, rounds=2).fit(WORLD).save(tmp_path / "model")
    return tmp_path / "model"


def edit(folder, **changes):
    """Change entries of model.json; None takes one out."""
    told = json.loads((folder / "model.json").read_text())
    told = {name: value for name, value in (told | changes).items() if value is not None}
    told["digest"] = digest_of_description(told)
    (folder / "model.json").write_text(json.dumps(told))


def sign_anew(folder):
    """Make the digests match the files again, as someone who tampers with care would."""
    files = {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "model.json"
    }
    edit(folder, files=files)


def description(content):
    return lambda folder: (folder / "model.json").write_bytes(content)


def entries(**changes):
    return lambda folder: edit(folder, **changes)


def missing(name):
    return lambda folder: (folder / name).unlink()


def flipped(name):
    def change(folder):
        content = bytearray((folder / name).read_bytes())
        content[-1] ^= 1
        (folder / name).write_bytes(content)

    return change


def content(name, change):
    """Change a file's bytes, and make the digests match."""

    def changed(folder):
        (folder / name).write_bytes(change((folder / name).read_bytes()))
        sign_anew(folder)

    return changed


def arrays(name, change):
    def changed(folder):
        save_file(change(load_file(folder / name)), folder / name)
        sign_anew(folder)

    return changed


def table(name, change):
    def changed(folder):
        change(pl.read_parquet(folder / name)).write_parquet(folder / name)
        sign_anew(folder)

    return changed


def last_row(column, number):
    last = pl.int_range(pl.len()) == pl.len() - 1
    changed = pl.when(last).then(pl.lit(number, dtype=pl.Int32)).otherwise(pl.col(column)).alias(column)
    return table("training/rows.parquet", lambda rows: rows.with_columns(changed))


def with_value(name, value):
    def change(held):
        held[name][0, 0] = value
        return held

    return change


MODEL, DEVICES, ROWS = "model.safetensors", "devices.safetensors", "training/rows.parquet"
USERS, ITEMS = "training/users.parquet", "training/items.parquet"
DAMAGES = [  # a change of a folder, and the fact that the error names
    (missing("model.json"), "model.json"),
    (shutil.rmtree, ""),
    *((description(text), "") for text in (b"", b"{", b"\xff\xfe\x00", b'{"format": "federank-model"')),
    *((entries(format_version=version), str(version)) for version in (0, 2, "1", None)),
    *((entries(**{entry: None}), entry) for entry in ("kind", "settings", "files", "report")),
    *((missing(name), name) for name in (MODEL, DEVICES, ROWS)),
    *((flipped(name), name) for name in (MODEL, DEVICES, USERS)),
    *((content(MODEL, lambda held, keep=keep: held[:keep]), MODEL) for keep in (0, 4, 60)),
    *((arrays(MODEL, with_value("item_vectors", value)), "item_vectors") for value in (np.nan, np.inf, -np.inf)),
    (arrays(DEVICES, with_value("user_vectors", np.nan)), DEVICES),
    *(
        (arrays(MODEL, lambda _, shape=shape: {"item_vectors": np.zeros(shape, np.float32)}), "item_vectors")
        for shape in ((5, 3), (24, 4), (24,))
    ),
    *((last_row(*wrong), "rows.parquet") for wrong in (("user", 20), ("user", -1), ("item", 24), ("item", -1))),
    (content(ROWS, lambda _: b"user,item\n1,2\n"), ""),
    (table(USERS, lambda held: held.rename({"id": "name"})), ""),
    (table(USERS, lambda held: held.with_columns(pl.lit(1).alias("id"))), ""),
    (table(ITEMS, lambda held: held.with_columns(pl.col("id").cast(pl.Float64))), ""),
    (table(ROWS, lambda held: held.drop("user")), ""),
    (table(ROWS, lambda held: held.with_columns(pl.col("item").cast(pl.String))), ""),
    (entries(kind="nonsense"), "nonsense"),
    *(
        (entries(settings=wrong), "")
        for wrong in (
            {"factors": 0},
            {"factors": None},
            {"factors": "three"},
            {"learning_rate": [1]},
            {"colour": "red"},
            [1],
        )
    ),
    *((entries(**wrong), "") for wrong in ({"report": 3}, {"files": "none"}, {"data": 1})),
]


@pytest.mark.parametrize(("damage", "fact"), DAMAGES)
def test_a_damaged_folder_is_refused(folder, damage, fact):
    damage(folder)
    with pytest.raises(FedeRankError) as refusal:
        load_model(folder)
    assert fact in str(refusal.value)


@pytest.mark.parametrize("name", ["../outside", "training/../../outside"])
def test_a_name_that_leads_out_of_the_folder_is_refused(folder, name):
    outside = folder.parent / "outside"
    outside.write_bytes(b"not yours")
    edit(folder, files={name: hashlib.sha256(b"not yours").hexdigest()})
    with pytest.raises(ModelError):
        load_model(folder)


@pytest.mark.parametrize("content", ["[]", "{}", "not json", "3"])
def test_a_damaged_record_of_a_split_is_refused(tmp_path, content):
    split = split_random(WORLD)
    MostPopular().fit(split.train).save(tmp_path / "model", split)
    (tmp_path / "model" / "split" / "split.json").write_text(content)
    with pytest.raises(ModelError, match=r"split\.json"):
        load_split(tmp_path / "model")


def test_a_description_that_was_edited_is_noticed(folder):
    path = folder / "model.json"
    path.write_text(path.read_text().replace('"factors": 3', '"factors": 2'))
    with pytest.raises(ModelError, match=r"model\.json"):
        load_model(folder)


def test_a_model_is_not_saved_with_the_split_of_other_data(tmp_path):
    model = MostPopular().fit(WORLD)
    with pytest.raises(ModelError):
        model.save(tmp_path / "model", split_random(two_tastes(seed=5)))
    assert list(tmp_path.iterdir()) == []


def test_a_model_that_is_there_stays_if_it_is_not_to_be_replaced(folder):
    with pytest.raises(ModelError):
        MostPopular().fit(WORLD).save(folder, replaces=False)
    assert load_model(folder).name == "fcf"


@pytest.mark.parametrize("place", ["/proc/nope/model", "."])
def test_a_place_that_cannot_be_written_is_refused_at_once(place):
    with pytest.raises(ModelError):
        MostPopular().fit(WORLD).save(place)


def test_neighbours_outside_the_catalogue_are_refused(tmp_path):
    model = UserKNN(k=2).fit(WORLD)
    folder = tmp_path / "knn"
    model.save(folder)
    rows, similarities = model.neighbours
    for wrong in (rows + 100, rows.astype(np.int64), rows[:-1]):
        arrays = {"rows": np.ascontiguousarray(wrong), "similarities": similarities[: len(wrong)].copy()}
        save_file(arrays, folder / "model.safetensors")
        sign_anew(folder)
        with pytest.raises(ModelError, match="20"):
            load_model(folder)
    save_file({"rows": rows}, folder / "model.safetensors")
    sign_anew(folder)
    with pytest.raises(ModelError):
        load_model(folder)


def test_popularity_of_another_catalogue_is_refused(tmp_path):
    MostPopular().fit(WORLD).save(tmp_path / "model")
    save_file({"item_scores": np.zeros(7, dtype=np.float32)}, tmp_path / "model" / "model.safetensors")
    sign_anew(tmp_path / "model")
    with pytest.raises(ModelError):
        load_model(tmp_path / "model")


def test_a_model_keeps_its_report_its_data_and_its_split(tmp_path):
    split = split_random(WORLD, test=0.25, seed=4)
    model = FCF(factors=3, rounds=2).fit(split.train)
    model.save(tmp_path / "model", split)
    loaded = load_model(tmp_path / "model")
    assert loaded.report == model.report
    assert loaded.training.fingerprint == model.training.fingerprint
    kept = load_split(tmp_path / "model")
    assert kept.how == split.how
    assert kept.train.fingerprint == split.train.fingerprint
    assert kept.test.fingerprint == split.test.fingerprint


def test_saving_replaces_an_older_model_and_leaves_nothing_else(folder):
    MostPopular().fit(WORLD).save(folder)
    assert isinstance(load_model(folder), MostPopular)
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_what_is_not_a_model_is_never_overwritten(tmp_path, kind):
    target = tmp_path / "precious"
    if kind == "folder":
        target.mkdir()
        (target / "diary.txt").write_text("dear diary")
    else:
        target.write_text("dear diary")
    with pytest.raises(ModelError):
        MostPopular().fit(WORLD).save(target)
    kept = target / "diary.txt" if kind == "folder" else target
    assert kept.read_text() == "dear diary"
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]


def test_a_model_that_cannot_be_written_leaves_nothing_behind(tmp_path):
    model = MostPopular().fit(WORLD)
    model.report["secret"] = object()  # JSON cannot hold it, and that shows only after the arrays are written
    with pytest.raises(TypeError, match="cannot hold"):
        model.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_an_empty_folder_is_no_model(tmp_path):
    assert not is_model(tmp_path)
