"""Participation in a simulation: who takes part in a round, and whose upload arrives, by (seed, user, round)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from federank._numerics.arrays import IntVector
from federank.federation.rng import DROPOUT, ONLINE, happens, words, words_wrap_around


class Schedule(NamedTuple):
    """Which clients can take part, and how reliably."""

    seed: int
    rounds: int
    online: float  # probability that a client is online when a round begins
    dropout: float  # probability that a client takes part but its upload never arrives
    participants: IntVector  # clients with a shared profile, ascending
    uploads: IntVector  # per client: maximum number of uploads over its lifetime


def selected(schedule: Schedule, round_number: int, sent: IntVector) -> IntVector:
    """The clients of this round, ascending; `sent` is each client's number of uploads so far."""
    able: IntVector = schedule.participants[sent[schedule.participants] < schedule.uploads[schedule.participants]]
    return able if schedule.online >= 1 else able[_happens(schedule, able, ONLINE, round_number, schedule.online)]


def arriving(schedule: Schedule, round_number: int, clients: IntVector) -> IntVector:
    """The clients whose upload arrives."""
    if schedule.dropout <= 0:
        return clients
    return clients[~_happens(schedule, clients, DROPOUT, round_number, schedule.dropout)]


def _happens(
    schedule: Schedule, clients: IntVector, purpose: int, round_number: int, probability: float
) -> NDArray[np.bool_]:
    with words_wrap_around():
        seed, number = np.uint32(schedule.seed), np.uint32(round_number)
        drawn = words(seed, clients.astype(np.uint32), purpose, number, np.uint32(0))[0]
    return np.asarray(happens(drawn, probability))
