"""A model's folder: whole or refused, in one sentence, anyone who sent it."""

import hashlib
import json

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


def test_a_folder_without_a_description_is_no_model(tmp_path):
    with pytest.raises(ModelError, match=r"model\.json"):
        load_model(tmp_path)
    assert not is_model(tmp_path)


def test_a_folder_that_is_not_there_is_no_model(tmp_path):
    with pytest.raises(ModelError):
        load_model(tmp_path / "nowhere")


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe\x00", b'{"format": "federank-model"'])
def test_a_damaged_description_is_refused(folder, content):
    (folder / "model.json").write_bytes(content)
    with pytest.raises(ModelError):
        load_model(folder)


@pytest.mark.parametrize("version", [0, 2, "1", None])
def test_another_version_of_the_format_is_named(folder, version):
    edit(folder, format_version=version)
    with pytest.raises(ModelError, match=f"is of format {version}, and this version reads format 1"):
        load_model(folder)


@pytest.mark.parametrize("entry", ["kind", "settings", "files", "report"])
def test_a_description_that_lacks_an_entry_is_refused(folder, entry):
    edit(folder, **{entry: None})
    with pytest.raises(ModelError, match=f"lacks {entry}; it was changed or damaged"):
        load_model(folder)


@pytest.mark.parametrize("name", ["model.safetensors", "devices.safetensors", "training/rows.parquet"])
def test_a_missing_file_is_named(folder, name):
    (folder / name).unlink()
    with pytest.raises(ModelError, match=f"{name} is missing; the model is incomplete"):
        load_model(folder)


@pytest.mark.parametrize("name", ["model.safetensors", "devices.safetensors", "training/users.parquet"])
def test_a_changed_byte_is_noticed(folder, name):
    content = bytearray((folder / name).read_bytes())
    content[-1] ^= 1
    (folder / name).write_bytes(content)
    with pytest.raises(ModelError, match=f"{name} is not the file that was saved: its digest differs"):
        load_model(folder)


@pytest.mark.parametrize("keep", [0, 4, 60])
def test_a_truncated_array_file_with_a_matching_digest_is_refused(folder, keep):
    content = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(content[:keep])
    sign_anew(folder)
    with pytest.raises(ModelError, match=r"model\.safetensors"):
        load_model(folder)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("file", ["model.safetensors", "devices.safetensors"])
def test_values_that_are_not_finite_are_refused(folder, file, value):
    arrays = load_file(folder / file)
    arrays = load_file(folder / file)
    name = "item_vectors" if file == "model.safetensors" else "user_vectors"
    arrays[name][0, 0] = value
    save_file(arrays, folder / file)
    sign_anew(folder)
    with pytest.raises(ModelError, match=f"{file} has values in '{name}' that are not finite numbers"):
        load_model(folder)


@pytest.mark.parametrize("shape", [(5, 3), (24, 4), (24,)])
def test_arrays_of_another_shape_are_refused(folder, shape):
    save_file({"item_vectors": np.zeros(shape, dtype=np.float32)}, folder / "model.safetensors")
    sign_anew(folder)
    with pytest.raises(ModelError, match=r"item_vectors.*24.*3"):
        load_model(folder)


@pytest.mark.parametrize("name", ["../outside", "training/../../outside"])
def test_a_name_that_leads_out_of_the_folder_is_refused(folder, name):
    outside = folder.parent / "outside"
    outside.write_bytes(b"not yours")
    edit(folder, files={name: hashlib.sha256(b"not yours").hexdigest()})
    with pytest.raises(ModelError):
        load_model(folder)


@pytest.mark.parametrize(("column", "number"), [("user", 20), ("user", -1), ("item", 24), ("item", -1)])
def test_training_rows_that_name_no_user_are_refused(folder, column, number):
    path = folder / "training" / "rows.parquet"
    rows = pl.read_parquet(path)
    last = pl.int_range(pl.len()) == pl.len() - 1
    changed = pl.when(last).then(pl.lit(number, dtype=pl.Int32)).otherwise(pl.col(column)).alias(column)
    rows.with_columns(changed).write_parquet(path)
    sign_anew(folder)
    with pytest.raises(ModelError, match=r"rows\.parquet"):
        load_model(folder)


def test_training_rows_that_are_no_parquet_are_refused(folder):
    (folder / "training" / "rows.parquet").write_bytes(b"user,item\n1,2\n")
    sign_anew(folder)
    with pytest.raises(ModelError):
        load_model(folder)


def test_settings_that_the_method_does_not_know_are_named(folder):
    edit(folder, settings={"factors": 3, "colour": "red"})
    with pytest.raises(ModelError):
        load_model(folder)


@pytest.mark.parametrize("changes", [{"kind": "nonsense"}, {"settings": {"factors": 0}}])
def test_a_kind_or_a_setting_that_cannot_be_is_an_error(folder, changes):
    edit(folder, **changes)
    with pytest.raises(FedeRankError, match=r"nonsense|0"):
        load_model(folder)


@pytest.mark.parametrize("changes", [{"settings": [1]}, {"report": 3}, {"files": "none"}, {"data": 1}])
def test_an_entry_of_another_kind_is_refused(folder, changes):
    edit(folder, **changes)
    with pytest.raises(ModelError):
        load_model(folder)


@pytest.mark.parametrize("settings", [{"factors": None}, {"factors": "three"}, {"learning_rate": [1]}])
def test_a_setting_of_another_kind_is_an_error(folder, settings):
    edit(folder, settings=settings)
    with pytest.raises(FedeRankError):
        load_model(folder)


@pytest.mark.parametrize(
    ("file", "change"),
    [
        ("training/users.parquet", lambda table: table.rename({"id": "name"})),
        ("training/users.parquet", lambda table: table.with_columns(pl.lit(1).alias("id"))),
        ("training/items.parquet", lambda table: table.with_columns(pl.col("id").cast(pl.Float64))),
        ("training/rows.parquet", lambda table: table.drop("user")),
        ("training/rows.parquet", lambda table: table.with_columns(pl.col("item").cast(pl.String))),
    ],
)
def test_a_table_that_is_not_as_it_was_written_is_refused(folder, file, change):
    change(pl.read_parquet(folder / file)).write_parquet(folder / file)
    sign_anew(folder)
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
