"""A client's store: everything private in one file that only its owner can read. All of the client's SQL is here.

The file is an SQLite database (rollback journal, every commit flushed to the disk), so a crash or a power cut leaves
either all of a step or none of it. It holds

    kept        single values by name: who the client is, what the federation says it is and the federation config that
                the client has pinned; the owner's policy and who chose it; the vector used in rounds and what it was
                learnt from, the home vector; the model, the catalogue; the item that is held back to evaluate
    profile     the items of the owner's history, and their ratings where it has any
    ledger      what has left this client, item by item
    messages    where a number of them was promised: each message that counts, the how-many-th of how many
    seasons     what each season that the client was in has promised: uploads, mu of its noise, its last day
    uploads     each Update that has left, and what became of it once its round has ended (outcomes.py)
    pending     an Update that is recorded as sent and whose receipt has not come yet: the very bytes

A round is one transaction: the new vector, the ledger's lines, the model and the pending Update are written
together, before a byte is sent. A second one removes the pending Update when its receipt or a definite refusal has
come. So whatever happens, what may have left is in the ledger, and an interrupted upload is sent again with the same
bytes: never a second Update for the same ticket.

A damaged file ends in an error message: nothing is invented for what it lacks. How the file is made, locked and kept
from others' eyes is in state.py.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from federank._numerics.arrays import FloatVector, IntVector
from federank.errors import BadMessage, BadState
from federank.federation.client import History, Model, RoundVector, model_from
from federank.privacy.ledger import Entry, Ledger, SentMessage
from federank.privacy.policy import Policy
from federank.secagg.config import config_from
from federank.service.client.federation import Catalogue, FederationInfo, read_info
from federank.service.client.secure import Pinned
from federank.service.client.state import (
    SECONDS_TO_WAIT,
    UNKNOWN,
    ChosenPolicy,
    Identity,
    KeptSeason,
    Pending,
    Upload,
    faults_as_sentences,
    locked,
    new_file,
    policy_as_text,
    policy_from_text,
    refuse_absence,
    refuse_other_readers,
)

FORMAT = 13
_APPLICATION = 0x46446576  # SQLite's mark of whose file this is: "FDev"
SYNCHRONOUS = "EXTRA"
"""Of SQLite: a commit has reached the disk, and so has the end of its journal, before anything is sent."""

_SCHEMA = """
CREATE TABLE kept (name TEXT PRIMARY KEY, value);
CREATE TABLE profile (item INTEGER PRIMARY KEY, rating REAL);
CREATE TABLE ledger (item INTEGER PRIMARY KEY, first_round INTEGER NOT NULL, last_round INTEGER NOT NULL,
    times_liked INTEGER NOT NULL, times_compared INTEGER NOT NULL, real INTEGER);
CREATE TABLE pending (one INTEGER PRIMARY KEY CHECK (one = 1), ticket TEXT NOT NULL, round INTEGER NOT NULL,
    body BLOB NOT NULL);
CREATE TABLE messages (number INTEGER NOT NULL, allowed INTEGER NOT NULL, round INTEGER NOT NULL,
    items INTEGER NOT NULL, noise INTEGER NOT NULL DEFAULT 0, season INTEGER NOT NULL, PRIMARY KEY (season, number));
CREATE TABLE uploads (number INTEGER PRIMARY KEY, ticket TEXT NOT NULL, round INTEGER NOT NULL, message INTEGER,
    offer TEXT, outcome TEXT, ended REAL, sent REAL NOT NULL, identifier TEXT, season INTEGER NOT NULL);
CREATE TABLE seasons (number INTEGER PRIMARY KEY, season INTEGER NOT NULL, config TEXT NOT NULL, uploads INTEGER,
    mu REAL, until TEXT NOT NULL);
