"""The audit of a method that brings its own messages: its run is played once more, and every message read.

Followed are a sample of people (200 unless told), because notes are kept of every item and of whole messages. What a
message moves is read off by comparing it with the public model (protocol/steps/device.py, `moved_table`); a server that
sees sums has the sum of a round's messages, and who took part.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from federank._numerics.arrays import FloatMatrix, FloatVector, IntVector
from federank.audit.observer import (
    KnownPolicies,
    Senders,
    draw_users,
    judge_everyone,
    known_policies,
    with_own_attacks,
)
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
from federank.data.interactions import Interactions
from federank.errors import SettingError
from federank.federation.method import Message, moved_table, row_lengths
from federank.methods.federated_method import FederatedMethod
from federank.simulation.custom import play
from federank.simulation.options import TrainingOptions

# What a honest-but-curious server knows about some people from messages of a form that it was not made for: a row per
# person.


SeenMessage = dict[str, NDArray[Any]]


class StepsView(NamedTuple):
    """What the server has that reads messages; with sums alone, `named`, `last` and `neighbours` are empty."""

    named: NDArray[np.int32]  # people x items: how many of a person's messages move the item
    strength: FloatMatrix  # people x items: how far they move it; of sums: how much further in the person's rounds
    last: list[SeenMessage]  # each person's last message, as it was sent
    broadcast: SeenMessage  # the public model, as devices were told it when the last round began
    neighbours: FloatMatrix  # people x items: what the messages of those move whose messages move alike items
    popularity: FloatVector  # items: how many messages move them, over everyone who is followed
    typical_size: int  # of a history
    policies: KnownPolicies


# Attacks on messages of any form: which items someone has.


def popularity(view: StepsView) -> Guess:
    """Rank everything by how many messages move it."""
    return claim_typical(np.tile(view.popularity, (len(view.strength), 1)), view.typical_size)


def presence(view: StepsView) -> Guess:
    """Claim everything that a person's messages move."""
    return claim(view.named > 0)


def frequency(view: StepsView) -> Guess:
    """Rank by how many of a person's messages move an item."""
    return claim_typical(view.named.astype(np.float32), view.typical_size)


def magnitude(view: StepsView) -> Guess:
    """Rank by how far a person's messages move an item."""
    return claim_typical(view.strength, view.typical_size)


def neighbours(view: StepsView) -> Guess:
    """Rank by what the messages of those move who send alike."""
    return claim_typical(view.neighbours, view.typical_size)


def fused(view: StepsView) -> Guess:
    """How often, how far, and what those move who send alike, together."""
    often = standardised(view.named.astype(np.float32))
    scores = 2 * often + standardised(view.strength) + 0.5 * standardised(view.neighbours)
    return claim_typical(scores.astype(np.float32), view.typical_size)


def membership(view: StepsView) -> Guess:
    """Rank by how much further items move in a person's rounds."""
    return claim_typical(view.strength, view.typical_size)


_READING: dict[str, Attack] = {
    BASELINE: popularity,
    "presence": presence,
    "frequency": frequency,
    "magnitude": magnitude,
    "neighbours": neighbours,
    "fused": fused,
}
STEPS_ATTACKS: dict[str, dict[str, Attack]] = {
    "updates": _READING,
    "anonymous": {name: _READING[name] for name in (BASELINE, "presence", "magnitude")},
    "sums": {BASELINE: popularity, "membership": membership},
}
"""What each kind of honest-but-curious server tries."""


FOLLOWED = 200
"""How many people are followed unless told otherwise."""


def audit_steps_training(
    model: FederatedMethod,
    train: Interactions,
    *,
    sees: str,
    people: int | None,
    per_epoch: bool,
    training_options: TrainingOptions | None,
) -> Audited:
    """Train a model, then play its run once more and watch."""
    _refuse(sees)
    model.fit(train, training_options=None if training_options is None else replace(training_options, threads=1))
    return audit_steps_model(model, sees=sees, people=people, per_epoch=per_epoch)


def audit_steps_model(model: FederatedMethod, *, sees: str, people: int | None, per_epoch: bool = False) -> Audited:
    """Audit a trained model: findings after each round if asked, else after the last."""
    _refuse(sees)
    started = time.perf_counter()
    audit = _Audit(model, sees, people)
    last = model.settings.rounds
    findings = [audit.look(number) for number in range(1 if per_epoch else last, last + 1)]
    return Audited(findings, audit.about(time.perf_counter() - started))


