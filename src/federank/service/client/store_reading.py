"""Queries of a client's store: every question that is asked of its file, and its answer.

store.py describes the file, opens and writes it. A damaged file ends in an error message: nothing is invented for
what it lacks.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from federank._numerics.arrays import FloatVector, IntVector
from federank.errors import BadMessage, BadState
from federank.federation.client import History, Model, RoundVector, model_from
from federank.privacy.ledger import Ledger, SentMessage
from federank.secagg.config import config_from
from federank.service.client.federation import Catalogue, FederationInfo, read_info
from federank.service.client.secure import Pinned
from federank.service.client.state import (
    ChosenPolicy,
    Identity,
    KeptSeason,
    Pending,
    Upload,
    faults_as_sentences,
    policy_from_text,
)


class StoredState:
    """The readers of a store that is open."""

    path: Path
    _sql: sqlite3.Connection

    def identity(self) -> Identity:
        """Who this client is."""
        columns = "server, device, token, seed, user, federation, ca, insecure"
        server, device, token, seed, user, document, ca, insecure = self._needed(f"SELECT {columns} FROM identity")
        return Identity(
            server=server,
            device=device,
            token=token,
            seed=seed,
            user=user,
            info=read_info(document.encode()),
            ca=ca,
            insecure=bool(insecure),
            sums=self._pinned(),
        )

    def _pinned(self) -> Pinned | None:
        row = self._one("SELECT config, helper_ca FROM sums")
        if row is None:
            return None
        try:
            return Pinned(config_from(row[0]), row[1])
        except BadMessage as reason:
            raise BadState(
                f"{self.path} is damaged: the federation config in it cannot be read ({reason})."
            ) from reason

    def policy(self) -> ChosenPolicy:
        """What the owner allows, and who chose it."""
        text, chosen_by = self._needed("SELECT policy, chosen_by FROM person")
        return ChosenPolicy(policy_from_text(text, str(self.path)), chosen_by)

    def profile(self) -> IntVector:
        """The items of the owner's history, ascending."""
        return np.array([item for (item,) in self._rows("SELECT item FROM profile ORDER BY item")], dtype=np.int32)

    def history(self) -> History:
        """The same with their ratings, where the federation is of ratings."""
        rows = self._rows("SELECT item, rating FROM profile ORDER BY item")
        items = np.array([item for item, _ in rows], dtype=np.int32)
        if not rows or any(rating is None for _, rating in rows):
            return History(items)
        return History(items, np.array([rating for _, rating in rows], dtype=np.float32))

    def training_history(self) -> History:
        """What the client learns from and takes part with: without items that have ended, or that are held back."""
        history, items = self.history(), self.training_profile()
        return History(items, history.ratings_of(items))

    def training_profile(self) -> IntVector:
        """The items of the same."""
        profile = self.profile()
        profile = profile[~np.isin(profile, list(self.catalogue().ended))]
        return profile[profile != self.held_back()] if self.held_back() is not None else profile

    def held_back(self) -> int | None:
        """The item that is held back to evaluate, where the owner agreed to that and still has it."""
        row = self._one("SELECT item FROM evaluation WHERE item IN (SELECT item FROM profile)")
        return None if row is None else int(row[0])

    def may_answer(self, version: int, most: int) -> bool:
        """Whether an answer about this version is one of the few that ever leave."""
        row = self._one("SELECT answers, last_version FROM evaluation")
        return row is not None and row[0] < most and row[1] < version

    def vector(self, factors: int) -> FloatVector:
        """The vector that is used in rounds."""
        (content,) = self._needed("SELECT vector FROM person")
        return self._floats(content, factors)

    def round_vector(self, factors: int) -> RoundVector:
        """The same with what it was learnt from."""
        (text,) = self._needed("SELECT learnt_from FROM person")
        values = self.vector(factors)
        if text is None:
            return RoundVector(values, None, frozenset())
        try:
            learnt_from = json.loads(text)
            return RoundVector(values, learnt_from["basis"], frozenset(learnt_from["items"]))
        except (ValueError, TypeError, KeyError) as reason:
            raise BadState(f"{self.path} is damaged: it does not say what its vector was learnt from.") from reason

    def home_vector(self, version: int) -> FloatVector | None:
        """The home vector, if it was learnt with this version of the model."""
        row = self._one("SELECT home FROM person WHERE home IS NOT NULL AND home_version = ?", version)
        return None if row is None else self._floats(row[0], len(row[0]) // 4)

    def rounds(self) -> int:
        """How many rounds this client has taken part in."""
        (rounds,) = self._needed("SELECT rounds FROM person")
        return int(rounds)

    def last_ticket(self) -> str | None:
        """The ticket of the last Update that was made; there is never a second one for it."""
        (ticket,) = self._needed("SELECT last_ticket FROM person")
        return None if ticket is None else str(ticket)

    def model(self, info: FederationInfo) -> Model | None:
        """The shared model as last received, if any was."""
        row = self._one("SELECT version, content FROM model")
        if row is None:
            return None
        try:
            return model_from(int(row[0]), row[1], info.n_items)
        except BadMessage as reason:
            raise BadState(f"{self.path} is damaged: {reason}") from reason

    def model_version(self) -> int:
        """The version of the shared model as last received; -1 if none was."""
        row = self._one("SELECT version FROM model")
        return -1 if row is None else int(row[0])

    def catalogue(self) -> Catalogue:
        """The items' ids, titles and categories."""
        (packed,) = self._needed("SELECT packed FROM catalogue")
        try:
            return Catalogue(**json.loads(zlib.decompress(packed)))
        except (zlib.error, ValueError, TypeError) as reason:
            raise BadState(f"{self.path} is damaged: its catalogue cannot be read ({reason}).") from reason

    def ledger(self) -> Ledger:
        """All that has left this client."""
        names = ("item", "first_round", "last_round", "times_liked", "times_compared", "real")
        rows = self._rows(f"SELECT {', '.join(names)} FROM ledger ORDER BY item")
        sent = [field.name for field in fields(SentMessage)]
        messages = self._rows(f"SELECT {', '.join(sent)} FROM messages ORDER BY season, number")
        return Ledger.from_rows(
            [dict(zip(names, row, strict=True)) for row in rows],
            [dict(zip(sent, message, strict=True)) for message in messages],
            self.seasons()[-1].number,
        )

    def seasons(self) -> list[KeptSeason]:
        """Every season that this client was in, the current one last."""
        return [
            KeptSeason(*row)
            for row in self._rows("SELECT number, season, config, uploads, mu, until FROM seasons ORDER BY number")
        ]

    def pending(self) -> Pending | None:
        """The Update without a receipt, if there is one."""
        row = self._one("SELECT ticket, round, body FROM pending")
        return None if row is None else Pending(*row)

    def uploads(self) -> list[Upload]:
        """Every upload that has left and what became of it, in their order."""
        rows = self._rows("SELECT ticket, round, offer, outcome, ended, sent, identifier FROM uploads ORDER BY number")
        return [Upload(*row) for row in rows]

    # How it is done.

    def _rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        with faults_as_sentences(self.path):
            return self._sql.execute(query, values).fetchall()

    def _one(self, query: str, *values: Any) -> tuple[Any, ...] | None:
        rows = self._rows(query, *values)
        return rows[0] if rows else None

    def _needed(self, query: str) -> tuple[Any, ...]:
        row = self._one(query)
        if row is None:
            raise BadState(f"{self.path} is damaged: it lacks what `{query}` asks for. Restore it from a copy.")
        return row

    def _floats(self, content: Any, size: int) -> FloatVector:
        if not isinstance(content, bytes) or len(content) != 4 * size:
            raise BadState(f"{self.path} is damaged: {size:,} numbers are needed where it has something else.")
        values = np.frombuffer(content, dtype=np.float32)
        if not np.isfinite(values).all():
            raise BadState(f"{self.path} is damaged: it holds values that are not finite numbers.")
        return values
