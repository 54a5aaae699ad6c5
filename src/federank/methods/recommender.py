"""The base class of all methods: fit, recommend, score, save.

A subclass learns (`_learn`) and scores (`_score_users`). Exclusion of known items, ties, unknown ids, blocks of users
and files are the same for all methods and implemented here. tests/methods/test_conformance.py runs for every subclass.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Concatenate, NamedTuple, ParamSpec, Self, TypeVar, overload

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from federank._numerics.arrays import FloatMatrix, FloatVector, Ids, IntVector
from federank._numerics.topn import top_n
from federank.checks import check_int, check_iterable, refuse_unknown
from federank.data.interactions import Interactions, Profiles
from federank.data.splits import Split
from federank.errors import DataError, ModelError, SettingError, UnknownId
from federank.methods.recommendations import Recommendations, Recommended, match_ids
from federank.simulation.options import ALL_OF_IT, TrainingOptions, accepted, takes_training_options
from federank.simulation.training import train

# A method's constructor has the names, types and defaults of its settings record.


P = ParamSpec("P")
Method = TypeVar("Method")


def made_from(
    settings_type: Callable[P, Any],
) -> Callable[[Callable[[Method], None]], Callable[Concatenate[Method, P], None]]:
    """Give a method's constructor the parameters of its settings record; its own body runs afterwards."""

    def constructor(declared: Callable[[Method], None]) -> Callable[Concatenate[Method, P], None]:
        def make(self: Method, /, *args: P.args, **settings: P.kwargs) -> None:
            if args:
                raise SettingError(
                    f"{type(self).__name__} takes its settings by name; {args[0]!r} was given without one."
                )
            self.settings = checked_settings(type(self), settings_type, settings)  # type: ignore[attr-defined]
            declared(self)

        own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
        signature = inspect.signature(settings_type)
        make.__signature__ = signature.replace(parameters=[own, *signature.parameters.values()])  # type: ignore[attr-defined]
        make.__doc__ = f"The settings are those of {getattr(settings_type, '__name__', settings_type)}."
        return make

    return constructor


def checked_settings(method: type[Any], settings_type: Any, values: dict[str, Any]) -> Any:
    """A method's settings record, if all names are known; the record checks their values."""
    refuse_unknown(values, [field.name for field in fields(settings_type)], method.__name__, "setting ")
    # Sweeps over a NumPy range pass NumPy numbers; the record holds Python's.
    plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in values.items()}
    return settings_type(**plain)


# Warm start: the vectors of an earlier model, for users and items that are still there.


class Earlier(NamedTuple):
    """The vectors of an earlier model, with their ids."""

    user_ids: Ids
    item_ids: Ids
    tables: dict[str, NDArray[np.float32]]
    """`user_...` has one row per user, `item_...` one per item."""


def put_back(earlier: Earlier | None, data: Interactions, tables: dict[str, NDArray[np.float32]]) -> None:
    """Copy the earlier rows of known users and items into tables that are about to be trained."""
    if earlier is None:
        return
    rows = {"user": match_ids(data.user_ids, earlier.user_ids), "item": match_ids(data.item_ids, earlier.item_ids)}
    for name, table in tables.items():
        there, before = rows[name[:4]], earlier.tables[name]
        known = there >= 0
        if before.ndim == 1:
            table[known] = before[there[known]]
        else:
            table[known, : before.shape[1]] = before[there[known]]


Arrays = dict[str, NDArray[Any]]
Items = Sequence[Any] | Ids
"""Items, by original ids."""
_BLOCK_BYTES = 16 * 2**20


@dataclass(frozen=True, kw_only=True)
class NoSettings:
    """No settings."""