"""
_ENTRY, _MESSAGE = (tuple(field.name for field in fields(kind)) for kind in (Entry, SentMessage))


def _check_format(sql: sqlite3.Connection, path: Path) -> None:
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


@contextmanager
def created(path: Path) -> Iterator[ClientStore]:
    """A new store, to be filled inside the `with`: the file gets its name only once it is complete."""
    with faults_as_sentences(path), new_file(path) as unfinished:
        sql = sqlite3.connect(unfinished, isolation_level=None)
        marks = f"PRAGMA application_id = {_APPLICATION}; PRAGMA user_version = {FORMAT};"
        try:  # the tables reach the disk with the first state
            sql.executescript(f"PRAGMA synchronous = OFF; BEGIN; {_SCHEMA} {marks} COMMIT;")
        finally:
            sql.close()
        with ClientStore(unfinished) as store, store.transaction():
            store.path = path
            yield store


@contextmanager
def taking_part(path: Path) -> Iterator[ClientStore]:
    """The store of a client that takes part: no other process does with the same file meanwhile.

    Looking and changing one's policy need no such lock, so an owner can read the ledger or pause while the client runs.
    """
    # The lock goes after SQLite's connection: closing its file drops the locks that SQLite holds in this process.
    with locked(path), ClientStore(path) as store:
        yield store


class ClientStore:
    """An open store. Each writer is a transaction of its own, or part of the one that its caller began."""

    def __init__(self, path: Path) -> None:
        """Open an existing file; `created` makes a new one."""
        self.path = path
        refuse_absence(path)
        refuse_other_readers(path)
        with faults_as_sentences(path):
            self._sql = sqlite3.connect(path, timeout=SECONDS_TO_WAIT, isolation_level=None)
            try:
                _check_format(self._sql, path)
                self._sql.execute(f"PRAGMA synchronous = {SYNCHRONOUS}")
            except BaseException:
                self._sql.close()
                raise

    def __enter__(self) -> ClientStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._sql.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All of what is written inside, on the disk, or none of it."""
        if self._sql.in_transaction:
            yield
            return
        with faults_as_sentences(self.path), self._sql:  # which commits, or rolls back
            self._sql.execute("BEGIN IMMEDIATE")
            yield

    # What is kept.

    def identity(self) -> Identity:
        """Who this client is."""
        values, config = self._json("identity"), self._kept("config")
        helper_ca = values.pop("helper_ca")
        try:
            pinned = None if config is None else Pinned(config_from(config), helper_ca)
        except BadMessage as reason:
            raise self._damaged(f"the federation config in it cannot be read ({reason})") from reason
        return Identity(**values, info=read_info(self._needed("federation").encode()), sums=pinned)

    def policy(self) -> ChosenPolicy:
        """What the owner allows, and who chose it."""
        policy = policy_from_text(self._needed("policy"), str(self.path))
        return ChosenPolicy(policy, self._needed("chosen_by"))

    def profile(self) -> IntVector:
        """The items of the owner's history, ascending."""
        return self.history().items

    def history(self) -> History:
        """The same with their ratings, where the federation is of ratings."""
        rows = self._rows("SELECT item, rating FROM profile ORDER BY item")
        items = np.array([item for item, _ in rows], dtype=np.int32)
        if not rows or any(rating is None for _, rating in rows):
            return History(items)
        return History(items, np.array([rating for _, rating in rows], dtype=np.float32))

    def training_history(self) -> History:
        """What the client learns from and takes part with: without items that have ended, or that are held back."""
        history, left_out = self.history(), [*self.catalogue().ended, self.held_back()]
        items = history.items[~np.isin(history.items, [item for item in left_out if item is not None])]
        return History(items, history.ratings_of(items))

    def held_back(self) -> int | None:
        """The item that is held back to evaluate, where the owner agreed to that and still has it."""
        item = self._kept("held_back")
        return item if item is not None and item in self.profile() else None

    def may_answer(self, version: int, most: int) -> bool:
        """Whether an answer about this version is one of the few that ever leave."""
        return bool(self._needed("answers") < most and self._needed("answered_version") < version)

    def vector(self, factors: int) -> FloatVector:
        """The vector that is used in rounds."""
        return self._floats(self._needed("vector"), factors)

    def round_vector(self, factors: int) -> RoundVector:
        """The same with what it was learnt from."""
        values = self.vector(factors)
        if self._kept("learnt_from") is None:
            return RoundVector(values, None, frozenset())
        learnt_from = self._json("learnt_from")
        return RoundVector(values, learnt_from["basis"], frozenset(learnt_from["items"]))

    def home_vector(self, version: int) -> FloatVector | None:
        """The home vector, if it was learnt with this version of the model."""
        home = self._kept("home")
        if home is None or self._kept("home_version") != version:
            return None
        return self._floats(home, len(home) // 4)

    def rounds(self) -> int:
        """How many rounds this client has taken part in."""
        return int(self._needed("rounds"))

    def last_ticket(self) -> str | None:
        """The ticket of the last Update that was made; there is never a second one for it."""
        ticket: str | None = self._kept("last_ticket")
        return ticket

    def model(self, info: FederationInfo) -> Model | None:
        """The shared model as last received, if any was."""
        content = self._kept("model")
        if content is None:
            return None
        try:
            return model_from(self.model_version(), content, info.n_items)
        except BadMessage as reason:
            raise self._damaged(str(reason).removesuffix(".")) from reason

    def model_version(self) -> int:
        """The version of the shared model as last received; -1 if none was."""
        version = self._kept("model_version")
        return -1 if version is None else int(version)

    def catalogue(self) -> Catalogue:
        """The items' ids, titles and categories."""
        try:
            return Catalogue(**json.loads(zlib.decompress(self._needed("catalogue"))))
        except (zlib.error, ValueError, TypeError) as reason:
            raise self._damaged(f"its catalogue cannot be read ({reason})") from reason

    def ledger(self) -> Ledger:
        """All that has left this client."""
        rows = self._rows(f"SELECT {', '.join(_ENTRY)} FROM ledger ORDER BY item")
        messages = self._rows(f"SELECT {', '.join(_MESSAGE)} FROM messages ORDER BY season, number")
        return Ledger.from_rows(
            [dict(zip(_ENTRY, row, strict=True)) for row in rows],
            [dict(zip(_MESSAGE, message, strict=True)) for message in messages],
            self.seasons()[-1].number,
        )

    def seasons(self) -> list[KeptSeason]:
        """Every season that this client was in, the current one last."""
        rows = self._rows("SELECT number, season, config, uploads, mu, until FROM seasons ORDER BY number")
        return [KeptSeason(*row) for row in rows]

    def pending(self) -> Pending | None:
        """The Update without a receipt, if there is one."""
        rows = self._rows("SELECT ticket, round, body FROM pending")
        return Pending(*rows[0]) if rows else None

    def uploads(self) -> list[Upload]:
        """Every upload that has left and what became of it, in their order."""
        rows = self._rows("SELECT ticket, round, offer, outcome, ended, sent, identifier FROM uploads ORDER BY number")
        return [Upload(*row) for row in rows]

    # What is written.

    def write_first(
        self, identity: Identity, chosen: ChosenPolicy, history: History, vector: FloatVector, catalogue: Catalogue
    ) -> None:
        """Write a new client's first state; what is left out here has its own writer."""
        with self.transaction():
            self._put_identity(identity)
            self._put(policy=policy_as_text(chosen.policy), chosen_by=chosen.chosen_by)
            self._put(vector=vector.tobytes(), rounds=0, catalogue=_packed(catalogue))
            self._insert_profile(history)
            self._insert_season(identity)

    def write_info(self, document: str) -> None:
        """Keep what the federation says of itself now."""
        self._put(federation=document)

    def write_season(self, identity: Identity, catalogue: Catalogue, model: Model, policy: Policy) -> None:
        """Keep another season: its config, catalogue and model. Uploads count from 0; ledger and history stay.

        An Update on its way was for a round that has ended with the season before.
        """
        with self.transaction():
            self._put_identity(identity)
            self._put(catalogue=_packed(catalogue), policy=policy_as_text(policy), home=None)
            self._forget_uploads()
            self._insert_season(identity)
            self.write_model(model)

    def write_new_federation(self, identity: Identity, vector: FloatVector, model: Model) -> None:
        """Replace all that was the old federation's: token, model, vectors, and an Update on its way."""
        with self.transaction():
            self._put_identity(identity)
            self._put(vector=vector.tobytes(), learnt_from=None, home=None, rounds=0, last_ticket=None)
            self._forget_uploads()
            self._sql.execute("DELETE FROM seasons WHERE number = (SELECT MAX(number) FROM seasons)")
            self._insert_season(identity)
            self.write_model(model)

    def write_new_token(self, identity: Identity) -> None:
        """Another name and token in the same federation; an Update on its way was for the old ones."""
        with self.transaction():
            self._put_identity(identity)
            self._put(last_ticket=None)
            self._forget_uploads()

    def drop_token(self) -> None:
        """Forget the token, so that no one can take part with this file any more."""
        with self.transaction():
            self._put_identity(replace(self.identity(), token=""))
            self._sql.execute("DELETE FROM pending")

    def write_agreement(self, item: int) -> None:
        """Hold this item back from now on, to evaluate."""
        self._put(held_back=item, answers=0, answered_version=-1)

    def write_answer(self, version: int) -> None:
        """One more answer has left, about this version."""
        with self.transaction():
            self._put(answers=self._needed("answers") + 1, answered_version=version)

    def write_policy(self, policy: Policy, chosen_by: str = "owner") -> None:
        """Keep another policy; a client that is running follows it from its next round.

        An Update that waits to be sent again was made under the old policy: it is dropped. It may have left before, and
        so it stays in the ledger.
        """
        with self.transaction():
            self._put(policy=policy_as_text(policy), chosen_by=chosen_by)
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
            self._put(home=None)

    def write_model(self, model: Model) -> None:
        """Keep a model in the place of the last one."""
        self._put(model_version=model.version, model=model.stored())

    def write_home_vector(self, vector: FloatVector, version: int) -> None:
        """Keep a home vector, learnt with this version of the model."""
        self._put(home=vector.tobytes(), home_version=version)

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
        upload = (pending.ticket, pending.round_number, ledger.spent or None, offer, sent, identifier, ledger.season)
        with self.transaction():
            self._put(vector=vector.values.tobytes(), learnt_from=learnt_from, last_ticket=pending.ticket)
            self._put(rounds=self.rounds() + 1)
            self._sql.executemany(
                f"REPLACE INTO ledger ({', '.join(_ENTRY)}) VALUES (:{', :'.join(_ENTRY)})",
                [asdict(ledger.entries[int(item)]) for item in items],
            )
            self._sql.executemany(
                f"INSERT OR IGNORE INTO messages ({', '.join(_MESSAGE)}) VALUES (:{', :'.join(_MESSAGE)})",
                [asdict(message) for message in ledger.messages],
            )
            columns = "ticket, round, message, offer, sent, identifier, season"
            self._sql.execute(f"INSERT INTO uploads ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?)", upload)
            self._sql.execute("INSERT INTO pending VALUES (1, ?, ?, ?)", pending)

    def drop_pending(self, ticket: str) -> None:
        """Forget the bytes of an Update that has its receipt or was refused for good."""
        with self.transaction():
            self._sql.execute("DELETE FROM pending WHERE ticket = ?", (ticket,))

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

    # How it is done.

    def _put(self, **values: Any) -> None:
        with self.transaction():
            self._sql.executemany("REPLACE INTO kept VALUES (?, ?)", list(values.items()))

    def _put_identity(self, identity: Identity) -> None:
        names = ("server", "client_id", "token", "seed", "user", "ca", "insecure")
        values, pinned = {name: getattr(identity, name) for name in names}, identity.sums
        values["helper_ca"] = None if pinned is None else pinned.helper_ca
        config = None if pinned is None else pinned.config.to_bytes()
        self._put(identity=json.dumps(values), federation=identity.info.document, config=config)

    def _forget_uploads(self) -> None:
        """Under another name or in another season no one can be asked about uploads, and none can be sent again."""
        self._sql.execute("DELETE FROM pending")
        self._sql.execute("UPDATE uploads SET outcome = ? WHERE outcome IS NULL", (UNKNOWN,))

    def _insert_season(self, identity: Identity) -> None:
        info, pinned = identity.info, identity.sums
        config = "" if pinned is None else pinned.config.digest().hex()
        mu = None if pinned is None or not pinned.config.has_noise else pinned.config.mu()
        self._sql.execute(
            "INSERT INTO seasons (season, config, uploads, mu, until) VALUES (?, ?, ?, ?, ?)",
            (info.season, config, info.uploads, mu, info.until),
        )

    def _insert_profile(self, history: History) -> None:
        ratings = history.ratings.tolist() if len(history.ratings) else [None] * len(history.items)
        rows = list(zip(history.items.tolist(), ratings, strict=True))
        self._sql.executemany("INSERT INTO profile VALUES (?, ?)", rows)

    def _rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        with faults_as_sentences(self.path):
            return self._sql.execute(query, values).fetchall()

    def _kept(self, name: str) -> Any:
        rows = self._rows("SELECT value FROM kept WHERE name = ?", name)
        return rows[0][0] if rows else None

    def _needed(self, name: str) -> Any:
        value = self._kept(name)
        if value is None:
            raise self._damaged(f"it lacks {name.replace('_', ' ')}")
        return value

    def _json(self, name: str) -> dict[str, Any]:
        try:
            values = json.loads(self._needed(name))
        except (ValueError, TypeError):
            values = None
        if not isinstance(values, dict):
            raise self._damaged(f"{name.replace('_', ' ')} in it cannot be read")
        return values

    def _floats(self, content: Any, size: int) -> FloatVector:
        if not isinstance(content, bytes) or len(content) != 4 * size:
            raise self._damaged(f"{size:,} numbers are needed where it has something else")
        values = np.frombuffer(content, dtype=np.float32)
        if not np.isfinite(values).all():
            raise self._damaged("it holds values that are not finite numbers")
        return values

    def _damaged(self, what: str) -> BadState:
        return BadState(f"{self.path} is damaged: {what}. Restore it from a copy.")


def _packed(catalogue: Catalogue) -> bytes:
    return zlib.compress(json.dumps(catalogue._asdict()).encode())
