"""Users' policies: from the settings, a file of policies, or a Python list."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

import numpy as np
import polars as pl

from federank._numerics.arrays import IntVector, RealVector
from federank._numerics.compiling import compiled
from federank.checks import did_you_mean
from federank.data.interactions import Interactions
from federank.errors import BadFile, ModelError, SettingError, UnknownId
from federank.federation.rng import GROUP, words
from federank.methods.recommender import Arrays, Recommender
from federank.privacy.policy import Policy, default_basis
from federank.privacy.population import Choices
from federank.simulation.options import TrainingOptions, takes_training_options

# Policies from a TOML file.


_KEYS = (
    *("sharing", "pi", "item_epsilon", "basis", "budget", "messages", "triples", "paused"),
    *("never_items", "never_categories"),
)


def read_choices(
    path: str | Path, settings: dict[str, Any], pi: RealVector, data: Interactions, seed: int
) -> tuple[Choices, dict[str, IntVector]]:
    """Every user's choice and the members of each group; `settings` and `pi` are the defaults."""
    content = _read(path)
    default, groups = content.get("default", {}), content.get("groups", {})
    _refuse_unknown(path, "[default]", default, _KEYS)
    for name, section in groups.items():
        _refuse_unknown(path, f"[groups.{name}]", section, (*_KEYS, "share"))
    members = _members(path, groups, data.n_users, seed)
    sections: list[tuple[str, list[dict[str, Any]], IntVector]] = [
        ("[default]", [settings, default], np.arange(data.n_users, dtype=np.int32))
    ]
    for name, section in groups.items():
        sections.append((f"[groups.{name}]", [settings, default, section], members[name]))
    group_of = {int(user): name for name, users in members.items() for user in users}
    for user_id, section in content.get("people", {}).items():
        where = f'[people."{user_id}"]'
        _refuse_unknown(path, where, section, _KEYS)
        user = _user(path, data, user_id)
        group = groups.get(group_of.get(user, ""), {})
        sections.append((where, [settings, default, group, section], np.array([user], dtype=np.int32)))
    kinds: list[Policy] = []
    of_user, pi = np.zeros(data.n_users, dtype=np.int32), pi.copy()
    for where, layers, users in sections:
        policy, own_pi = _policy(path, where, layers, data)
        of_user[users] = len(kinds)
        kinds.append(policy)
        if own_pi is not None:
            pi[users] = own_pi
    return Choices(tuple(kinds), of_user, pi), members


def _read(path: str | Path) -> dict[str, Any]:
    try:
        content = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as reason:
        raise BadFile(f"{path} cannot be read ({reason.strerror}); a TOML file of policies is needed.") from reason
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as reason:
        raise BadFile(f"{path} is not a TOML file: {reason}.") from reason
    _refuse_unknown(path, "the file", content, ("default", "groups", "people"))
    tables = [content.get("default", {}), *(content.get(name, {}) for name in ("groups", "people"))]
    tables += [inner for table in tables[1:] if isinstance(table, dict) for inner in table.values()]
    if not all(isinstance(table, dict) for table in tables):
        raise BadFile(f'{path}: [default], [groups.NAME] and [people."ID"] must be tables of keys and values.')
    return content


def _refuse_unknown(path: str | Path, where: str, section: Iterable[str], known: tuple[str, ...]) -> None:
    for key in section:
        if key not in known:
            raise BadFile(
                f"{path}: {where} has {key!r}, which is not known.{did_you_mean(key, known)} Known: {', '.join(known)}."
            )


def _policy(path: str | Path, where: str, layers: list[dict[str, Any]], data: Interactions) -> tuple[Policy, Any]:
    """The policy of these layers, later ones first, and its pi, if any."""
    values: dict[str, Any] = {}
    for layer in layers:
        if "sharing" in layer:  # Another way of sharing has its own item_epsilon and basis.
            values = {key: value for key, value in values.items() if key not in ("item_epsilon", "basis")}
        values |= layer
    never = _never(path, where, values.pop("never_items", []), values.pop("never_categories", []), data)
    own_pi = values.pop("pi", None)
    values.pop("share", None)
    if values.get("basis", "default") == "default":
        values["basis"] = default_basis(values["sharing"])
    try:
        return Policy(**values, pi=0.5 if own_pi is None else own_pi, never_items=never), own_pi
    except SettingError as reason:
        raise BadFile(f"{path}, {where}: {reason}") from reason


