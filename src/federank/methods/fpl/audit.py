"""The audit of a run: what a honest-but-curious server could learn about the people behind the devices.

1. Follow people: everyone, or a drawn sample where people x items would pass a budget. A few devices are the
   attacker's own: it practises on them, and they are not judged.
2. Watch: note what their Updates show (traffic.py), or the sums over cohorts (sums/), and get one more Update of each
   (updates.py).
3. Attack: each attack sees the same View (views.py) and answers with a Guess (attacks/).
4. Judge the guesses by the true histories (scoring.py), and put the means beside what popularity alone shows
   (marks.py).
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from federank._numerics.arrays import IntVector
from federank.audit.observer import Attacked, draw_users, judge_attacks, with_own_attacks
from federank.audit.scoring import (
    BASELINE,
    THREAT_MODELS,
    Audited,
    Findings,
    Guess,
    about_audit,
    best_of,
    judge_shares,
    table_of,
)
from federank.data.interactions import Interactions
from federank.errors import SettingError
from federank.methods.fpl.attacks import ATTACKS, ShadowModel, learn
from federank.methods.fpl.observer import Observer, SumsObserver, views
from federank.methods.fpl.recommender import FederatedPairs
from federank.methods.fpl.settings import Recipe
from federank.methods.fpl.simulation import Federation
from federank.simulation.options import TrainingOptions

# Whom an audit follows, and whom it attacks: everyone while there is room, else samples drawn with the seed.


MOST_CELLS = 2**27
"""By default, notes are kept of this many (person, item) cells at most: about 150 megabytes."""
MOST_CELLS_OF_SUMS = 2**24
"""The same where sums are seen, whose notes take 9 bytes a cell: also about 150 megabytes."""
_CELLS_PER_TRIPLE = 0.25
_FEW_CELLS, _MANY_CELLS = 300_000, 32_000_000
_MOST_SHADOWS, _MOST_SHADOW_CELLS = 50, 500_000
_FEWEST_USERS = 4


class Followed(NamedTuple):
    """Who is followed; all but `everyone` are positions in it."""

    everyone: IntVector  # user numbers, ascending
    targets: IntVector  # those who are not the attacker's own
    attacked: IntVector  # those of them that are attacked
    shadows: IntVector  # the attacker's own


def follow(recipe: Recipe, n_items: int, wanted: int | None, triples: float, *, sums: bool) -> Followed:
    """Draw whom to follow in a run of this many triples; `wanted` asks for a number of people."""
    people = draw_users(recipe.seed, recipe.participants, wanted)
    cells = min(_MANY_CELLS, max(_FEW_CELLS, int(_CELLS_PER_TRIPLE * triples)))
    workspace = MOST_CELLS_OF_SUMS if sums else max(MOST_CELLS, cells)
    n_shadows = 0
    if len(people) >= _FEWEST_USERS:
        n_shadows = max(2, min(len(people) // 10, _MOST_SHADOWS, _MOST_SHADOW_CELLS // n_items))
    n_targets = min(wanted or max(1, workspace // n_items), len(people) - n_shadows)
    n_attacked = min(wanted or max(1, cells // n_items), n_targets)
    drawn = people[: n_shadows + n_targets]
    everyone = np.sort(drawn)

    def positions(some: IntVector) -> IntVector:
        return np.sort(np.searchsorted(everyone, some)).astype(np.int32)

    targets = drawn[n_shadows:]
    return Followed(everyone, positions(targets), positions(targets[:n_attacked]), positions(drawn[:n_shadows]))


_BLOCK = 500


ADVERSARIES = tuple(THREAT_MODELS)
"""What the server may see."""


def audit_training(
    model: FederatedPairs,
    train: Interactions,
    *,
    sees: str,
    people: int | None,
    per_epoch: bool,
    training_options: TrainingOptions | None,
) -> Audited:
    """Train a model and watch its run: findings (of each epoch if asked, else of the last), and about the audit."""
    training_options = training_options or TrainingOptions()
    asked = training_options.after_epoch
    findings: list[Findings] = []
    seconds = 0.0
    audit: _Audit | None = None

    def look(epoch: int) -> None:
        nonlocal audit, seconds
        started = time.perf_counter()
        if audit is None:
            audit = _Audit(model, sees, people, looks=model.pairs().epochs if per_epoch else 1)
        if per_epoch or epoch == model.pairs().epochs:
            findings.append(audit.look(epoch))
        seconds += time.perf_counter() - started
        if asked is not None:
            asked(epoch)

    model.fit(train, training_options=replace(training_options, after_epoch=look))
    assert audit is not None  # every run has an epoch
    return Audited(findings, audit.about(seconds))


def audit_model(model: FederatedPairs, *, sees: str, people: int | None) -> Audited:
    """Audit a trained model by making its run's draws again (and for sums its rounds)."""
    started = time.perf_counter()
    audit = _Audit(model, sees, people, looks=1)
    findings = [audit.look(model.pairs().epochs)]
    return Audited(findings, audit.about(time.perf_counter() - started))


