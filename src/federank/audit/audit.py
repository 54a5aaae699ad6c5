"""The audit of a run: what a curious server could learn about the people behind the devices.

1. Follow people: everybody, or a drawn sample where people x items would pass a budget.
2. Watch: note what their Updates show (traffic.py), and get one more Update of each (updates.py).
3. Attack: each attack sees the same View and answers with a Guess (attacks/).
4. Judge the guesses by the true histories (scoring.py), and put the means beside what popularity alone tells.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from federank.arrays import IntVector
from federank.audit.attacks import ATTACKS, BASELINE
from federank.audit.scoring import Marks, judge
from federank.audit.traffic import Observer
from federank.audit.updates import next_updates
from federank.audit.view import View
from federank.data.interactions import Interactions
from federank.engines.federation import Federation
from federank.errors import SettingError
from federank.protocol.distribution import make_broadcast
from federank.recommenders.fpl import FPL

THREAT_MODEL = "each device's Updates, linkable over rounds, and the public model"
"""What the server of this audit sees."""

MOST_CELLS = 2**27
"""Unless told otherwise, notes are kept of so many (person, item) cells at most: about 150 megabytes."""
_CELLS_PER_TRIPLE = 2
_FEW_CELLS, _MANY_CELLS = 4_000_000, 32_000_000
_BLOCK_CELLS = 2**21


@dataclass(frozen=True, kw_only=True)
class Findings:
    """What the attacks have found by the end of an epoch: means over the people followed."""

    epoch: int
    disclosed_share: float
    base_rate: float
    attacks: dict[str, dict[str, float | None]]


def audit_training(
    model: FPL, train: Interactions, *, people: int | None = None, per_epoch: bool = False, **how: Any
) -> tuple[list[Findings], dict[str, Any]]:
    """Train a model and watch its run: findings (of each epoch if asked, else of the last), and about the audit."""
    findings: list[Findings] = []
    seconds = 0.0
    audit: _Audit | None = None

    def look(epoch: int) -> None:
        nonlocal audit, seconds
        started = time.perf_counter()
        if audit is None:
            audit = _Audit(model, people, looks=model.settings.epochs if per_epoch else 1)
        if per_epoch or epoch == model.settings.epochs:
            findings.append(audit.look(epoch))
        seconds += time.perf_counter() - started

    model.fit(train, after_epoch=look, **how)
    assert audit is not None  # every run has an epoch
    return findings, audit.about(seconds)


def audit_model(model: FPL, *, people: int | None = None) -> tuple[list[Findings], dict[str, Any]]:
    """Audit a trained model by making its run's draws again; nothing is trained."""
    started = time.perf_counter()
    audit = _Audit(model, people, looks=1)
    findings = [audit.look(model.settings.epochs)]
    return findings, audit.about(time.perf_counter() - started)


def draw_people(people: IntVector, most: int, seed: int) -> IntVector:
    """All of these people, or so many of them if there are more."""
    if most >= len(people):
        return people
    return np.sort(np.random.default_rng(seed).choice(people, most, replace=False))


class _Audit:
    """An audit while it runs: the observer, and who is attacked at each look."""

    def __init__(self, model: FPL, wanted: int | None, looks: int) -> None:
        if wanted is not None and wanted < 1:
            raise SettingError(f"people is {wanted}; at least 1 must be followed.")
        self._model, data = model, model.training
        recipe, tables = model.recipe(data), (model.item_vectors, model.item_biases, model.user_vectors)
        self._federation = Federation(recipe, data.profiles, *tables)
        triples = self._federation.steps_per_round * recipe.rounds_per_epoch * model.settings.epochs / looks
        cells = min(_MANY_CELLS, max(_FEW_CELLS, int(_CELLS_PER_TRIPLE * triples)))
        followed, attacked = (
            wanted or max(1, most_cells // data.n_items) for most_cells in (max(MOST_CELLS, cells), cells)
        )
        self._observer = Observer(self._federation, draw_people(recipe.participants, followed, recipe.seed))
        rows = np.arange(len(self._observer.people), dtype=np.int32)
        self._attacked = draw_people(rows, attacked, recipe.seed)

    def look(self, epoch: int) -> Findings:
        """Watch until the end of this epoch, run all attacks, and judge them."""
        federation, observer, profiles = self._federation, self._observer, self._model.training.profiles
        federation.round_number = epoch * federation.rounds_per_epoch
        observer.watch_until(federation.round_number)
        marks: dict[str, list[Marks]] = {name: [] for name in ATTACKS}
        for people, view in _views(federation, observer, self._attacked):
            histories, sent = [profiles.of(person) for person in people], view.times_positive > 0
            for name, attack in ATTACKS.items():
                marks[name].append(judge(attack(view), histories, sent))
        seen = observer.sightings.as_positive
        disclosed = [np.mean(seen[row, profiles.of(person)] > 0) for row, person in enumerate(observer.people)]
        return Findings(
            epoch=epoch,
            disclosed_share=float(np.mean(disclosed)),
            base_rate=float(np.mean(profiles.sizes[observer.people]) / self._model.training.n_items),
            attacks=_means(marks),
        )

    def about(self, seconds: float) -> dict[str, Any]:
        """What there is to tell about the audit itself."""
        data = self._model.training
        return {
            "threat_model": THREAT_MODEL,
            "data": data.name,
            "users": data.n_users,
            "items": data.n_items,
            "people_followed": len(self._observer.people),
            "people_attacked": len(self._attacked),
            "rounds": self._observer.round_number,
            "seconds": {"training": self._model.report["seconds"], "audit": seconds},
        }


def _views(federation: Federation, observer: Observer, attacked: IntVector) -> Iterator[tuple[IntVector, View]]:
    """What the server knows of those who are attacked (rows of the observer's notes), a block of people at a time."""
    n_items, recipe = len(federation.item_biases), federation.recipe
    broadcast = make_broadcast(federation.round_number, federation.item_vectors, federation.item_biases)
    typical = max(1, round(recipe.rounds_per_epoch * recipe.clients_per_round / len(recipe.triples)))
    block = max(1, _BLOCK_CELLS // n_items)
    for start in range(0, len(attacked), block):
        rows = attacked[start : start + block]
        people = observer.people[rows]
        view = View(
            times_positive=observer.sightings.as_positive[rows],
            seen_negative=observer.negatives_of(rows),
            negative_rows=observer.sightings.negative_rows[rows],
            updates=list(next_updates(federation, people)),
            broadcast=broadcast,
            negative_regulariser=recipe.negative_regulariser,
            typical_size=typical,
        )
        yield people, view


def _means(marks: dict[str, list[Marks]]) -> dict[str, dict[str, float | None]]:
    """Each attack's mean marks, and by how much its order is better than popularity's, or chance's if that is worse."""
    found = {}
    for name, parts in marks.items():
        joined = Marks(*(np.concatenate(column) for column in zip(*parts, strict=True)))
        means = {mark: _mean(values) for mark, values in joined._asdict().items()}
        # An attack that claims nothing about anybody is right about nothing.
        found[name] = means | {"precision": means["precision"] or 0.0}
    for mark, gain in (("auc", "gain"), ("auc_held_back", "gain_held_back")):
        known = found[BASELINE][mark]
        for means in found.values():
            value = means[mark]
            means[gain] = None if value is None or known is None else value - max(known, 0.5)
    return found


def _mean(values: NDArray[np.float64]) -> float | None:
    judged = values[~np.isnan(values)]
    return float(judged.mean()) if len(judged) else None
