"""The audit of any method on the interface: its run is played again, and every update is read.

A sample of users is followed (200 by default), because notes are kept of every item. What an update changes
is what it adds to an empty aggregate; a server that sees sums has the sum of a round's updates, and who took part.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from federank._numerics.arrays import FloatMatrix, FloatVector, IntVector
from federank.audit.observer import KnownPolicies, Senders, draw_users, judge_everyone, known_policies, with_own_attacks
from federank.audit.scoring import (
    BASELINE,
    THREAT_MODELS,
    Attack,
    Audited,
    Findings,
    Guess,
    about_audit,
    claim,
    claim_typical,
    standardised,
)
from federank.errors import SettingError
from federank.federation import wire
from federank.federation.method import ClientResult, FederatedMethod
from federank.methods.federated_model import FederatedModel
from federank.privacy.population import shared_profile_of


class UpdatesView(NamedTuple):
    """What the server has that reads updates; with sums alone, `named`, `last` and `neighbours` are empty."""

    named: NDArray[np.int32]  # users x items: how many of a user's updates change the item
    strength: FloatMatrix  # users x items: how far they change it; of sums: how much further in the user's rounds
    last: list[Any]  # each user's last update, as it was sent; None where there was none
    broadcast: Any  # the public model, as clients downloaded it when the last round began
    neighbours: FloatMatrix  # users x items: what the updates change of those whose updates change similar items
    popularity: FloatVector  # items: how many updates change them, over all clients
    typical_size: int  # of a history
    policies: KnownPolicies


# Attacks on updates of any form: which items a user has.


def popularity(view: UpdatesView) -> Guess:
    """Rank everything by how many updates change it."""
    return claim_typical(np.tile(view.popularity, (len(view.strength), 1)), view.typical_size)


def presence(view: UpdatesView) -> Guess:
    """Claim everything that a user's updates change."""
    return claim(view.named > 0)


def frequency(view: UpdatesView) -> Guess:
    """Rank by how many of a user's updates change an item."""
    return claim_typical(view.named.astype(np.float32), view.typical_size)


def magnitude(view: UpdatesView) -> Guess:
    """Rank by how far a user's updates change an item."""
    return claim_typical(view.strength, view.typical_size)


def neighbours(view: UpdatesView) -> Guess:
    """Rank by what the updates of similar senders change."""
    return claim_typical(view.neighbours, view.typical_size)


def fused(view: UpdatesView) -> Guess:
    """How often, how far, and what similar senders change, together."""
    often = standardised(view.named.astype(np.float32))
    scores = 2 * often + standardised(view.strength) + 0.5 * standardised(view.neighbours)
    return claim_typical(scores.astype(np.float32), view.typical_size)


def membership(view: UpdatesView) -> Guess:
    """Rank by how much further items change in a user's rounds."""
    return claim_typical(view.strength, view.typical_size)


_READING: dict[str, Attack] = {
    BASELINE: popularity,
    "presence": presence,
    "frequency": frequency,
    "magnitude": magnitude,
    "neighbours": neighbours,
    "fused": fused,
}
ATTACKS: dict[str, dict[str, Attack]] = {
    "updates": _READING,
    "anonymous": {name: _READING[name] for name in (BASELINE, "presence", "magnitude")},
    "sums": {BASELINE: popularity, "membership": membership},
}
"""The attacks of each kind of honest-but-curious server."""
ADVERSARIES = tuple(ATTACKS)


FOLLOWED = 200
"""Number of users that are followed by default."""


def audit_model(model: FederatedModel, *, sees: str, people: int | None, per_epoch: bool = False) -> Audited:
    """Audit a trained model: findings after each round if asked, else after the last."""
    refuse(model, sees=sees)
    started = time.perf_counter()
    audit = _Audit(model, sees, people)
    last = model.settings.rounds
    findings = [audit.look(number) for number in range(1 if per_epoch else last, last + 1)]
    return Audited(findings, audit.about(time.perf_counter() - started))


def changed_rows(method: FederatedMethod, update: Any) -> FloatMatrix:
    """What an update says of each item: what it adds to an empty aggregate, a row per item."""
    one = method.empty()
    method.add(one, update)
    named = [name for name in wire.tables(one) if name != "counts"] or wire.tables(one)
    parts = [np.reshape(getattr(one, name), (method.n_items, -1)) for name in named]
    table: FloatMatrix = np.hstack([np.zeros((method.n_items, 0)), *parts]).astype(np.float32)
    return table


def row_norms(table: FloatMatrix) -> FloatVector:
    """The L2 norm of each row."""
    norms: FloatVector = np.sqrt(np.einsum("ij,ij->i", table, table)).astype(np.float32)
    return norms


