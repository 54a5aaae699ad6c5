"""PrivateFrugal: Frugal under differential privacy, with noise of both servers on secure sums.

A client's first upload carries popularity, the later ones where its history points among the directions that the model
looks for (private_messages.py). Each upload has length 1 and noise of its own (private_plan.py). A federation plays the
plan again and again, cohort by cohort: sums of later cohorts join what is known (private_server.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from federank._numerics.arrays import IntVector
from federank.errors import SettingError
from federank.federation import wire
from federank.federation.method import Client, ClientResult, Records
from federank.federation.wire import Array
from federank.methods.frugal.bounds import CALM_ROUNDS, USUAL_JOINED, USUAL_PRIVATE
from federank.methods.frugal.method import Frugal
from federank.methods.frugal.private_messages import message_parts
from federank.methods.frugal.private_plan import PrivatePlan, planned
from federank.methods.frugal.private_server import (
    REGULARISATION,
    PrivateModel,
    RoundBuffer,
    fold_of_cohort,
    noisy_counts,
    received_from,
)
from federank.methods.frugal.protocol import covered_items, published
from federank.methods.frugal.records import FrugalModel, ItemRows, PrivateParts, PrivateState, placed, without_ridge
from federank.methods.frugal.server_update import FEWEST_ITEMS, HALF
from federank.methods.frugal.settings import FrugalRules, FrugalSettings, Step
from federank.secagg.ring import PRIVATE

if TYPE_CHECKING:
    from federank.federation.server import Guarantee


@dataclass(frozen=True, kw_only=True)
class PrivateFrugal(Frugal):
    """Frugal under differential privacy."""

    records = Records(PrivateState, FrugalModel, PrivateParts, ItemRows, None)
    recipe: ClassVar[str] = PRIVATE

    noises: tuple[int, ...] = ()
    """Each server's noise on each upload of a lifetime; clients take it from the config of secure aggregation."""
    popularity_power: float = 0.0
    """An item of popularity c weighs c^power in an upload."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "noises", tuple(self.noises))  # a list in JSON

    @property
    def norm_bound(self) -> float:
        """Uploads are of length 1."""
        return 1.0

    @property
    def step(self) -> Step:
        """From sums with noise."""
        return "private"

    @property
    def counts_first(self) -> bool:
        """Popularity comes first in any case."""
        return False

    def resolve(self, data: Any) -> Self:
        """Nothing is open but the catalogue."""
        factors = self.factors
        method: Self = super().resolve(data)
        return replace(method, factors=factors, activity=0.0)

    def secured(self, guarantee: Guarantee, clients: int) -> Self:
        """Another season: the shape of uploads and the weight of popular items stay, as the model was made so."""
        again = private_form(self, guarantee, clients)
        return replace(self, noises=again.noises)

    @property
    def plan(self) -> PrivatePlan:
        """What is fixed before the first upload."""
        return PrivatePlan(self.noises, self.factors, self.popularity_power)

    @property
    def columns(self) -> int:
        """The directions that are looked for."""
        return self.factors - 1

    def is_counting(self, stage: int) -> bool:
        """Popularity comes first."""
        return stage == 0

    def empty(self, stage: int = 0) -> Any:
        """One column of popularity, or one for each direction."""
        return wire.zeros(ItemRows, self, directions=1 if stage == 0 else self.columns)

    def add(self, aggregate: Any, update: Any) -> None:
        """The update written out."""
        aggregate.rows += np.outer(update.row, update.pointed)

    def client_update(self, client: Client, broadcast: FrugalModel) -> ClientResult:
        """The parts of the stage that the round asks for."""
        if not client.stage:
            return ClientResult(PrivateParts(*message_parts(self.n_items, client.items, None)))
        items, model, profile = self._covered(client, broadcast)
        parts = message_parts(len(items), profile, model.directions)
        return ClientResult(PrivateParts(*parts), positives=items[profile])

    # The server.

    def initial_state(self) -> Any:
        """Vectors drawn from the seed; nothing is known of the data."""
        first = super().initial_state()
        zeros = without_ridge(PrivateState, self, earlier_columns=0, newest_columns=0, joined_columns=0)
        return replace(zeros, vectors=first.vectors, weights=first.weights, regulariser=first.regulariser)

    def stage(self, state: Any) -> int:
        """The uploads of a plan in turn."""
        return int(state.folds[0]) % self.messages

    def server_update(self, state: Any, aggregate: Any) -> Any:
        """The next version, from the sum of a round's uploads with the noise of both servers."""
        if not aggregate.count:
            return state
        folds, began, stage = int(state.folds[0]), int(state.began[0]), self.stage(state)
        known, items = _model(state), np.arange(self.n_items, dtype=np.int32)
        state = replace(state, received=state.received + aggregate.count)
        # Rounds of popularity: one of each cohort, and those with too few supported items.
        rounds = -(-folds // self.messages) + int(state.again[0])
        values = aggregate.rows
        if stage == 0:
            state, rounds = replace(state, counters=state.counters + aggregate.count), rounds + 1
            known = known._replace(summed=values[:, 0] + known.summed)
            if self.min_support > 1:
                enough = noisy_counts(known.summed, int(state.counters[0])) > self.min_support - HALF
                items = np.flatnonzero(enough).astype(np.int32)
                if len(items) < FEWEST_ITEMS:  # more counts are asked for
                    return replace(_with_model(state, known), again=state.again + 1)
            values = known.summed[items, None]
        else:
            items = covered_items(self.min_support, known.weights)
        now = fold_of_cohort(
            self.plan,
            self.seed,
            self.shrinkage_used,
            folds,
            _restricted(known, items),
            published(self, known.vectors)[items],
            values,
            self.exposure_cap,
            rounds,
            folds >= began + max(CALM_ROUNDS, self.messages),
        )
        if len(items) < self.n_items:
            now = _mapped(now, lambda part: placed(part, items, self.n_items))._replace(summed=known.summed)
        return replace(_with_model(state, now), folds=state.folds + 1)

    def new_season(self, state: Any, begun: IntVector) -> Any:
        """Items that begin or return have no users yet."""
        state = replace(state, began=state.folds)
        if self.min_support == 1:
            return state
        rows = {name: getattr(state, name).copy() for name in ("vectors", "weights", "summed")}
        for part in rows.values():
            part[begun] = 0
        return replace(state, **rows)

    def new_plan(self, state: Any, before: tuple[int, ...], now: tuple[int, ...]) -> Any:
        """What earlier seasons' sums have shown counts as cohorts with the noise of this season."""
        cohorts = -(-int(state.folds[0]) // len(before))
        if cohorts and now[0]:
            cohorts = max(1, round(cohorts * (before[0] / now[0]) ** 2))
        popularity = state.counts
        if popularity.any():  # an item that starts low, or has ended, counts as little as the least popular one
            popularity = np.where(popularity > 0, popularity, popularity[popularity > 0].min())
        folds = np.array([cohorts * len(now)])
        nothing: Array = np.zeros((len(popularity), 0))
        return replace(state, folds=folds, began=folds, joined=nothing, counts=popularity)

    def started(self, state: Any) -> Any:  # noqa: ARG002
        """A trained model says nothing of what noise has left."""
        raise SettingError(
            "Sums with noise are learnt by a recipe of their own, from the first round on; leave --start-from out, or "
            "name a --clip and --sigma 0."
        )


def private_form(method: Frugal, guarantee: Guarantee, clients: int) -> Any:
    """The private form of these settings, for rounds of this many clients."""
    rules: Mapping[str, Any] = {name: getattr(method, name) for name in FrugalRules.__dataclass_fields__}
    kept = dict.fromkeys(("activity", "popularity", "clip"))
    settings = FrugalSettings(**{**rules, **(kept if method.step == "private" else {})}, **guarantee._asdict())
    form = private_method(settings, method.n_items, clients)
    bound = USUAL_JOINED if form.plan.joined else USUAL_PRIVATE
    return replace(form, most_shown=bound if method.most_shown is None else method.most_shown)


def private_method(settings: FrugalSettings, n_items: int, clients: int) -> PrivateFrugal:
    """The method of settings with a guarantee, for rounds of this many clients."""
    plan = planned(settings.mu, settings.messages, clients, n_items, settings.factors)
    rules: dict[str, Any] = {name: getattr(settings, name) for name in FrugalRules.__dataclass_fields__}
    rules |= {"factors": plan.factors, "activity": 0.0, "shrinkage": settings.shrinkage_used}
    return PrivateFrugal(
        n_items=n_items, uploads="secure", noises=plan.deviations, popularity_power=plan.power, **rules
    )


def _model(state: PrivateState) -> PrivateModel:
    known = state.summed, state.earlier, state.newest, received_from(state.joined)
    return PrivateModel(state.vectors, state.weights, state.counts, *known)


def _with_model(state: PrivateState, now: PrivateModel) -> PrivateState:
    return replace(
        state,
        vectors=now.vectors,
        weights=now.weights,
        regulariser=np.array([REGULARISATION]),
        counts=now.popularity,
        summed=now.summed,
        earlier=np.ascontiguousarray(now.earlier),
        newest=np.ascontiguousarray(now.newest),
        joined=np.ascontiguousarray(now.received.stored()),
        capped=np.array([now.capped]),
    )


def _restricted(known: PrivateModel, items: IntVector) -> PrivateModel:
    """The model of these items alone; what was not known of one of them begins as if it were the least popular."""
    if len(items) == len(known.weights):
        return known
    part = _mapped(known, lambda rows: np.ascontiguousarray(rows[items]))
    had = part.popularity > 0
    least = part.popularity[had].min() if had.any() else 1.0
    return part._replace(popularity=np.where(had, part.popularity, least))


def _mapped(model: PrivateModel, rows: Callable[[NDArray[Any]], NDArray[Any]]) -> PrivateModel:
    """The model with this done to every array that has a row per item."""
    received = RoundBuffer(*map(rows, model.received))
    return PrivateModel(
        vectors=rows(model.vectors),
        weights=rows(model.weights),
        popularity=rows(model.popularity),
        summed=rows(model.summed),
        earlier=rows(model.earlier),
        newest=rows(model.newest),
        received=received,
        capped=model.capped,
    )
