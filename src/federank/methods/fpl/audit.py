"""The audit of FPL: what an honest-but-curious server can learn about users.

1. Choose users to follow: all, or a random sample if users x items exceed a budget. A few are the attacker's own
   clients, which train the shadow model and are not attacked.
2. Observe: count what their updates show, or add up sums over cohorts, and compute one more update of each
   (observer.py).
3. Attack: each attack gets a view and returns a guess (attacks.py).
4. Score the guesses against the true histories (audit/scoring.py), beside the popularity baseline.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from federank._numerics.arrays import IntVector
from federank.audit.observer import Attacked, draw_users, in_blocks, judge_attacks, with_own_attacks
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
from federank.errors import SettingError
from federank.methods.fpl.attacks import ATTACKS, ShadowModel, learn
from federank.methods.fpl.observer import Observer, SumsObserver, views
from federank.methods.fpl.recommender import FPL
from federank.methods.fpl.settings import Recipe
from federank.methods.fpl.simulation import Federation, play_compiled

# Which users an audit follows and attacks: all within a budget, else random samples.


MOST_CELLS = 2**27
"""Maximum number of (user, item) cells by default: about 150 megabytes."""
MOST_CELLS_OF_SUMS = 2**24
"""The same for sums, with 9 bytes per cell: also about 150 megabytes."""
_CELLS_PER_TRIPLE = 0.25
_FEW_CELLS, _MANY_CELLS = 300_000, 32_000_000
_MOST_SHADOWS, _MOST_SHADOW_CELLS = 50, 500_000
_FEWEST_USERS = 4


class Followed(NamedTuple):
    """The users that an audit follows; all fields but `everyone` are positions in it."""

    everyone: IntVector  # user numbers, ascending
    targets: IntVector  # users who are not the attacker's own
    attacked: IntVector  # the targets that are attacked
    shadows: IntVector  # the attacker's own clients


def follow(recipe: Recipe, n_items: int, wanted: int | None, triples: float, *, sums: bool) -> Followed:
    """Choose the users to follow in a run of this many triples; `wanted` is the number of users asked for."""
    users = draw_users(recipe.seed, recipe.participants, wanted)
    cells = min(_MANY_CELLS, max(_FEW_CELLS, int(_CELLS_PER_TRIPLE * triples)))
    workspace = MOST_CELLS_OF_SUMS if sums else max(MOST_CELLS, cells)
    n_shadows = 0
    if len(users) >= _FEWEST_USERS:
        n_shadows = max(2, min(len(users) // 10, _MOST_SHADOWS, _MOST_SHADOW_CELLS // n_items))
    n_targets = min(wanted or max(1, workspace // n_items), len(users) - n_shadows)
    n_attacked = min(wanted or max(1, cells // n_items), n_targets)
    drawn = users[: n_shadows + n_targets]
    everyone = np.sort(drawn)

    def positions(some: IntVector) -> IntVector:
        return np.sort(np.searchsorted(everyone, some)).astype(np.int32)

    targets = drawn[n_shadows:]
    return Followed(everyone, positions(targets), positions(targets[:n_attacked]), positions(drawn[:n_shadows]))


ADVERSARIES = tuple(THREAT_MODELS)
"""The threat models."""


def refuse(_model: FPL, *, sees: str, **_how: Any) -> None:
    """Refuse what cannot be audited, before any long work."""
    if sees not in THREAT_MODELS:
        raise SettingError(f"sees is {sees!r}; it can be {' or '.join(THREAT_MODELS)}.")


def audit_model(model: FPL, *, sees: str, people: int | None, per_epoch: bool = False) -> Audited:
    """Audit a trained model by repeating its run's random draws (and for sums or each epoch its rounds)."""
    refuse(model, sees=sees)
    started, epochs = time.perf_counter(), model.settings.epochs
    audit = _Audit(model, sees, people, looks=epochs if per_epoch else 1)
    findings = [audit.look(epoch) for epoch in range(1 if per_epoch else epochs, epochs + 1)]
    return Audited(findings, audit.about(time.perf_counter() - started))


