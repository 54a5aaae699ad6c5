"""The store's guarantees about uploads, rounds and versions, on both databases."""

import base64
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.service.federations import FPL_SERVER, ITEMS, establish_small, opened, small_world, some_update

import federank as fr
from federank.errors import ModelError
from federank.federation.defences import shortened
from federank.federation.server import Content, Published
from federank.federation.wire import encode
from federank.methods.fpl.method import FPL, FPLUpdate
from federank.methods.fpl.settings import FPLSettings, recipe_for
from federank.methods.fpl.simulation import Federation
from federank.service.server.bootstrap import establish, renew_admin_token
from federank.service.server.config import read_config
from federank.service.server.model_versions import EncodedRows, first_model
from federank.service.server.settings import RoundSettings
from federank.service.server.store import versions
from federank.service.server.store.database import Database, StoreAway, StoreError, without_password
from federank.service.server.store.queries import (
    Upload,
    close_round,
    count_reports,
    enrol,
    keep_upload,
    open_round,
    put_value,
)
from federank.service.server.store.schema import SCHEMA, create_tables
from federank.service.server.tickets import TICKET_BYTES, make_ticket, read_ticket

KEY = b"k" * 32
FIGURES = {"drift": 0.0, "seconds": 0.0}


@pytest.fixture
def database(store):
    establish_small(store)
    database = Database(store)
    yield database
    database.close()


def upload(seed, device="d", number=0, version=0):
    body = encode(some_update(seed))
    return Upload(device, make_ticket(KEY, device, number, version), bytes([seed] * 32), body, 0)


def keep(connection, *uploads):
    with connection.transaction():
        return [keep_upload(connection, each)[0] for each in uploads]


def moved(model, rows=slice(None)):
    """The next version, in which some rows are others."""
    vectors = model.vectors.copy()
    vectors[rows] += 1
    return model.followed_by(Content({**model.content.tables, "vectors": vectors}))


def play_rounds(connection, count, following):
    """Rounds of one upload each; `following(model, number)` is the next version."""
    model = versions.newest_model(connection)
    enrol(connection, "d", b"hash")
    for number in range(count):
        open_round(connection, number, model.version)
        assert keep(connection, upload(number + 1, number=number, version=model.version)) == ["stored"]
        close_round(connection, number, 1)
        model = following(model, number)
        versions.publish(connection, number, model, FIGURES, False)
    return model


def test_tables_are_created_once(store):
    created = []

    def open_store():
        with opened(store) as connection:
            created.append(create_tables(connection))

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: open_store(), range(4)))
    assert sorted(created) == [False, False, False, True]


@pytest.mark.usefixtures("synchronised")
def test_commits_wait_for_the_disk(sqlite_store):
    with closing(Database(sqlite_store)) as database, database.connection() as connection:
        assert connection.one("PRAGMA synchronous") == (2,)


def test_connections_are_released_after_the_store_is_closed(sqlite_store):
    database = Database(sqlite_store)
    with database.connection():
        pass
    database.close()
    database.release()


def test_new_file_is_opened_by_many_at_once(tmp_path):
    def looked_into(path):
        with opened(f"sqlite:///{path}") as connection:
            create_tables(connection)

    with ThreadPoolExecutor(6) as threads:
        for number in range(60):
            list(threads.map(looked_into, [tmp_path / f"{number}.sqlite"] * 6))


@pytest.mark.parametrize("name", ["federank server 0", "federank helper 1"])
def test_store_of_another_format_is_refused_and_unchanged(database, name):
    with database.connection() as connection:
        enrol(connection, "d", b"hash")
        connection.run("UPDATE store_format SET name = ?", name)
        with pytest.raises(StoreError, match=name):
            create_tables(connection)
        assert connection.all("SELECT client FROM clients") == [("d",)]


def test_a_failed_creation_leaves_the_store_empty(store):
    with opened(store) as connection:
        with pytest.raises(Exception, match="nonsense"):
            create_tables(connection, [*SCHEMA, "nonsense"])
        assert create_tables(connection)


def test_upload_is_stored_once_in_an_open_round(database):
    with database.connection() as connection:
        enrol(connection, "d", b"hash")
        assert keep(connection, upload(1)) == ["late"], "no round has begun"
        open_round(connection, 0, 0)
        assert keep(connection, upload(1), upload(1), upload(2)) == ["stored", "again", "repeated"]
        assert keep(connection, upload(3, device="left long ago")) == ["gone"]
        assert close_round(connection, 0, 1) == 1
        assert keep(connection, upload(1), upload(4, number=1)) == ["again", "late"]


