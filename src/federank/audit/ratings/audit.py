"""The audit of a run that learns ratings (FedRec): which items somebody has rated, and how.

Which items: the attacks on what the observer has counted (traffic.py). How: the ratings themselves, from two early
Updates of a few people (attacks/two_steps.py), beside guessing the mean of all ratings.
Everything a device learns is sent in every round, so nothing is ever held back; what hides it are sampled items.
"""

from __future__ import annotations

import time

import numpy as np

from federank.arrays import IntVector
from federank.audit.findings import THREAT_MODELS, Audited, Findings, about_audit
from federank.audit.judging import Attacked, draw_people, in_blocks, judge_attacks
from federank.audit.marks import best_of
from federank.audit.own_attacks import with_own_attacks
from federank.audit.ratings.attacks import RATING_ATTACKS
from federank.audit.ratings.attacks.two_steps import two_steps
from federank.audit.ratings.traffic import RatingObserver
from federank.audit.ratings.updates import two_answers
from federank.audit.ratings.view import RatingView
from federank.data.interactions import Interactions
from federank.engines.conduct import Conduct
from federank.engines.ratings.federation import RatingFederation
from federank.errors import SettingError
from federank.recommenders.methods.ratings import RatingFactors

MOST_CELLS = 2**25
"""Unless told otherwise, notes are kept of so many (person, item) cells at most: 64 megabytes."""
_MOST_READ = 20
"""Of so many people, at most, ratings are recovered."""
_FIRST_ITERATION, _LAST_ITERATION = 2, 10


def audit_rating_training(
    model: RatingFactors,
    train: Interactions,
    *,
    sees: str = "updates",
    people: int | None = None,
    conduct: Conduct | None = None,
) -> Audited:
    """Train a model, then play what its devices have sent once more."""
    _refuse(model, sees)
    return audit_rating_model(model.fit(train, conduct=conduct), sees=sees, people=people)


def audit_rating_model(model: RatingFactors, *, sees: str = "updates", people: int | None = None) -> Audited:
    """Audit a trained model: its run's draws are made again, and its first few rounds are played again."""
    _refuse(model, sees)
    started, data = time.perf_counter(), model.training
    established = RatingFederation.established(model.settings, data)
    drawn = draw_people(model.settings.seed, established.recipe.participants, people)
    followed = np.sort(drawn[: people or max(1, MOST_CELLS // data.n_items)])
    iterations = model.settings.iterations
    observer, one = RatingObserver(established, followed), RatingObserver(established, followed, most_updates=1)
    for watching in (observer, one):
        watching.watch_until(iterations * established.rounds_per_epoch)
    attacks = with_own_attacks(RATING_ATTACKS[sees], "ratings", sees)
    if not established.recipe.implicit:
        attacks.pop("second_rows")
    attacked = (
        Attacked(
            _view(model, observer, one, rows),
            [data.profiles.of(person) for person in followed[rows]],
            np.ones((len(rows), data.n_items), dtype=np.bool_),
        )
        for rows in in_blocks(np.arange(len(followed), dtype=np.int32), data.n_items)
    )
    means = judge_attacks(attacks, attacked)
    findings = Findings(
        epoch=iterations,
        disclosed_share=1.0,
        base_rate=float(np.mean(data.profiles.sizes[followed]) / data.n_items),
        attacks=means,
        best=best_of(means),
        categories=None,
        ratings=_ratings(model, established, np.sort(drawn[:_MOST_READ])) if sees == "updates" else None,
    )
    about = about_audit(
        data,
        sees=sees,
        threat_model=THREAT_MODELS[sees],
        cohort=established.recipe.clients_per_round,
        followed=len(followed),
        attacked=len(followed),
        shadows=0,
        rounds=observer.round_number,
        training_seconds=model.report["seconds"],
        audit_seconds=time.perf_counter() - started,
    )
    return Audited([findings], about)


def _refuse(model: RatingFactors, sees: str) -> None:
    if sees not in RATING_ATTACKS:
        raise SettingError(
            f"Of {model.name} a server that sees {sees} is not audited yet; choose updates or anonymous."
        )
    if not model.settings.federated:
        raise SettingError("Without a federation nothing is sent, and everybody's ratings are in one place already.")


def _view(model: RatingFactors, observer: RatingObserver, one: RatingObserver, rows: IntVector) -> RatingView:
    federation, data = observer.federation, model.training
    second = np.zeros(observer.times_named[rows].shape, dtype=np.bool_)
    if federation.recipe.implicit:
        for row, person in enumerate(observer.people[rows]):
            second[row, data.profiles.of(person)] = True  # the rows of W that an Update has, by the protocol
    times = observer.times_named[rows]
    return RatingView(
        times,
        observer.updates[rows],
        one.times_named[rows] > 0,
        second,
        model.item_vectors,
        max(1, round(len(data) / data.n_users)),
    )


def _ratings(model: RatingFactors, established: RatingFederation, people: IntVector) -> dict[str, dict[str, float]]:
    """How many of these people's ratings are found exactly, and how far off they are, beside the mean of all."""
    data, settings = model.training, model.settings
    assert data.ratings is not None
    last = min(_LAST_ITERATION, settings.iterations) * established.rounds_per_epoch
    first = min(_FIRST_ITERATION, max(settings.iterations - 2, 0))
    found: list[tuple[float, float, float, float]] = []
    mean = float(data.ratings.mean())
    for person, answers in two_answers(established, people, first, last).items():
        if len(answers) < 2:
            continue
        guess = two_steps(answers[0], answers[1], settings.regulariser, settings.lowest, settings.highest)
        start, end = data.profiles.starts[person], data.profiles.starts[person + 1]
        rated, truth = data.profiles.of(person), data.ratings[start:end]
        positions = np.searchsorted(guess.items, rated)  # whatever is rated is in both
        guessed = guess.ratings[positions]
        right, plain = np.mean(np.rint(guessed) == truth), np.mean(np.rint(mean) == truth)
        off, plainly_off = np.abs(guessed - truth).mean(), np.abs(mean - truth).mean()
        found.append((float(right), float(off), float(plain), float(plainly_off)))
    if not found:
        return {}
    right, off, plain, plainly_off = np.mean(found, axis=0).tolist()
    return {"two_steps": {"exact": right, "error": off}, "mean": {"exact": plain, "error": plainly_off}}
