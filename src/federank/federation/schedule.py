"""Participation in a simulation: who takes part in a round, and whose upload arrives, by (seed, user, round)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from federank._numerics.arrays import IntVector
from federank.federation.rng import COHORT, DROPOUT, ONLINE, happens, words, words_wrap_around

_NO_COHORTS: IntVector = np.zeros(0, dtype=np.int32)
_NO_TRACE: NDArray[np.bool_] = np.zeros((0, 0), dtype=np.bool_)


class Schedule(NamedTuple):
    """Which clients can take part, and how reliably."""

    seed: int
    rounds: int
    online: float  # probability that a client is online when a round begins
    dropout: float  # probability that a client takes part but its upload never arrives
    participants: IntVector  # clients with a shared profile, ascending
    uploads: IntVector  # per client: maximum number of uploads over its lifetime
    cohorts: int = 1  # fixed groups of clients; rounds invite one after the other
    cohort: IntVector = _NO_COHORTS  # per client: its cohort, -1 for those who never take part
    trace: NDArray[np.bool_] = _NO_TRACE  # rounds x clients: who is online, repeated from its end; no rows: none


def selected(schedule: Schedule, round_number: int, sent: IntVector) -> IntVector:
    """The clients of this round, ascending; `sent` is each client's number of uploads so far."""
    able: IntVector = schedule.participants
    if schedule.cohorts > 1:
        able = able[schedule.cohort[able] == round_number % schedule.cohorts]
    able = able[sent[able] < schedule.uploads[able]]
    if len(schedule.trace):
        online: IntVector = able[schedule.trace[round_number % len(schedule.trace), able]]
        return online
    return able if schedule.online >= 1 else able[_happens(schedule, able, ONLINE, round_number, schedule.online)]


def arriving(schedule: Schedule, round_number: int, clients: IntVector) -> IntVector:
    """The clients whose upload arrives."""
    if schedule.dropout <= 0:
        return clients
    return clients[~_happens(schedule, clients, DROPOUT, round_number, schedule.dropout)]


def cohorts_of(seed: int, participants: IntVector, cohorts: int, n_users: int) -> IntVector:
    """Each client's cohort for its lifetime, of equal sizes, in an order drawn from each client's own word."""
    cohort = np.full(n_users, -1, dtype=np.int32)
    drawn = _words(seed, participants, COHORT, 0)
    order = np.lexsort((participants, drawn))
    cohort[participants[order]] = np.arange(len(order)) * cohorts // len(order)
    return cohort


def _happens(
    schedule: Schedule, clients: IntVector, purpose: int, round_number: int, probability: float
) -> NDArray[np.bool_]:
    return np.asarray(happens(_words(schedule.seed, clients, purpose, round_number), probability))


def _words(seed: int, clients: IntVector, purpose: int, round_number: int) -> NDArray[np.uint32]:
    """One random word for each of these clients."""
    with words_wrap_around():
        drawn = words(np.uint32(seed), clients.astype(np.uint32), purpose, np.uint32(round_number), np.uint32(0))[0]
    return np.asarray(drawn)