def test_a_transaction_that_fails_stores_nothing(database):
    with database.connection() as connection:
        enrol(connection, "d", b"hash")
        open_round(connection, 0, 0)
        with suppress(ZeroDivisionError), connection.transaction():
            assert keep_upload(connection, upload(1))[0] == "stored"
            raise ZeroDivisionError
        assert count_reports(connection, 0) == 0


def test_a_round_is_folded_exactly_once(database):
    with database.connection() as connection:
        enrol(connection, "d", b"hash")
        open_round(connection, 0, 0)
        keep(connection, upload(1))
        close_round(connection, 0, 1)
        model = versions.newest_model(connection)
        after = moved(model)
        versions.publish(connection, 0, after, FIGURES, True)
        with pytest.raises(versions.Overtaken):
            versions.publish(connection, 0, after, FIGURES, True)
        assert versions.newest_model(connection).version == 1
        assert connection.all("SELECT version FROM versions ORDER BY version") == [(0,), (1,)]


@pytest.mark.slow
def test_closing_a_round_waits_for_uploads_being_stored(postgresql_server):
    """Only PostgreSQL lets two transactions write at once."""
    address = postgresql_server.database()
    establish_small(address)
    reports = []
    with opened(address) as connection, opened(address) as other:
        enrol(connection, "d", b"hash")
        open_round(connection, 0, 0)
        closing = threading.Thread(target=lambda: reports.append(close_round(other, 0, 1)))
        with connection.transaction():
            assert keep_upload(connection, upload(1))[0] == "stored"
            closing.start()
            closing.join(0.3)
            assert closing.is_alive(), "the round is held open by the upload"
        closing.join()
    assert reports == [1]


def test_versions_are_recomputed_from_changes(database, monkeypatch):
    monkeypatch.setattr(versions, "FULL_MODEL_EVERY", 4)
    rng = np.random.default_rng(1)
    with database.connection() as connection:
        first = versions.newest_model(connection)
        followers = [first]

        def following(model, number):
            if number % 3 == 1:
                followers.append(versions.newest_model(connection, followers[-1]))
            return moved(model, rng.integers(ITEMS))

        model = play_rounds(connection, 11, following)
        others = [versions.newest_model(connection, known) for known in (None, first, followers[-1])]
        kept = [version for (version,) in connection.all("SELECT version FROM versions ORDER BY version")]
    for other in others:
        assert other.version == model.version == 11
        assert np.array_equal(other.vectors, model.vectors)
        assert np.array_equal(other.changed, model.changed)
    assert kept == [0, 4, 5, 6, 7, 8, 9, 10, 11], "what is older than the last but one full model is dropped"


@given(st.lists(st.sets(st.integers(0, ITEMS - 1)), max_size=8), st.integers(-2, 10))
def test_rows_since_a_version_are_those_that_differ(steps, since):
    model = first_model(Content({"vectors": np.zeros((ITEMS, 1), np.float32), "biases": np.zeros(ITEMS, np.float32)}))
    history = [model]
    for rows in steps:
        biases = model.content.tables["biases"].copy()
        biases[list(rows)] += 1
        model = model.followed_by(Content({"vectors": model.vectors, "biases": biases}))
        history.append(model)
    rows = model.rows_since(since)
    if 0 <= since < len(history):
        before, now = (version.content.tables["biases"] for version in (history[since], model))
        assert rows.tolist() == np.flatnonzero(before != now).tolist()
    else:
        assert rows.tolist() == list(range(ITEMS))


def test_encoded_rows_are_cached_within_a_bound():
    settings = FPL(n_items=ITEMS, factors=2)
    encoded = EncodedRows(partial(FPL_SERVER.encode, settings), most_bytes=2000)
    model = first_model(FPL_SERVER.first_content(settings, small_world(), None))
    first = encoded.since(model, None, 0)
    assert encoded.since(model, None, 0) is first
    assert encoded.since(model, 99, 0) is first, "a version from the future says nothing"
    for number in range(1, 20):
        encoded.since(model, None, number)
    assert sum(map(len, encoded._kept.values())) <= 2000
    assert encoded.since(model, None, 0) is not first