class _Audit:
    """A running audit: its observers and users."""

    def __init__(self, model: FPL, sees: str, wanted: int | None, looks: int) -> None:
        self._model, data = model, model.training
        recipe = model.recipe(data)

        def established() -> Federation:
            return Federation.established(model.settings, recipe, data.profiles, data.n_items)

        self._federation = established()
        self._sees = _as_seen(sees, recipe)
        triples = self._federation.steps_per_round * recipe.rounds_per_epoch * model.settings.epochs / looks
        self._followed = follow(recipe, data.n_items, wanted, triples, sums=self._sees == "sums")
        self._observer = Observer(self._federation, self._followed.everyone)
        self._sums: SumsObserver | None = None
        if self._sees == "sums":
            self._sums = SumsObserver(established(), self._followed.everyone)
        self._table = None if data.categories is None else table_of(data.categories)

    def look(self, epoch: int) -> Findings:
        """Observe until the end of this epoch, run all attacks, and score them."""
        federation, followed, profiles = self._federation, self._followed, self._model.training.profiles
        self._reach(epoch)
        for observer in (self._observer, self._sums):
            if observer is not None:
                observer.watch_until(federation.round_number)
        shadow_model = self._shadow_model()
        untrained = {name for name, model in zip(("learned", "held_back"), shadow_model, strict=True) if model is None}
        ours = {name: attack for name, attack in ATTACKS[self._sees].items() if name not in untrained}
        attacks = with_own_attacks(ours, "fpl", self._sees)
        kinds: dict[str, list[tuple[float, float]]] = {BASELINE: [], "fused": []}

        def note(name: str, guess: Guess, some: Attacked) -> None:
            if self._table is not None and name in kinds:
                kinds[name] += judge_shares(guess, some.histories, self._table, some.view.typical_size)

        attacked = (
            Attacked(view, [profiles.of(user) for user in followed.everyone[rows]], self._really_sent(rows))
            for rows, view in self._views(followed.attacked, shadow_model)
        )
        means = judge_attacks(attacks, attacked, note)
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

    def _reach(self, epoch: int) -> None:
        """Bring the federation to the end of this epoch: of the last, as the model is."""
        federation, rounds = self._federation, epoch * self._federation.rounds_per_epoch
        if epoch < self._model.settings.epochs:
            play_compiled(federation, rounds - federation.round_number)
            return
        for name, axes in self._model.tables.items():
            table = getattr(federation, name)
            (table[:, : federation.recipe.factors] if axes == 2 else table)[:] = getattr(self._model, name)
        federation.round_number = rounds

    def _disclosed_share(self) -> float:
        """Mean share of a history that was sent as liked at least once, over all followed users."""
        everyone, data, shares = self._followed.everyone, self._model.training, []
        for rows in in_blocks(self._followed.targets, data.n_items):
            sent = self._really_sent(rows)
            shares += [np.mean(sent[position, data.profiles.of(user)]) for position, user in enumerate(everyone[rows])]
        return float(np.mean(shares))

    def _views(self, rows: IntVector, shadow_model: tuple[ShadowModel | None, ShadowModel | None]) -> Any:
        choices = self._model.choices
        return views(self._sees, self._federation, self._observer, self._sums, rows, choices, shadow_model)

    def _really_sent(self, rows: IntVector) -> NDArray[np.bool_]:
        """Users x items: what was sent as liked by choice; a decoy discloses nothing, even if it is liked."""
        sent: NDArray[np.bool_] = self._observer.sightings.as_positive[rows] > 0
        shared_profile = self._federation.recipe.shared_profile
        if len(shared_profile.real) and not shared_profile.real.all():
            for row, user in enumerate(self._followed.everyone[rows]):
                here = slice(shared_profile.starts[user], shared_profile.starts[user + 1])
                sent[row, shared_profile.items[here][~shared_profile.real[here]]] = False
        return sent

    def _shadow_model(self) -> tuple[ShadowModel | None, ShadowModel | None]:
        """The shadow models: of all items, and of withheld items."""
        shadows, profiles = self._followed.shadows, self._model.training.profiles
        if not len(shadows):
            return None, None
        rows, view = next(self._views(shadows, (None, None)))
        histories = [profiles.of(user) for user in self._followed.everyone[rows]]
        seed = self._federation.recipe.seed
        return learn(view, histories, seed), learn(view, histories, seed, self._really_sent(rows))

    def about(self, seconds: float) -> dict[str, Any]:
        """Figures about the audit itself."""
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
    """The threat model whose attacks apply: the sum of one client is its update, and a noisy update is like a sum."""
    one = recipe.clients_per_round == 1
    if recipe.deviation == 0:
        return "updates" if sees == "sums" and one else sees
    # Signs of noisy rows are uncertain, so linked updates are averaged over rounds, as sums are.
    if sees == "updates" and not one:
        raise SettingError(
            f"An audit can link noisy updates only with one client per round, and clients_per_round is "
            f"{recipe.clients_per_round:,}; set sees to sums or anonymous, or clients_per_round to 1."
        )
    return "sums" if sees == "updates" else sees