class _Audit:
    """An audit while it runs: the observers, and who is attacked at each look."""

    def __init__(self, model: FederatedPairs, sees: str, wanted: int | None, looks: int) -> None:
        if sees not in THREAT_MODELS:
            raise SettingError(f"No server sees {sees!r}; there are {', '.join(THREAT_MODELS)}.")
        self._model, data = model, model.training
        recipe, tables = model.recipe(data), (model.item_vectors, model.item_biases, model.user_vectors)
        self._federation = Federation.of_model(model.pairs().method(data.n_items), recipe, data.profiles, *tables)
        self._sees = _as_seen(sees, recipe)
        triples = self._federation.steps_per_round * recipe.rounds_per_epoch * model.pairs().epochs / looks
        self._followed = follow(recipe, data.n_items, wanted, triples, sums=self._sees == "sums")
        self._observer = Observer(self._federation, self._followed.everyone)
        self._sums: SumsObserver | None = None
        if self._sees == "sums":
            established = Federation.established(model.pairs(), recipe, data.profiles, data.n_items)
            self._sums = SumsObserver(established, self._followed.everyone)
        self._table = None if data.categories is None else table_of(data.categories)

    def look(self, epoch: int) -> Findings:
        """Watch until the end of this epoch, run all attacks, and judge them."""
        federation, followed, profiles = self._federation, self._followed, self._model.training.profiles
        federation.round_number = epoch * federation.rounds_per_epoch
        for observer in (self._observer, self._sums):
            if observer is not None:
                observer.watch_until(federation.round_number)
        shadow_model = self._shadow_model()
        untaught = {name for name, lesson in zip(("learned", "held_back"), shadow_model, strict=True) if lesson is None}
        ours = {name: attack for name, attack in ATTACKS[self._sees].items() if name not in untaught}
        attacks = with_own_attacks(ours, "fpl", self._sees)
        kinds: dict[str, list[tuple[float, float]]] = {BASELINE: [], "fused": []}

        def note(name: str, guess: Guess, some: Attacked) -> None:
            if self._table is not None and name in kinds:
                kinds[name] += judge_shares(guess, some.histories, self._table, some.view.typical_size)

        people = (
            Attacked(view, [profiles.of(person) for person in followed.everyone[rows]], self._really_sent(rows))
            for rows, view in self._views(followed.attacked, shadow_model)
        )
        means = judge_attacks(attacks, people, note)
        targets = followed.everyone[followed.targets]
        return Findings(
            epoch=epoch,
            disclosed_share=self._disclosed_share(),
            base_rate=float(np.mean(profiles.sizes[targets]) / self._model.training.n_items),
            attacks=means,
            best=best_of(means),
            categories={
                name: dict(zip(("error", "correlation"), np.mean(judged, axis=0).tolist(), strict=True))
                for name, judged in kinds.items()
                if judged
            }
            or None,
        )

    def _disclosed_share(self) -> float:
        """The mean share of a history that was sent as liked at least once, over all who are followed."""
        everyone, profiles, shares = self._followed.everyone, self._model.training.profiles, []
        for start in range(0, len(self._followed.targets), _BLOCK):
            rows = self._followed.targets[start : start + _BLOCK]
            sent = self._really_sent(rows)
            shares += [np.mean(sent[position, profiles.of(person)]) for position, person in enumerate(everyone[rows])]
        return float(np.mean(shares))

    def _views(self, rows: IntVector, shadow_model: tuple[ShadowModel | None, ShadowModel | None]) -> Any:
        choices = self._model.choices
        return views(self._sees, self._federation, self._observer, self._sums, rows, choices, shadow_model)

    def _really_sent(self, rows: IntVector) -> NDArray[np.bool_]:
        """People x items: what was sent as liked because it is; a decoy shares nothing, even if it is liked too."""
        sent: NDArray[np.bool_] = self._observer.sightings.as_positive[rows] > 0
        shared_profile = self._federation.recipe.shared_profile
        if len(shared_profile.real) and not shared_profile.real.all():
            for row, person in enumerate(self._followed.everyone[rows]):
                here = slice(shared_profile.starts[person], shared_profile.starts[person + 1])
                sent[row, shared_profile.items[here][~shared_profile.real[here]]] = False
        return sent

    def _shadow_model(self) -> tuple[ShadowModel | None, ShadowModel | None]:
        """What the attacker's own devices teach it: about everything, and about what is held back."""
        shadows, profiles = self._followed.shadows, self._model.training.profiles
        if not len(shadows):
            return None, None
        rows, view = next(self._views(shadows, (None, None)))
        histories = [profiles.of(person) for person in self._followed.everyone[rows]]
        seed = self._federation.recipe.seed
        return learn(view, histories, seed), learn(view, histories, seed, self._really_sent(rows))

    def about(self, seconds: float) -> dict[str, Any]:
        """What is reported about the audit itself."""
        return about_audit(
            self._model.training,
            sees=self._sees,
            threat_model=THREAT_MODELS[self._sees],
            cohort=self._federation.recipe.clients_per_round,
            followed=len(self._followed.targets),
            attacked=len(self._followed.attacked),
            shadows=len(self._followed.shadows),
            rounds=self._observer.round_number,
            training_seconds=self._model.report["seconds"],
            audit_seconds=seconds,
        )


def _as_seen(sees: str, recipe: Recipe) -> str:
    """The threat model whose attacks fit: the sum over one device is its update, and a noisy update is like a sum."""
    one = recipe.clients_per_round == 1
    if recipe.deviation == 0:
        return "updates" if sees == "sums" and one else sees
    # Signs of noisy rows are no certain marks: linked Updates are averaged over rounds, as sums are.
    if sees == "updates" and not one:
        raise SettingError(
            f"Noisy Updates can be linked in an audit only where a round has one device, and here it has "
            f"{recipe.clients_per_round:,}; ask for sums, for anonymous, or for --clients-per-round 1."
        )
    return "sums" if sees == "updates" else sees