@pytest.mark.slow
def test_the_first_model_is_the_one_of_a_simulation():
    for biases in ("normal", "zero"):
        settings = FPLSettings(factors=5, seed=9, initial_biases=biases)
        data = small_world()
        recipe = recipe_for(settings, data.profiles.sizes, data.n_items, np.ones(data.n_users))
        simulated = Federation.established(settings, recipe, data.profiles, data.n_items)
        first = FPL_SERVER.first_content(settings.method(data.n_items), data, None).tables
        # Compiled or not, logarithms and cosines may differ in their last digit.
        np.testing.assert_allclose(first["vectors"], simulated.item_vectors[:, :5], rtol=1e-6)
        np.testing.assert_allclose(first["biases"], simulated.item_biases, rtol=1e-6)


def test_a_federation_is_established_once(database):
    with database.connection() as connection:
        assert establish(connection, FPL(), small_world(), RoundSettings(), served=FPL_SERVER) is None
        config = read_config(connection)
        assert (config.settings.factors, config.settings.triples) == (3, 4)
        old = config.admin_hash
        assert renew_admin_token(connection)
        assert read_config(connection).admin_hash != old


def test_triples_are_the_mean_of_the_data_by_default(sqlite_store):
    establish_small(sqlite_store, triples=None)
    with opened(sqlite_store) as connection:
        assert read_config(connection).settings.triples == 6


@pytest.mark.slow
def test_trained_model_is_matched_by_item_ids(sqlite_store):
    data = small_world()
    trained = fr.FPL(factors=2, epochs=1).fit(data.take(data.items != 3).compact())
    with opened(sqlite_store) as connection:
        create_tables(connection)
        with pytest.raises(ModelError):
            establish(connection, FPL(), data, RoundSettings(), served=FPL_SERVER, trained=object())
        establish(connection, FPL(triples=1), data, RoundSettings(), served=FPL_SERVER, trained=trained)
        model = versions.newest_model(connection)
    others = np.arange(ITEMS) != 3
    assert np.array_equal(model.vectors[others], trained.item_vectors)
    assert np.array_equal(model.content.tables["biases"][others], trained.item_biases)
    assert not model.vectors[3].any()
    assert model.content.tables["biases"][3] <= np.quantile(trained.item_biases, 0.25)  # it starts low, never first


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("sqlite:///a.sqlite", "sqlite:///a.sqlite"),
        ("postgresql://me:secret@host:5/name", "postgresql://me:…@host:5/name"),
        ("postgresql://me@host/name", "postgresql://me@host/name"),
        ("postgresql://host/name?password=secret", "postgresql://host/name"),
        ("postgresql://host:5/name?p%61ssword=secret&user=me", "postgresql://host:5/name"),
        ("postgresql://host:5/name?user=me&password=sec@ret", "postgresql://…"),
        ("postgresql://host/name?sslmode=require", "postgresql://host/name?sslmode=require"),
        ("postgresql://me:sec/ret@host/name", "postgresql://me:…@host/name"),
        ("postgresql://me:sec?ret@host/name", "postgresql://me:…@host/name"),
        ("postgresql://me:sec#ret@host/name", "postgresql://me:…@host/name"),
        ("postgres://me:se:c@ret@host/name?sslmode=require", "postgres://me:…@host/name?sslmode=require"),
    ],
)
def test_no_password_is_shown(address, shown):
    assert without_password(address) == shown


def test_files_of_a_store_are_private(sqlite_store, tmp_path):
    establish_small(sqlite_store)
    with opened(sqlite_store) as connection, connection.transaction():
        put_value(connection, "name", 1)
        assert {path.stat().st_mode & 0o777 for path in tmp_path.glob("federation.sqlite*")} == {0o600}


def test_other_files_are_unchanged(tmp_path):
    path = tmp_path / "device.sqlite"
    with closing(sqlite3.connect(path)) as device:
        device.execute("CREATE TABLE ledger (item INTEGER)")
    before = path.read_bytes()
    database = Database(f"sqlite:///{path}")
    with pytest.raises(StoreError), database.connection() as connection:
        create_tables(connection)
    database.close()
    with closing(sqlite3.connect(path)) as device:
        assert device.execute("SELECT name FROM sqlite_master").fetchall() == [("ledger",)]
    assert len(path.read_bytes()) == len(before)