class _Audit:
    """An audit while it runs: the run that is played once more, and the notes about it."""

    def __init__(self, model: FederatedMethod, sees: str, wanted: int | None) -> None:
        self._model, self._sees, data = model, sees, model.training
        self._federation = model.federation()
        recipe = self._federation.recipe
        drawn = draw_users(recipe.seed, recipe.participants, wanted)
        self._people: IntVector = np.sort(drawn[: wanted or FOLLOWED])
        shape = len(self._people), data.n_items
        self._row = np.full(data.n_users, -1, dtype=np.int64)
        self._row[self._people] = np.arange(len(self._people))
        self._named = np.zeros(shape, dtype=np.int32)
        self._strength = np.zeros(shape, dtype=np.float64)
        self._last: list[Message] = [{} for _ in self._people]
        self._took_part = np.zeros(len(self._people), dtype=np.int64)
        self._messages = np.zeros(data.n_items, dtype=np.float64)
        self._sums = np.zeros(data.n_items, dtype=np.float64)  # what rounds move on average, added up
        self._in_rounds = np.zeros(shape, dtype=np.float64)  # the same of the rounds that each person was in
        self._sent = np.zeros(shape, dtype=np.bool_)
        self._broadcast: Message = {}
        self._largest = 0
        self._federation.watch = self._watch
        self._members: list[int] = []  # of the round that is being played
        self._together: FloatMatrix | None = None  # the sum of its messages

    def look(self, number: int) -> Findings:
        """Watch until the end of this round, run all attacks, and judge them."""
        federation, data = self._federation, self._model.training
        while federation.round_number < number:
            play(federation, 1)
            self._end_round()
        senders = Senders((self._named > 0).astype(np.uint8), np.arange(len(self._people), dtype=np.int32))
        attacks = with_own_attacks(STEPS_ATTACKS[self._sees], "steps", self._sees)
        return judge_everyone(
            number, data, self._people, self._sent, attacks, view_of=lambda rows: self._view(rows, senders)
        )

    def about(self, seconds: float) -> dict[str, Any]:
        """What there is to tell about the audit itself."""
        return about_audit(
            self._model.training,
            sees=self._sees,
            threat_model=THREAT_MODELS[self._sees],
            cohort=self._largest,
            followed=len(self._people),
            attacked=len(self._people),
            shadows=0,
            rounds=self._federation.round_number,
            training_seconds=self._model.report["seconds"],
            audit_seconds=seconds,
        )

    def _watch(self, user: int, broadcast: Message, update: Message) -> None:
        """Read one message."""
        self._broadcast = broadcast
        table = moved_table(update, broadcast, self._model.training.n_items, self._model.sends == "tables")
        moved = row_lengths(table)
        self._members.append(user)
        self._together = table if self._together is None else self._together + table
        self._messages += moved > 0
        row = self._row[user]
        if row < 0:
            return
        if self._sees == "anonymous":  # nothing links it to the messages before
            self._named[row], self._strength[row] = 0, 0.0
        self._named[row] += moved > 0
        self._strength[row] += moved
        self._last[row] = update
        federation = self._federation
        profile, shared_profile = federation.profiles.of(user), federation.recipe.shared_profile
        real = shared_profile.real[federation.profiles.starts[user] : federation.profiles.starts[user + 1]]
        mine = profile[real] if len(shared_profile.real) else profile
        self._sent[row, mine[moved[mine] > 0]] = True

    def _end_round(self) -> None:
        """For the server of sums: add what the round's sum moves to the notes of those who took part."""
        if self._together is not None:
            rows = self._row[np.array(self._members)]
            rows, mean = rows[rows >= 0], row_lengths(self._together) / len(self._members)
            self._in_rounds[rows] += mean
            self._took_part[rows] += 1
            self._sums += mean
        self._largest = max(self._largest, len(self._members))
        self._members, self._together = [], None

    def _difference(self) -> FloatMatrix:
        """How much further items move in the rounds that a person takes part in than in the others."""
        there, rounds = self._took_part[:, None], self._federation.round_number
        difference = self._in_rounds / np.maximum(there, 1)
        difference -= (self._sums - self._in_rounds) / np.maximum(rounds - there, 1)
        difference[(self._took_part == 0) | (self._took_part == rounds)] = 0  # nothing to compare with
        return difference.astype(np.float32)

    def _view(self, rows: IntVector, senders: Senders) -> StepsView:
        data, people = self._model.training, self._people[rows]
        typical = max(1, round(len(data) / data.n_users))
        known, popularity = known_policies(self._model.choices, people), self._messages.astype(np.float32)
        if self._sees == "sums":
            nothing = np.zeros((len(rows), 0), dtype=np.float32)
            strength = self._difference()[rows]
            summed = self._sums.astype(np.float32)
            return StepsView(nothing.astype(np.int32), strength, [], self._broadcast, nothing, summed, typical, known)
        named = self._named[rows]
        return StepsView(
            named,
            self._strength[rows].astype(np.float32),
            [self._last[row] for row in rows],
            self._broadcast,
            senders.scores((named > 0).astype(np.uint8), rows),
            popularity,
            typical,
            known,
        )


def _refuse(sees: str) -> None:
    if sees not in STEPS_ATTACKS:
        raise SettingError(f"No server sees {sees!r} of this method; there are {', '.join(STEPS_ATTACKS)}.")