def _never(path: str | Path, where: str, items: Any, categories: Any, data: Interactions) -> frozenset[int]:
    if not isinstance(items, list) or not isinstance(categories, list):
        raise BadFile(f'{path}, {where}: never_items and never_categories are lists, such as ["Horror"].')
    try:
        numbers = {data.item_index(item) for item in items}
    except UnknownId as unknown:
        raise BadFile(f"{path}, {where}: never_items names what the training data do not have: {unknown}") from unknown
    if categories:
        if data.categories is None:
            raise BadFile(f"{path}, {where}: never_categories names some, but these data have no categories.")
        known = data.categories.names
        for name in categories:
            if name not in known:
                raise BadFile(f"{path}, {where}: no category is called {name!r}.{did_you_mean(name, known)}")
        codes = [known.index(name) for name in categories]
        positions = np.flatnonzero(np.isin(data.categories.codes, codes))
        numbers |= set((np.searchsorted(data.categories.starts, positions, side="right") - 1).tolist())
    return frozenset(numbers)


def _members(path: str | Path, groups: dict[str, Any], n_users: int, seed: int) -> dict[str, IntVector]:
    """The members of each group: users in random order, divided by share."""
    shares = [section.get("share") for section in groups.values()]
    for name, share in zip(groups, shares, strict=True):
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
            raise BadFile(f"{path}: [groups.{name}] needs a share of the people, above 0 and at most 1, not {share!r}.")
    if sum(shares) > 1 + 1e-9:
        raise BadFile(f"{path}: the groups' shares add up to {sum(shares):g}; at most 1 is needed.")
    order = np.argsort(_draws_of_users(seed, n_users), kind="stable").astype(np.int32)
    ends = np.rint(np.cumsum([0, *shares]) * n_users).astype(int)
    return {name: np.sort(order[ends[position] : ends[position + 1]]) for position, name in enumerate(groups)}


@compiled
def _draws_of_users(seed: int, n_users: int) -> np.ndarray[Any, np.dtype[np.uint32]]:
    drawn = np.empty(n_users, np.uint32)
    for user in range(n_users):
        word, _, _, _ = words(seed, user, GROUP, 0, 0)
        drawn[user] = word
    return drawn


def _user(path: str | Path, data: Interactions, user_id: str) -> int:
    try:
        return data.user_index(user_id)
    except UnknownId as unknown:
        raise BadFile(f"{path} names someone who is not there: {unknown}") from unknown


# CSV files: each user's pi, and when each client is online.


def read_pi(path: str | Path, data: Interactions) -> RealVector:
    """Each user's pi, in the order of the data's users; all must have one."""
    rows = _read_shares(path, "pi", pl.Float64)
    values = rows["pi"].to_numpy()
    wrong = np.flatnonzero(~((values >= 0) & (values <= 1)))
    if len(wrong):
        raise BadFile(f"{path}, line {wrong[0] + 2}: pi is {values[wrong[0]]}; a number from 0 to 1 is needed.")
    numbers = _numbers(path, rows, data)
    if rows["user"].is_duplicated().any():
        again = int(rows["user"].is_first_distinct().not_().arg_true()[0])
        raise BadFile(f"{path}, line {again + 2}: user {rows['user'][again]} is named a second time; once is needed.")
    pi = np.full(data.n_users, np.nan)
    pi[numbers] = values
    missing = np.flatnonzero(np.isnan(pi))
    if len(missing):
        raise BadFile(
            f"{path} has no pi for {len(missing):,} of the {data.n_users:,} users (the first: "
            f"{data.user_ids[missing[0]]}); every person's choice is needed."
        )
    return pi