class Recommender(ABC):
    """A method: its settings and, after `fit`, its model."""

    name: ClassVar[str]
    """Name on the command line."""
    in_rounds: ClassVar[bool] = False
    """Whether it is trained in rounds, which can be watched, stopped and resumed (simulation/training.py)."""
    can_use: ClassVar[tuple[str, ...]] = ()
    """The fields of TrainingOptions that it can use; others are refused."""
    learns_from: ClassVar[str] = "triples"
    """The unit that is counted during training in rounds."""
    searched: ClassVar[Mapping[str, Sequence[Any]]] = {}
    """The settings that a search tunes, with the values to try (evaluation/search.py); empty: no search."""
    replays_communication: ClassVar[bool] = False
    """Whether counting the communication of a run is slow, because its random draws are repeated."""
    audit: ClassVar[str] = ""
    """The module of its audit; empty if nothing is sent."""
    settings_type: ClassVar[type[Any]] = NoSettings
    """The settings record: a frozen, keyword-only dataclass. Its fields become command-line flags."""
    settings: Any
    """The settings of this model: a `settings_type`."""
    _warm: ClassVar[tuple[str, ...]] = ()
    """The tables that `fit_more` starts from."""
    _earlier: Earlier | None = None
    training: Interactions
    """The training data; the model knows only the users and items in it."""
    report: dict[str, Any]
    """Figures about the training: time, epochs, communication."""

    def __init__(self, **settings: Any) -> None:
        """Check and store the settings. Built-in methods declare their parameters with `made_from`."""
        self.settings = checked_settings(type(self), self.settings_type, settings)

    def __repr__(self) -> str:
        changed = (
            f"{field.name}={getattr(self.settings, field.name)!r}"
            for field in fields(self.settings_type)
            if repr(getattr(self.settings, field.name)) != repr(field.default)
        )
        return f"{type(self).__name__}({', '.join(changed)})"

    @takes_training_options
    def fit(self, train: Interactions, *, training_options: TrainingOptions | None = None) -> Self:
        """Train on the training part of a split; `training_options` sets threads, progress and checkpoint."""
        training_options = accepted(training_options, type(self).__name__, self.can_use)
        self.training = _interactions(train).compact()
        self.report, started = {}, time.perf_counter()
        self._learn(self.training, training_options)
        self.report.setdefault("seconds", time.perf_counter() - started)
        return self

    def fit_more(self, new: Any, *, training_options: TrainingOptions | None = None) -> Self:
        """Train on the known and new data together: interactions, or anything that `load` reads.

        Users and items are matched by id and may be new; for a pair in both, the new row counts. FPL, BPR and iALS
        start from their current vectors; other methods train from scratch.
        """
        from federank.data.loading import read_part
        from federank.data.splits import joined

        training_options = training_options or TrainingOptions()
        if training_options.checkpoint is not None:
            raise SettingError("A run that starts from an earlier model cannot have a checkpoint; leave it out.")
        known = self._fitted()
        data = joined(known, new if isinstance(new, Interactions) else read_part(new))
        tables = {name: getattr(self, name) for name in self._warm}
        self._earlier = Earlier(known.user_ids, known.item_ids, tables) if tables else None
        try:
            return self.fit(data, training_options=training_options)
        finally:
            self._earlier = None

    @abstractmethod
    def _learn(self, train: Interactions, training_options: TrainingOptions) -> None:
        """Train on interactions in which every user and every item has a row."""

    @abstractmethod
    def _score_users(self, users: IntVector) -> FloatMatrix:
        """Scores of all items, one row per user number."""

    @abstractmethod
    def _shared_arrays(self) -> Arrays:
        """The server's part: written to model.safetensors."""

    def _private_arrays(self) -> Arrays:
        """The clients' part: written to devices.safetensors."""
        return {}

    @abstractmethod
    def _restore(self, shared: Arrays, private: Arrays) -> None:
        """Restore both parts; raise ModelError if they do not fit."""

    def restore_shared(self, shared: Arrays) -> None:
        """Restore the server's part alone: a federation's model, before it knows any user."""
        factors = shared["item_vectors"].shape[1]
        self._restore(shared, {"user_vectors": np.zeros((0, factors), dtype=np.float32), "pi": np.zeros(0)})

    @property
    def zero_is_nothing(self) -> bool:
        """Whether a score of exactly 0 means no evidence, so that the item is not recommended."""
        return False

    @property
    def item_ids(self) -> Ids:
        """Original ids of the catalogue: the items that can be recommended."""
        return self._fitted().item_ids

    @property
    def user_ids(self) -> Ids:
        """Original ids of the training users."""
        return self._fitted().user_ids

    @overload
    def recommend(
        self, users: str | int, n: int = 10, *, among: Items | None = None, without: Items | None = None
    ) -> list[Recommended]: ...
    @overload
    def recommend(
        self,
        users: Sequence[Any] | Ids | None = None,
        n: int = 10,
        *,
        among: Items | None = None,
        without: Items | None = None,
    ) -> Recommendations: ...
    def recommend(
        self, users: Any = None, n: int = 10, *, among: Items | None = None, without: Items | None = None
    ) -> Recommendations | list[Recommended]:
        """The top n items that a user does not have yet: a list for one id, a table for several (or all).

        Only items in `among` are recommended, and none in `without`; both by original ids.
        """
        check_int("n", n, 1)
        known = self._fitted()
        one = isinstance(users, str | int | np.integer)
        ids = known.user_ids if users is None else ([users] if one else users)
        check_iterable("users", ids, "the id of a user, or a list of them,")
        numbers = np.array([known.user_index(user) for user in ids], dtype=np.int32)
        table = self.recommend_numbers(numbers, n, allowed=self._allowed(among, without))
        return table.of(0) if one else table

    def recommend_numbers(
        self, users: IntVector, n: int, *, allowed: NDArray[np.bool_] | None = None
    ) -> Recommendations:
        """`recommend` for users by number, as evaluation uses it; `allowed` marks the items that may be listed."""
        known = self._fitted()
        n = min(n, known.n_items)
        block = max(1, _BLOCK_BYTES // (4 * known.n_items))
        parts = [
            top_n(
                self._ranked(users[start : start + block], allowed),
                users[start : start + block],
                known.profiles,
                n,
            )
            for start in range(0, len(users), block)
        ]
        items, scores = (np.concatenate([part[k] for part in parts]) if parts else np.empty((0, n)) for k in (0, 1))
        return Recommendations(
            known.user_ids[users], items.astype(np.int32), scores.astype(np.float32), known.item_ids, known.titles
        )

    def _ranked(self, users: IntVector, allowed: NDArray[np.bool_] | None) -> FloatMatrix:
        """Scores, with minus infinity for items that must not be recommended."""
        scores = self._score_users(users)
        if allowed is not None:
            scores = np.where(allowed, scores, np.float32(-np.inf))
        return np.where(scores != 0, scores, np.float32(-np.inf)) if self.zero_is_nothing else scores

    def score(self, user: Any, items: Sequence[Any] | Ids) -> FloatVector:
        """This user's scores of these items, by original ids; higher is better."""
        check_iterable("items", items, "a list of the items' ids")
        known = self._fitted()
        row: FloatVector = self._score_users(np.array([known.user_index(user)], dtype=np.int32))[0]
        return row[np.array([known.item_index(item) for item in items], dtype=np.int32)]

    def similar(self, item: Any, n: int = 10) -> list[Recommended]:
        """The n items most similar to this one, given by id or title: nearest first, with the cosine."""
        check_int("n", n, 1)
        known = self._fitted()
        number = _item_number(known, item)
        likeness = self._likeness(number)
        likeness[number] = -np.inf
        nearest = np.lexsort((np.arange(known.n_items), -likeness))[: min(n, known.n_items - 1)]
        nearest = nearest[likeness[nearest] > 0]
        table = Recommendations(
            known.item_ids[[number]],
            nearest[None].astype(np.int32),
            likeness[None, nearest],
            known.item_ids,
            known.titles,
        )
        return table.of(0)

    def _likeness(self, item: int) -> FloatVector:
        """Cosine of every item with this one: of their vectors or, without any, of their sets of users."""
        vectors = getattr(self, "item_vectors", None)
        if vectors is None:
            together: FloatVector = (self.training.matrix().T @ self.training.matrix()[:, [item]]).toarray()[:, 0]
            audience = self.training.popularity
            shared: FloatVector = (together / np.sqrt(audience * audience[item])).astype(np.float32)
            return shared
        lengths = np.maximum(np.linalg.norm(vectors, axis=1), np.finfo(np.float32).tiny)
        cosines: FloatVector = (vectors @ vectors[item] / (lengths * lengths[item])).astype(np.float32)
        return cosines

    def _allowed(self, among: Items | None, without: Items | None) -> NDArray[np.bool_] | None:
        """Which items may be recommended; None if all may."""
        if among is None and without is None:
            return None
        known = self._fitted()
        allowed = np.full(known.n_items, among is None)
        for items, may in ((among, True), (without, False)):
            if isinstance(items, str):
                raise SettingError(f"Items were given as {items!r}; a list of ids is needed, such as [{items!r}].")
            allowed[[known.item_index(item) for item in items or ()]] = may
        return allowed

    @property
    def seen(self) -> Profiles:
        """The items of each user, by number."""
        return self._fitted().profiles

    def save(self, folder: str | Path, split: Split | None = None, *, replaces: bool = True) -> None:
        """Write the model to a folder atomically; with the split, so that it can be evaluated.

        An older model there is replaced, unless `replaces` is false.
        """
        from federank.methods.model_folder import save_model

        self._fitted()
        save_model(self, Path(folder), split, replaces=replaces)

    def _fitted(self) -> Interactions:
        if not hasattr(self, "training"):
            raise ModelError(f"This {type(self).__name__} is not trained yet; call fit first.")
        return self.training


class LearnsInRounds(Recommender):
    """A method that is trained by simulating its rounds."""

    in_rounds = True
    can_use = ALL_OF_IT
    tables: ClassVar[Mapping[str, int]] = {}
    """The learnt arrays by name, with their number of axes: rows of items, or of users (`user_...`), then factors."""

    def _play(self, federation: Any, epochs: int, training_options: TrainingOptions, chosen: str = "") -> None:
        """Play the rounds of these epochs; `chosen` digests users' own choices, for the identity of a checkpoint."""
        identity = run_identity(self.name + chosen, self.settings, self.training)
        follow = partial(self._follow, federation, training_options.threads)
        self.report |= train(federation, epochs, training_options, identity, follow)

    def _follow(self, federation: Any, _threads: int) -> None:
        """Take over the federation's tables without their padding."""
        for name, axes in self.tables.items():
            table = getattr(federation, name)
            setattr(self, name, table[:, : federation.recipe.factors] if axes == 2 else table)

    def _learnt(self, *, users: bool) -> Arrays:
        return {name: getattr(self, name) for name in self.tables if name.startswith("user") == users}

    def _shared_arrays(self) -> Arrays:
        return self._learnt(users=False)

    def _private_arrays(self) -> Arrays:
        return self._learnt(users=True)

    def _restore(self, shared: Arrays, private: Arrays) -> None:
        for name, axes in self.tables.items():
            of_users = name.startswith("user")
            rows = self.training.n_users if of_users else self.training.n_items
            shape = (rows, self._factors_in(shared))[:axes]
            setattr(self, name, restored_table(private if of_users else shared, name, shape))

    def _factors_in(self, _shared: Arrays) -> int:
        """Number of factors of a stored model."""
        factors: int = self.settings.factors
        return factors


def _item_number(data: Interactions, item: Any) -> int:
    """The number of an item by its original id or, if there is none, by its title."""
    try:
        return data.item_index(item)
    except UnknownId:
        matches = [] if data.titles is None else [number for number, title in enumerate(data.titles) if title == item]
        if len(matches) != 1:
            several = f"{len(matches)} items are called {item!r}; name one by its id." if len(matches) else None
            raise UnknownId(several or f"No item in {data.name} has the id or the title {item!r}.") from None
        return int(matches[0])


def _interactions(train: Any) -> Interactions:
    """The data that `fit` was given, if it can train on it."""
    if isinstance(train, Interactions):
        return train
    hint = "; pass split.train" if isinstance(train, Split) else ""
    raise DataError(f"fit learns from Interactions, and this is a {type(train).__name__}{hint}.")


def restored_table(arrays: Arrays, name: str, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """An array of a stored model, checked for shape and type."""
    table = arrays.get(name)
    if table is None or table.dtype != np.float32 or table.shape != shape:
        held = "none" if table is None else f"{table.dtype} of shape {table.shape}"
        raise ModelError(f"The model needs {name} as float32 of shape {shape}, but its folder has {held}.")
    return table


# The identity of a run (method, settings, data) as one short text.


def run_identity(name: str, settings: Any, data: Interactions) -> str:
    """The identity of a run, so that a checkpoint of another is never resumed."""
    content = json.dumps([name, asdict(settings), data.fingerprint], sort_keys=True, default=list)
    return hashlib.sha256(content.encode()).hexdigest()[:32]


# Methods that represent a user by the history itself: kNN, EASE, SLIM and Mult-VAE. If only item-item weights are
# learnt, scores are the history times these (`ItemWeights`).


class FromHistories(Recommender):
    """Scores from the history of any user."""

    def enrolled(self, profile: IntVector) -> FloatVector:
        """A user's vector: one for each item of the history."""
        row = np.zeros(self.training.n_items, dtype=np.float32)
        row[profile] = 1
        return row


class ItemWeights(FromHistories):
    """Scores are the sums of the weights of a user's items."""

    weights: Any
    """Items x items, dense or sparse: how much having the first indicates the second."""
    _histories: csr_array

    @property
    def zero_is_nothing(self) -> bool:
        """An item without weight from the user's items is not recommended."""
        return True

    def _keep(self, weights: Any) -> None:
        self.weights, self._histories = weights, self.training.matrix()

    def _score_users(self, users: IntVector) -> FloatMatrix:
        return dense(self._histories[users] @ self.weights)

    def scores_of(self, vector: FloatVector) -> FloatVector:
        """Scores of all items for a user with this history."""
        scores: FloatVector = (vector @ self.weights).astype(np.float32)
        return scores


def stored_weights(weights: csr_array) -> Arrays:
    """Sparse weights as the arrays of a model file."""
    starts, items = weights.indptr.astype(np.int64), weights.indices.astype(np.int32)
    return {"starts": starts, "items": items, "values": weights.data}


def restored_weights(stored: Arrays, count: int) -> csr_array:
    """Sparse weights of a model file, checked to be finite and between this many items."""
    try:
        weights = csr_array((stored["values"], stored["items"], stored["starts"]), shape=(count, count))
        weights.check_format()
    except (KeyError, ValueError) as reason:
        raise ModelError(f"The model's weights are not those of its {count:,} items; train it again.") from reason
    if weights.dtype != np.float32 or not np.isfinite(weights.data).all():
        raise ModelError("The model's weights are not finite float32 numbers; train it again.")
    return weights


def dense(scores: Any) -> FloatMatrix:
    """A dense array."""
    table: FloatMatrix = scores.toarray() if issparse(scores) else scores
    return table
