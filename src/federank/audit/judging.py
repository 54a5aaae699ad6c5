"""Attack, then judge: every attack sees the same views, and its guesses are held against true histories."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from federank.arrays import IntVector
from federank.audit.findings import Findings
from federank.audit.guess import Attack, Guess
from federank.audit.marks import Means, best_of, means_of
from federank.audit.scoring import Marks, judge
from federank.checks import whole
from federank.data.interactions import Interactions

BLOCK_CELLS = 2**20
"""People are attacked a block at a time: so many (person, item) cells at most."""


class Attacked(NamedTuple):
    """A block of people: what the server knows of them, and what is true."""

    view: Any
    histories: list[IntVector]
    sent: NDArray[np.bool_]  # people x items: what of their histories has left their devices


def judge_attacks(
    attacks: Mapping[str, Attack],
    people: Iterable[Attacked],
    note: Callable[[str, Guess, Attacked], None] | None = None,
) -> Means:
    """Each attack's mean marks; every guess is also shown to `note`, where it is given."""
    marks: dict[str, list[Marks]] = {name: [] for name in attacks}
    for some in people:
        for name, attack in attacks.items():
            guess = attack(some.view)
            marks[name].append(judge(guess, some.histories, some.sent))
            if note is not None:
                note(name, guess, some)
    return means_of(marks)


def judge_everyone(
    epoch: int,
    data: Interactions,
    people: IntVector,
    sent: NDArray[np.bool_],
    attacks: Mapping[str, Attack],
    view_of: Callable[[IntVector], Any],
) -> Findings:
    """What these attacks find about these people, a block at a time; `sent` has a row for each of them."""
    everyone, sizes = np.arange(len(people), dtype=np.int32), data.profiles.sizes[people]
    blocks = (
        Attacked(view_of(rows), [data.profiles.of(person) for person in people[rows]], sent[rows])
        for rows in in_blocks(everyone, data.n_items)
    )
    means = judge_attacks(attacks, blocks)
    return Findings(
        epoch=epoch,
        disclosed_share=float(np.mean(sent.sum(axis=1) / np.maximum(sizes, 1))),
        base_rate=float(np.mean(sizes) / data.n_items),
        attacks=means,
        best=best_of(means),
        categories=None,
    )


def in_blocks(rows: IntVector, n_items: int) -> Iterable[IntVector]:
    """These rows, a block at a time."""
    size = max(1, BLOCK_CELLS // n_items)
    return (rows[start : start + size] for start in range(0, len(rows), size))


def refuse_nobody(wanted: int | None) -> None:
    """Whoever says how many people to follow must say at least one."""
    if wanted is not None:
        whole("people", wanted, 1)


def draw_people(seed: int, participants: IntVector, wanted: int | None) -> IntVector:
    """Everybody who can take part, in the order in which they are picked to be followed."""
    refuse_nobody(wanted)
    return np.random.default_rng(seed).permutation(participants)