def read_trace(path: str | Path, data: Interactions) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    """Which client is online in which round (from 0), as rounds x users."""
    rows = _read_shares(path, "round", pl.Int64)
    rounds = rows["round"].to_numpy()
    if rounds.min() < 0:
        raise BadFile(f"{path}: rounds are counted from 0, and there is a round {rounds.min()}.")
    trace = np.zeros((int(rounds.max()) + 1, data.n_users), dtype=np.bool_)
    trace[rounds, _numbers(path, rows, data)] = True
    return trace


def _read_shares(path: str | Path, column: str, kind: type[pl.DataType]) -> pl.DataFrame:
    if not Path(path).is_file():
        raise BadFile(f"There is no file {path}; a CSV with the columns user and {column} is needed.")
    try:
        rows = pl.read_csv(path, infer_schema=False)
        columns = rows.columns
        if set(columns) != {"user", column}:
            raise BadFile(f"{path} has the columns {', '.join(columns)}; user and {column} are needed.")
        if rows.is_empty():
            raise BadFile(f"{path} has a header but no rows.")
        values = rows[column].str.strip_chars().cast(kind, strict=False)
        if values.null_count():
            wrong = int(values.is_null().arg_true()[0])
            raise BadFile(f"{path}, line {wrong + 2}: {column} is {rows[column][wrong]!r}; a number is needed.")
        return rows.with_columns(values)
    except pl.exceptions.PolarsError as reason:
        raise BadFile(f"{path} cannot be read as a CSV of user and {column}: {reason}") from reason


def _numbers(path: str | Path, rows: pl.DataFrame, data: Interactions) -> IntVector:
    try:
        return np.array([data.user_index(user) for user in rows["user"].to_list()], dtype=np.int32)
    except UnknownId as unknown:
        raise BadFile(f"{path} names someone who is not there: {unknown}") from unknown


Policies = Sequence[Policy] | Mapping[Any, Policy | float]
"""Choices from Python: a policy per user in the sorted order of ids, or some users' policies by id."""


def choices_for(settings: Any, train: Interactions, policies: Policies | None) -> Choices:
    """All users' policies; those given from Python override the settings."""
    if isinstance(policies, Mapping):
        policies = _by_id(settings, train, policies)
    if policies is not None:
        if settings.policies is not None:
            raise SettingError("Policies are given twice, as a file and as a list; one of them is needed.")
        if len(policies) != train.n_users or not all(isinstance(policy, Policy) for policy in policies):
            raise SettingError(
                f"policies has {len(policies):,} entries; a Policy is needed for each of {train.n_users:,} users."
            )
        return Choices.of_users(policies)
    pi = shares_of(settings.pi, train)
    usual = settings.policy(0.5)
    if settings.policies is None:
        return Choices.alike(usual, pi)
    all_users = {name: getattr(usual, name) for name in ("sharing", "item_epsilon", "budget")}
    all_users["basis"] = getattr(settings, "basis", usual.basis)  # "default" follows the user's own way of sharing.
    return read_choices(settings.policies, all_users, pi, train, settings.seed)[0]


def _by_id(settings: Any, train: Interactions, chosen: Mapping[Any, Policy | float]) -> list[Policy]:
    """All users' policies, if some have chosen a policy or a pi and the others follow the settings."""
    all_users = [settings.policy(float(pi)) for pi in shares_of(settings.pi, train)]
    for user, choice in chosen.items():
        if isinstance(choice, bool) or not isinstance(choice, Policy | int | float | np.number):
            raise SettingError(f"The choice of user {user!r} is {choice!r}; a pi from 0 to 1 or a Policy is needed.")
        number = train.user_index(user)
        all_users[number] = choice if isinstance(choice, Policy) else settings.policy(float(choice))
    return all_users


def messages_allowed(choices: Choices) -> IntVector:
    """Maximum number of uploads of each client, over its lifetime; larger than any number of rounds without a limit."""
    most = np.iinfo(np.int32).max
    allowed: IntVector = choices.where(most if kind.messages is None else kind.messages for kind in choices.kinds)
    return allowed


def refuse_coins(choices: Choices) -> None:
    """Refuse the sharing policy `all` for methods with few uploads."""
    for kind in choices.kinds:
        if kind.sharing == "all":
            raise SettingError(
                "Someone shares as published, with a coin that is tossed again for every message: what is held back "
                "today is sent tomorrow. A method of few messages takes fixed-subset or randomized response."
            )


