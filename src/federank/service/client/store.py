"""A client's store: everything private in one file that only its owner can read. All of the client's SQL is beside it.

The file is an SQLite database (rollback journal, every commit flushed to the disk), so a crash or a power cut leaves
either all of a step or none of it. It holds

    identity    the server, this client's id and token there, and two random words that its draws are named by
    person      the owner's policy and who chose it, the vector used in rounds and what it was learnt from, the home
                vector
    profile     the items of the owner's history, and their ratings where it has any
    ledger      what has left this client, item by item
    messages    where a number of them was promised: each message that counts, the how-many-th of how many
    seasons     what each season that the client was in has promised: uploads, mu of its noise, its last day
    uploads     each Update that has left, and what became of it once its round has ended (outcomes.py)
    pending     an Update that is recorded as sent and whose receipt has not come yet: the very bytes
    model       the shared model as last received, and its version
    catalogue   the items' ids, titles and categories
    sums        where no single server reads uploads: the federation config that the client has pinned

A round is one transaction: the new vector, the ledger's lines, the model and the pending Update are written
together, before a byte is sent. A second one removes the pending Update when its receipt or a definite refusal has
come. So whatever happens, what may have left is in the ledger, and an interrupted upload is sent again with the same
bytes: never a second Update for the same ticket.

Here the file is opened and written; store_reading.py reads it. How the file is made, locked and kept from others' eyes
is in state.py.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import numpy as np

from federank._numerics.arrays import FloatVector, IntVector
from federank.errors import BadState
from federank.federation.client import History, Model, RoundVector
from federank.privacy.ledger import Ledger
from federank.privacy.policy import Policy
from federank.service.client.federation import Catalogue
from federank.service.client.secure import Pinned
from federank.service.client.state import (
    SECONDS_TO_WAIT,
    UNKNOWN,
    ChosenPolicy,
    Identity,
    Pending,
    faults_as_sentences,
    locked,
    new_file,
    policy_as_text,
    refuse_absence,
    refuse_other_readers,
)
from federank.service.client.store_reading import StoredState

# The tables of a client's file, and the number of their format.


FORMAT = 12
_APPLICATION = 0x46446576  # SQLite's mark of whose file this is: "FDev"

_SCHEMA = """
CREATE TABLE identity (one INTEGER PRIMARY KEY CHECK (one = 1), server TEXT NOT NULL, device TEXT NOT NULL,
    token TEXT NOT NULL, seed INTEGER NOT NULL, user INTEGER NOT NULL, federation TEXT NOT NULL, ca TEXT,
    insecure INTEGER NOT NULL);
CREATE TABLE person (one INTEGER PRIMARY KEY CHECK (one = 1), policy TEXT NOT NULL, chosen_by TEXT NOT NULL,
    vector BLOB NOT NULL, home BLOB, home_version INTEGER, rounds INTEGER NOT NULL, last_ticket TEXT,
    learnt_from TEXT);
CREATE TABLE profile (item INTEGER PRIMARY KEY, rating REAL);
CREATE TABLE ledger (item INTEGER PRIMARY KEY, first_round INTEGER NOT NULL, last_round INTEGER NOT NULL,
    times_liked INTEGER NOT NULL, times_compared INTEGER NOT NULL, real INTEGER);
CREATE TABLE pending (one INTEGER PRIMARY KEY CHECK (one = 1), ticket TEXT NOT NULL, round INTEGER NOT NULL,
    body BLOB NOT NULL);
CREATE TABLE model (one INTEGER PRIMARY KEY CHECK (one = 1), version INTEGER NOT NULL, content BLOB NOT NULL);
CREATE TABLE catalogue (one INTEGER PRIMARY KEY CHECK (one = 1), packed BLOB NOT NULL);
CREATE TABLE messages (number INTEGER NOT NULL, allowed INTEGER NOT NULL, round INTEGER NOT NULL,
    items INTEGER NOT NULL, noise INTEGER NOT NULL DEFAULT 0, season INTEGER NOT NULL, PRIMARY KEY (season, number));
CREATE TABLE uploads (number INTEGER PRIMARY KEY, ticket TEXT NOT NULL, round INTEGER NOT NULL, message INTEGER,
    offer TEXT, outcome TEXT, ended REAL, sent REAL NOT NULL, identifier TEXT, season INTEGER NOT NULL);
