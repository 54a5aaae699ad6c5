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
from federank.protocol.recipes import Recipe
from federank.recommenders.fpl import FPL

MOST_CELLS = 32_000_000
"""Unless told otherwise, so many (person, item) cells are kept at most: about 36 megabytes of notes."""
_LEAST_PEOPLE = 200
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
    observer: Observer | None = None

    def look(epoch: int) -> None:
        nonlocal observer, seconds
        started = time.perf_counter()
        if observer is None:
            federation = _federation_of(model, 0)
            observer = Observer(federation, people_to_follow(federation.recipe, model.training.n_items, people))
        if per_epoch or epoch == model.settings.epochs:
            findings.append(_look(model, observer, epoch))
        seconds += time.perf_counter() - started

    model.fit(train, after_epoch=look, **how)
    assert observer is not None
    return findings, _about(model, observer, seconds)


def audit_model(model: FPL, *, people: int | None = None) -> tuple[list[Findings], dict[str, Any]]:
    """Audit a trained model by making its run's draws again; nothing is trained."""
    started = time.perf_counter()
    federation = _federation_of(model, 0)
    observer = Observer(federation, people_to_follow(federation.recipe, model.training.n_items, people))
    findings = [_look(model, observer, model.settings.epochs)]
    return findings, _about(model, observer, time.perf_counter() - started)


def people_to_follow(recipe: Recipe, n_items: int, wanted: int | None) -> IntVector:
    """Who is followed: all who can take part, or so many of them, drawn with the run's seed."""
    if wanted is not None and wanted < 1:
        raise SettingError(f"people is {wanted}; at least 1 must be followed.")
    most = max(_LEAST_PEOPLE, MOST_CELLS // n_items) if wanted is None else wanted
    if most >= len(recipe.participants):
        return recipe.participants
    drawn = np.random.default_rng(recipe.seed).choice(recipe.participants, most, replace=False)
    return np.sort(drawn)


def _federation_of(model: FPL, round_number: int) -> Federation:
    data = model.training
    tables = (model.item_vectors, model.item_biases, model.user_vectors)
    return Federation(model.recipe(data), data.profiles, *tables, round_number)


def _look(model: FPL, observer: Observer, epoch: int) -> Findings:
    """Watch until the end of this epoch, run all attacks, and judge them."""
    federation, data = observer.federation, model.training
    federation.round_number = epoch * federation.rounds_per_epoch
    observer.watch_until(federation.round_number)
    profiles = [data.profiles.of(person) for person in observer.people]
    marks: dict[str, list[Marks]] = {name: [] for name in ATTACKS}
    for rows, view in _views(federation, observer):
        sent = view.times_positive > 0
        for name, attack in ATTACKS.items():
            marks[name].append(judge(attack(view), profiles[rows], sent))
    disclosed = [np.mean(observer.sightings.as_positive[row, profile] > 0) for row, profile in enumerate(profiles)]
    return Findings(
        epoch=epoch,
        disclosed_share=float(np.mean(disclosed)),
        base_rate=float(np.mean([len(profile) for profile in profiles]) / data.n_items),
        attacks=_means(marks),
    )


def _views(federation: Federation, observer: Observer) -> Iterator[tuple[slice, View]]:
    """What the server knows, for a block of people at a time."""
    n_items, recipe = len(federation.item_biases), federation.recipe
    broadcast = make_broadcast(federation.round_number, federation.item_vectors, federation.item_biases)
    typical = max(1, round(recipe.rounds_per_epoch * recipe.clients_per_round / len(recipe.triples)))
    updates = next_updates(federation, observer.people)
    block = max(1, _BLOCK_CELLS // n_items)
    for start in range(0, len(observer.people), block):
        rows = slice(start, min(start + block, len(observer.people)))
        seen = observer.sightings
        yield (
            rows,
            View(
                times_positive=seen.as_positive[rows],
                seen_negative=observer.negatives_of(rows),
                negative_rows=seen.negative_rows[rows],
                updates=[next(updates) for _ in range(rows.stop - rows.start)],
                broadcast=broadcast,
                negative_regulariser=recipe.negative_regulariser,
                typical_size=typical,
            ),
        )


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


def _about(model: FPL, observer: Observer, seconds: float) -> dict[str, Any]:
    data = model.training
    return {
        "threat_model": "linkable",
        "data": data.name,
        "users": data.n_users,
        "items": data.n_items,
        "people_followed": len(observer.people),
        "rounds": observer.round_number,
        "seconds": {"training": model.report["seconds"], "audit": seconds},
    }