def shares_of(pi: object, train: Interactions) -> RealVector:
    """Each user's pi."""
    if isinstance(pi, float | int):
        return np.full(train.n_users, float(pi))
    if isinstance(pi, str):
        return read_pi(pi, train)
    if isinstance(pi, Mapping):
        return _pi_by_id(pi, train)
    try:
        values = np.asarray(pi, dtype=np.float64)
    except (TypeError, ValueError) as reason:
        raise SettingError(f"pi is not a number, a file, or a number for each user: {reason}.") from reason
    if values.shape != (train.n_users,):
        raise SettingError(
            f"pi is of shape {values.shape}; one number for each of the {train.n_users:,} users is needed."
        )
    return values


def _pi_by_id(chosen: Mapping[Any, Any], train: Interactions) -> RealVector:
    """Each user's pi from a dictionary by id; all must be in it."""
    values = np.full(train.n_users, np.nan)
    for user, pi in chosen.items():
        values[train.user_index(user)] = pi
    if np.isnan(values).any():
        first = train.user_ids[int(np.argmax(np.isnan(values)))]
        raise SettingError(
            f"pi has no entry for {int(np.isnan(values).sum()):,} of the {train.n_users:,} users (the first: {first}); "
            "every person's choice is needed. For some people only, use fit(train, policies={...})."
        )
    return values


# All users' policies as arrays, for the clients' part of a model folder.


def choices_as_arrays(choices: Choices) -> Arrays:
    """The arrays that `choices_from_arrays` reads: each user's pi and kind of policy, and the kinds as JSON."""
    kinds = [asdict(kind) | {"never_items": sorted(kind.never_items)} for kind in choices.kinds]
    content = np.frombuffer(json.dumps(kinds, default=lambda number: number.item()).encode(), dtype=np.uint8)
    return {"pi": choices.pi, "policy_of_user": choices.of_user, "policies": content}


def choices_from_arrays(arrays: Arrays, n_users: int, if_none: Policy) -> Choices:
    """All users' policies from a model folder; `if_none` if it holds pi alone."""
    pi = arrays.get("pi")
    if pi is None or pi.shape != (n_users,) or pi.dtype != np.float64 or not np.all((pi >= 0) & (pi <= 1)):
        raise ModelError("The model's folder lacks the users' own pi, or has it for other users.")
    if "policy_of_user" not in arrays:
        return Choices.alike(if_none, pi)
    try:
        of_user, stored = arrays["policy_of_user"], json.loads(arrays["policies"].tobytes())
        kinds = tuple(Policy(**kind | {"never_items": frozenset(kind["never_items"])}) for kind in stored)
        is_known = (of_user >= 0) & (of_user < len(kinds))
        if of_user.shape != (n_users,) or of_user.dtype != np.int32 or not is_known.all():
            raise ModelError("The model's folder has policies of other users.")
        return Choices(kinds, of_user, pi)
    except (KeyError, ValueError, TypeError, SettingError) as reason:
        raise ModelError(f"The policies in the model's folder cannot be read ({reason}).") from reason


# Methods whose users choose what they share.


class ChoosingUsers(Recommender):
    """A method whose users choose what may leave their client."""

    choices: Choices
    """All users' choices."""
    _policies: Policies | None = None

    @takes_training_options
    def fit(
        self, train: Interactions, *, training_options: TrainingOptions | None = None, policies: Policies | None = None
    ) -> Self:
        """Train on the training part of a split.

        `policies`: one per user, in the sorted order of ids; or by id for some users, `{"ann": 0.3}`, where a number is
        a pi and the others follow the settings.
        """
        self._policies = policies
        return super().fit(train, training_options=training_options)

    def _ask_all(self, settings: Any, train: Interactions) -> str:
        """Set all users' choices; returns their digest, for the identity of a checkpoint."""
        self.choices = choices_for(settings, train, self._policies)
        chosen = b"".join(np.ascontiguousarray(array).tobytes() for array in choices_as_arrays(self.choices).values())
        return hashlib.sha256(chosen).hexdigest()