CREATE TABLE seasons (number INTEGER PRIMARY KEY, season INTEGER NOT NULL, config TEXT NOT NULL, uploads INTEGER,
    mu REAL, until TEXT NOT NULL);
CREATE TABLE sums (one INTEGER PRIMARY KEY CHECK (one = 1), config BLOB NOT NULL, helper_ca TEXT);
CREATE TABLE evaluation (one INTEGER PRIMARY KEY CHECK (one = 1), item INTEGER NOT NULL, answers INTEGER NOT NULL,
    last_version INTEGER NOT NULL);
"""


def make_tables(sql: sqlite3.Connection) -> None:
    """Make the tables of a new file, and mark it as a client's; they reach the disk with the first state."""
    marks = f"PRAGMA application_id = {_APPLICATION}; PRAGMA user_version = {FORMAT};"
    sql.executescript(f"PRAGMA synchronous = OFF; BEGIN; {_SCHEMA} {marks} COMMIT;")


def check_format(sql: sqlite3.Connection, path: Path) -> None:
    """Refuse a file that is not a client's, incomplete, or of another format."""
    (application,) = sql.execute("PRAGMA application_id").fetchone()
    (version,) = sql.execute("PRAGMA user_version").fetchone()
    if application != _APPLICATION:
        raise BadState(f"{path} is not a client's file; --state names one that `federank client` made.")
    if version != FORMAT:
        raise BadState(
            f"{path} has format {version}, and this program reads format {FORMAT}; use the version of "
            "federank that wrote it, or enrol again with another --state."
        )
    (check,) = sql.execute("PRAGMA quick_check(1)").fetchone()
    if check != "ok":
        raise sqlite3.DatabaseError(check)


SYNCHRONOUS = "EXTRA"
"""Of SQLite: a commit has reached the disk, and so has the end of its journal, before anything is sent."""


@contextmanager
def created(path: Path) -> Iterator[DeviceStore]:
    """A new store, to be filled inside the `with`: the file gets its name only once it is complete."""
    with faults_as_sentences(path), new_file(path) as unfinished:
        sql = sqlite3.connect(unfinished, isolation_level=None)
        try:
            make_tables(sql)
        finally:
            sql.close()
        with DeviceStore(unfinished) as store, store.transaction():
            store.path = path
            yield store


@contextmanager
def taking_part(path: Path) -> Iterator[DeviceStore]:
    """The store of a client that takes part: no other process does with the same file meanwhile.

    Looking and changing one's policy need no such lock, so an owner can read the ledger or pause while the client runs.
    """
    # The lock goes after SQLite's connection: closing its file drops the locks that SQLite holds in this process.
    with locked(path), DeviceStore(path) as store:
        yield store