def test_wrong_address_is_refused_without_its_password():
    for address in ("postgresql://me:s3%zz@127.0.0.1/name", "postgresql://me:s3%zz@127.0.0.1/name?bogus=1"):
        with pytest.raises(StoreError) as refusal:
            Database(address).connect()
        assert "s3" not in str(refusal.value)


@pytest.mark.parametrize("password", ["s3/cret", "1/s3cret", "s3@cret", "s3?cret", "s3#cret", "s3/c?r@et"])
def test_server_that_is_away_is_reported_without_its_password(password):
    with pytest.raises((StoreAway, StoreError)) as refusal:
        Database(f"postgresql://me:{password}@127.0.0.1:1/name").connect()
    assert "s3" not in str(refusal.value)
    assert "cret" not in str(refusal.value)


@pytest.mark.slow
def test_user_without_permissions_is_refused(postgresql_server):
    owner = Database(postgresql_server.database())
    with owner.connection() as connection:
        connection.run("DROP ROLE IF EXISTS stranger")
        connection.run("CREATE ROLE stranger LOGIN")
    stranger = Database(owner.address.replace("federank@", "stranger@"))
    with pytest.raises(StoreError), stranger.connection() as connection:
        create_tables(connection)
    stranger.close()
    owner.close()


def test_unusable_stores_are_away(tmp_path):
    with pytest.raises(StoreAway), Database(f"sqlite:///{tmp_path}/no/such/folder.sqlite").connection():
        pass
    (tmp_path / "text").write_text("this is not a database, and longer than a header of one " * 30)
    for address in (f"sqlite:///{tmp_path}/text", "postgresql://127.0.0.1:1/none"):
        with pytest.raises(StoreAway), Database(address).connection():
            pass


@given(st.text(max_size=60), st.integers(0, 2**63), st.integers(0, 2**63))
def test_tickets_are_for_one_device(device, number, version):
    ticket = make_ticket(KEY, device, number, version)
    assert read_ticket(KEY, device, str(ticket)) == ticket
    assert read_ticket(KEY, device + "x", str(ticket)) is None
    assert read_ticket(b"other", device, str(ticket)) is None


@given(st.binary(max_size=2 * TICKET_BYTES) | st.text(max_size=60))
def test_invented_tickets_are_refused(text):
    shown = base64.urlsafe_b64encode(text).decode() if isinstance(text, bytes) else text
    assert read_ticket(KEY, "d", shown) is None


def test_receipts_expire(database, monkeypatch):
    monkeypatch.setattr(versions, "REMEMBERED_ROUNDS", 3)
    with database.connection() as connection:
        play_rounds(connection, 5, lambda model, _: moved(model))
        assert [int(number) for (number,) in connection.all("SELECT round FROM uploads ORDER BY round")] == [1, 2, 3, 4]
        assert keep(connection, upload(2, number=1, version=1), upload(1)) == ["again", "late"]


@given(st.lists(st.floats(-(2.0**126), 2.0**126, width=32), min_size=4, max_size=4), st.floats(0.01, 100))
def test_long_rows_alone_are_shortened(row, most):
    vectors, biases = np.array([row[:3]], dtype=np.float32), np.array(row[3:], dtype=np.float32)
    update = FPLUpdate(np.zeros(1, dtype=np.int32), vectors, biases)
    length = float(np.linalg.norm(np.append(vectors, biases).astype(np.float64)))
    cut = shortened(update, most).update
    after = float(np.linalg.norm(np.append(cut.vectors, cut.biases).astype(np.float64)))
    if length > most:
        assert after <= most * (1 + 1e-5)
    else:
        assert cut is update


def test_upload_size_follows_its_rows():
    form = FPL_SERVER.form(FPL(factors=20, triples=132), 3706, 1.0)
    assert form.most_rows == 264
    assert len(encode(some_update(1, rows=264, items=3706, factors=20))) <= form.most_bytes < 30_000


def test_published_model_is_not_changed_by_the_next(database):
    with database.connection() as connection:
        model = versions.newest_model(connection)
    before = model.vectors.copy()
    following: Published = moved(model)
    assert np.array_equal(model.vectors, before)
    assert (following.version, following.changed.tolist()) == (1, [1] * ITEMS)