class _Audit:
    """An audit while it runs: the simulation that is played again, and the notes about it."""

    def __init__(self, model: FederatedModel, sees: str, wanted: int | None) -> None:
        self._model, self._sees, data = model, sees, model.training
        self._simulation = model.simulation()
        drawn = draw_users(self._simulation.method.seed, self._simulation.schedule.participants, wanted)
        self._users: IntVector = np.sort(drawn[: wanted or FOLLOWED])
        shape = len(self._users), data.n_items
        self._row = np.full(data.n_users, -1, dtype=np.int64)
        self._row[self._users] = np.arange(len(self._users))
        self._named = np.zeros(shape, dtype=np.int32)
        self._strength = np.zeros(shape, dtype=np.float64)
        self._last: list[Any] = [None for _ in self._users]
        self._took_part = np.zeros(len(self._users), dtype=np.int64)
        self._updates = np.zeros(data.n_items, dtype=np.float64)
        self._sums = np.zeros(data.n_items, dtype=np.float64)  # what rounds change on average, added up
        self._in_rounds = np.zeros(shape, dtype=np.float64)  # the same of the rounds that each user was in
        self._sent = np.zeros(shape, dtype=np.bool_)
        self._broadcast: Any = None
        self._largest = 0
        self._simulation.watch = self._watch
        self._members: list[int] = []  # of the round that is being played
        self._total: FloatMatrix | None = None  # the sum of its updates

    def look(self, number: int) -> Findings:
        """Watch until the end of this round, run all attacks, and judge them."""
        simulation, data = self._simulation, self._model.training
        while simulation.round_number < number:
            simulation.play_round()
            self._end_round()
        senders = Senders((self._named > 0).astype(np.uint8), np.arange(len(self._users), dtype=np.int32))
        attacks = with_own_attacks(ATTACKS[self._sees], "updates", self._sees)
        return judge_everyone(
            number, data, self._users, self._sent, attacks, view_of=lambda rows: self._view(rows, senders)
        )

    def about(self, seconds: float) -> dict[str, Any]:
        """A description of the audit itself."""
        return about_audit(
            self._model.training,
            sees=self._sees,
            threat_model=THREAT_MODELS[self._sees],
            cohort=self._largest,
            followed=len(self._users),
            attacked=len(self._users),
            shadows=0,
            rounds=self._simulation.round_number,
            training_seconds=self._model.report["seconds"],
            audit_seconds=seconds,
        )

    def _watch(self, user: int, broadcast: Any, result: ClientResult) -> None:
        """Read one update."""
        self._broadcast = broadcast
        table = changed_rows(self._simulation.method, result.update)
        moved = row_norms(table)
        self._members.append(user)
        self._total = table if self._total is None else self._total + table
        self._updates += moved > 0
        row = self._row[user]
        if row < 0:
            return
        if self._sees == "anonymous":  # nothing links it to the updates before
            self._named[row], self._strength[row] = 0, 0.0
        self._named[row] += moved > 0
        self._strength[row] += moved
        self._last[row] = result.update
        shared = shared_profile_of(self._simulation.shared_profiles, self._model.training.profiles, user)
        disclosed = shared.profile[shared.real]
        if result.positives is not None:
            disclosed = np.intersect1d(disclosed, result.positives)
        self._sent[row, disclosed[moved[disclosed] > 0]] = True

    def _end_round(self) -> None:
        """For the server of sums: add what the round's sum changes to the notes of those who took part."""
        if self._total is not None:
            rows = self._row[np.array(self._members)]
            rows, mean = rows[rows >= 0], row_norms(self._total) / len(self._members)
            self._in_rounds[rows] += mean
            self._took_part[rows] += 1
            self._sums += mean
        self._largest = max(self._largest, len(self._members))
        self._members, self._total = [], None

    def _difference(self) -> FloatMatrix:
        """How much further items change in the rounds that a user takes part in than in the others."""
        there, rounds = self._took_part[:, None], self._simulation.round_number
        difference = self._in_rounds / np.maximum(there, 1)
        difference -= (self._sums - self._in_rounds) / np.maximum(rounds - there, 1)
        difference[(self._took_part == 0) | (self._took_part == rounds)] = 0  # nothing to compare with
        return difference.astype(np.float32)

    def _view(self, rows: IntVector, senders: Senders) -> UpdatesView:
        data, users = self._model.training, self._users[rows]
        typical = max(1, round(len(data) / data.n_users))
        known, popularity = known_policies(self._model.choices, users), self._updates.astype(np.float32)
        if self._sees == "sums":
            nothing = np.zeros((len(rows), 0), dtype=np.float32)
            strength = self._difference()[rows]
            summed = self._sums.astype(np.float32)
            return UpdatesView(nothing.astype(np.int32), strength, [], self._broadcast, nothing, summed, typical, known)
        named = self._named[rows]
        return UpdatesView(
            named,
            self._strength[rows].astype(np.float32),
            [self._last[row] for row in rows],
            self._broadcast,
            senders.scores((named > 0).astype(np.uint8), rows),
            popularity,
            typical,
            known,
        )


def refuse(_model: FederatedModel, *, sees: str, **_how: Any) -> None:
    """Refuse what cannot be audited, before any long work."""
    if sees not in ATTACKS:
        raise SettingError(f"No server sees {sees!r} of this method; there are {', '.join(ATTACKS)}.")