class DeviceStore(StoredState):
    """An open store. Each writer is a transaction of its own, or part of the one that its caller began."""

    def __init__(self, path: Path) -> None:
        """Open an existing file; `created` makes a new one."""
        self.path = path
        refuse_absence(path)
        refuse_other_readers(path)
        with faults_as_sentences(path):
            self._sql = sqlite3.connect(path, timeout=SECONDS_TO_WAIT, isolation_level=None)
            try:
                check_format(self._sql, path)
                self._sql.execute(f"PRAGMA synchronous = {SYNCHRONOUS}")
            except BaseException:
                self._sql.close()
                raise

    def __enter__(self) -> DeviceStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._sql.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All of what is written inside, on the disk, or none of it."""
        if self._is_in_transaction():
            yield
            return
        with faults_as_sentences(self.path):
            self._sql.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._sql.execute("COMMIT")
            except BaseException:
                if self._is_in_transaction():
                    self._sql.execute("ROLLBACK")
                raise

    def write_outcome(self, ticket: str, outcome: str, ended: float, *, is_charged: bool = True) -> None:
        """What became of an upload; one that is not charged leaves the messages that count."""
        with self.transaction():
            self._sql.execute("UPDATE uploads SET outcome = ?, ended = ? WHERE ticket = ?", (outcome, ended, ticket))
            if not is_charged:
                self._sql.execute(
                    "DELETE FROM messages WHERE (season, number) IN (SELECT season, message FROM uploads WHERE"
                    " ticket = ?)",
                    (ticket,),
                )
                self._sql.execute("UPDATE uploads SET message = NULL WHERE ticket = ?", (ticket,))

    def write_first(
        self, identity: Identity, chosen: ChosenPolicy, history: History, vector: FloatVector, catalogue: Catalogue
    ) -> None:
        """Write a new client's first state; what is left out here has its own writer."""
        info = identity.info
        own = (identity.server, identity.device, identity.token, identity.seed, identity.user)
        person = (policy_as_text(chosen.policy), chosen.chosen_by, vector.tobytes())
        with self.transaction():
            self._sql.execute(
                "INSERT INTO identity VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?)",
                (*own, info.document, identity.ca, identity.insecure),
            )
            self._sql.execute("INSERT INTO person VALUES (1, ?, ?, ?, NULL, NULL, 0, NULL, NULL)", person)
            self._write_pinned(identity.sums)
            packed = zlib.compress(json.dumps(catalogue._asdict()).encode())
            self._sql.execute("INSERT INTO catalogue VALUES (1, ?)", (packed,))
            self._insert_profile(history)
            self._insert_season(identity)

    def write_info(self, document: str) -> None:
        """Keep what the federation says of itself now."""
        with self.transaction():
            self._sql.execute("UPDATE identity SET federation = ?", (document,))

    def write_season(self, identity: Identity, catalogue: Catalogue, model: Model, policy: Policy) -> None:
        """Keep another season: its config, catalogue and model. Uploads count from 0; ledger and history stay.

        An Update on its way was for a round that has ended with the season before.
        """
        packed = zlib.compress(json.dumps(catalogue._asdict()).encode())
        with self.transaction():
            self._sql.execute("UPDATE identity SET federation = ?", (identity.info.document,))
            self._sql.execute("UPDATE catalogue SET packed = ?", (packed,))
            self._sql.execute(
                "UPDATE person SET policy = ?, home = NULL, home_version = NULL", (policy_as_text(policy),)
            )
            self._sql.execute("DELETE FROM pending")
            self._end_uploads()
            self._write_pinned(identity.sums)
            self._insert_season(identity)
            self.write_model(model)

    def write_new_federation(self, identity: Identity, vector: FloatVector, model: Model) -> None:
        """Replace all that was the old federation's: token, model, vectors, and an Update on its way."""
        joined = (identity.device, identity.token, identity.info.document)
        with self.transaction():
            self._sql.execute("UPDATE identity SET device = ?, token = ?, federation = ?", joined)
            self._write_pinned(identity.sums)
            self._sql.execute("DELETE FROM pending")
            self._sql.execute(
                "UPDATE person SET vector = ?, learnt_from = NULL, home = NULL, home_version = NULL, rounds = 0,"
                " last_ticket = NULL",
                (vector.tobytes(),),
            )
            self._sql.execute("DELETE FROM seasons WHERE number = (SELECT MAX(number) FROM seasons)")
            self._insert_season(identity)
            self._end_uploads()
            self.write_model(model)

    def write_new_token(self, device: str, token: str) -> None:
        """Another name and token in the same federation; an Update on its way was for the old ones."""
        with self.transaction():
            self._sql.execute("UPDATE identity SET device = ?, token = ?", (device, token))
            self._sql.execute("DELETE FROM pending")
            self._sql.execute("UPDATE person SET last_ticket = NULL")
            self._end_uploads()

    def write_agreement(self, item: int) -> None:
        """Hold this item back from now on, to evaluate."""
        with self.transaction():
            self._sql.execute("INSERT INTO evaluation VALUES (1, ?, 0, -1)", (item,))

    def write_answer(self, version: int) -> None:
        """One more answer has left, about this version."""
        with self.transaction():
            self._sql.execute("UPDATE evaluation SET answers = answers + 1, last_version = ?", (version,))

    def write_policy(self, policy: Policy, chosen_by: str = "owner") -> None:
        """Keep another policy; a client that is running follows it from its next round.

        An Update that waits to be sent again was made under the old policy: it is dropped. It may have left before, and
        so it stays in the ledger.
        """
        with self.transaction():
            self._sql.execute("UPDATE person SET policy = ?, chosen_by = ?", (policy_as_text(policy), chosen_by))
            self._sql.execute("DELETE FROM pending")

    def write_history(self, history: History) -> None:
        """Keep another history in the place of the last one; the home vector is learnt again.

        An Update that waits to be sent again is dropped if anything was taken out of the history that it was made from,
        or rated otherwise.
        """
        with self.transaction():
            before = self.history()
            kept = np.intersect1d(before.items, history.items)
            if len(kept) < len(before.items) or not np.array_equal(before.ratings_of(kept), history.ratings_of(kept)):
                self._sql.execute("DELETE FROM pending")
            self._sql.execute("DELETE FROM profile")
            self._insert_profile(history)
            self._sql.execute("UPDATE person SET home = NULL, home_version = NULL")

    def write_model(self, model: Model) -> None:
        """Keep a model in the place of the last one."""
        with self.transaction():
            self._sql.execute("REPLACE INTO model VALUES (1, ?, ?)", (model.version, model.stored()))

    def write_home_vector(self, vector: FloatVector, version: int) -> None:
        """Keep a home vector, learnt with this version of the model."""
        with self.transaction():
            self._sql.execute("UPDATE person SET home = ?, home_version = ?", (vector.tobytes(), version))

    def write_round(
        self,
        pending: Pending,
        vector: RoundVector,
        ledger: Ledger,
        items: IntVector,
        sent: float,
        offer: str | None = None,
        identifier: str | None = None,
    ) -> None:
        """Keep what a round leaves: the Update to send, the new vector, and the ledger's lines for these items.

        `sent` is the time of this, in seconds since 1970. Under secure aggregation, `offer` is the digest of the offer
        that the Update was made for, and `identifier` its random id.
        """
        learnt_from = json.dumps({"basis": vector.basis, "items": sorted(vector.items)})
        with self.transaction():
            self._sql.execute(
                "UPDATE person SET vector = ?, learnt_from = ?, last_ticket = ?, rounds = rounds + 1",
                (vector.values.tobytes(), learnt_from, pending.ticket),
            )
            self._sql.executemany(
                "REPLACE INTO ledger VALUES (:item, :first_round, :last_round, :times_liked, :times_compared, :real)",
                [asdict(ledger.entries[int(item)]) for item in items],
            )
            self._sql.executemany(
                "INSERT OR IGNORE INTO messages (number, allowed, round, items, noise, season)"
                " VALUES (:number, :allowed, :round, :items, :noise, :season)",
                [asdict(message) for message in ledger.messages],
            )
            self._sql.execute(
                "INSERT INTO uploads (ticket, round, message, offer, sent, identifier, season)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                (pending.ticket, pending.round_number, ledger.spent or None, offer, sent, identifier, ledger.season),
            )
            self._sql.execute("INSERT INTO pending VALUES (1, ?, ?, ?)", pending)

    def drop_pending(self, ticket: str) -> None:
        """Forget the bytes of an Update that has its receipt or was refused for good."""
        with self.transaction():
            self._sql.execute("DELETE FROM pending WHERE ticket = ?", (ticket,))

    def drop_token(self) -> None:
        """Forget the token, so that no one can take part with this file any more."""
        with self.transaction():
            self._sql.execute("UPDATE identity SET token = ''")
            self._sql.execute("DELETE FROM pending")

    # How it is done.

    def _end_uploads(self) -> None:
        """No one can be asked any more about uploads under another name."""
        self._sql.execute("UPDATE uploads SET outcome = ? WHERE outcome IS NULL", (UNKNOWN,))

    def _write_pinned(self, pinned: Pinned | None) -> None:
        if pinned is not None:
            self._sql.execute("REPLACE INTO sums VALUES (1, ?, ?)", (pinned.config.to_bytes(), pinned.helper_ca))

    def _insert_season(self, identity: Identity) -> None:
        info, pinned = identity.info, identity.sums
        config = "" if pinned is None else pinned.config.digest().hex()
        mu = None if pinned is None or not pinned.config.has_noise else pinned.config.mu()
        self._sql.execute(
            "INSERT INTO seasons (season, config, uploads, mu, until) VALUES (?, ?, ?, ?, ?)",
            (info.season, config, info.uploads, mu, info.until),
        )

    def _is_in_transaction(self) -> bool:
        return self._sql.in_transaction

    def _insert_profile(self, history: History) -> None:
        ratings = history.ratings.tolist() if len(history.ratings) else [None] * len(history.items)
        rows = zip(history.items.tolist(), ratings, strict=True)
        self._sql.executemany("INSERT INTO profile VALUES (?, ?)", list(rows))
