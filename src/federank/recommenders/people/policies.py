"""A population of choices, from a file: who allows what.

    [default]                    # everybody who is not named below; keys that are missing are the run's settings
    sharing = "sticky"
    pi = 0.3

    [groups.open]                # this share of all people, drawn with the seed; missing keys are the default's
    share = 0.2
    pi = 1.0

    [people."A3EBHHCZO6V2A4"]    # one person, by original id
    sharing = "deniable"
    pi = 0.5
    epsilon = 2
    never_categories = ["Horror"]

The keys are those of `Policy` (sharing, pi, epsilon, basis, budget, messages, triples, paused), with items to be left
out by their original ids (never_items) and by the names of their categories (never_categories).
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from federank.arrays import IntVector, RealVector
from federank.checks import did_you_mean
from federank.compiling import compiled
from federank.data.interactions import Interactions
from federank.errors import BadFile, SettingError, UnknownId
from federank.protocol.draws import GROUP, words
from federank.protocol.policies.choices import Choices
from federank.protocol.policies.policy import Policy, default_basis

_KEYS = (
    *("sharing", "pi", "epsilon", "basis", "budget", "messages", "triples", "paused"),
    *("never_items", "never_categories"),
)


def read_choices(
    path: str | Path, settings: dict[str, Any], pi: RealVector, data: Interactions, seed: int
) -> tuple[Choices, dict[str, IntVector]]:
    """Everyone's choices and the people of each group; `settings` and `pi` are those of people who choose nothing."""
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
    group_of = {int(user): name for name, people in members.items() for user in people}
    for person, section in content.get("people", {}).items():
        where = f'[people."{person}"]'
        _refuse_unknown(path, where, section, _KEYS)
        user = _user(path, data, person)
        group = groups.get(group_of.get(user, ""), {})
        sections.append((where, [settings, default, group, section], np.array([user], dtype=np.int32)))
    kinds: list[Policy] = []
    of_user, pi = np.zeros(data.n_users, dtype=np.int32), pi.copy()
    for where, layers, people in sections:
        policy, own_pi = _policy(path, where, layers, data)
        of_user[people] = len(kinds)
        kinds.append(policy)
        if own_pi is not None:
            pi[people] = own_pi
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
    """The policy of these layers, later ones first, and the pi they give, if any."""
    values: dict[str, Any] = {}
    for layer in layers:
        if "sharing" in layer:  # another way of sharing comes with its own epsilon and basis
            values = {key: value for key, value in values.items() if key not in ("epsilon", "basis")}
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
    """Who belongs to which group: people in a drawn order, cut into shares."""
    shares = [section.get("share") for section in groups.values()]
    for name, share in zip(groups, shares, strict=True):
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
            raise BadFile(f"{path}: [groups.{name}] needs a share of the people, above 0 and at most 1, not {share!r}.")
    if sum(shares) > 1 + 1e-9:
        raise BadFile(f"{path}: the groups' shares add up to {sum(shares):g}; at most 1 is needed.")
    order = np.argsort(_words_of_people(seed, n_users), kind="stable").astype(np.int32)
    ends = np.rint(np.cumsum([0, *shares]) * n_users).astype(int)
    return {name: np.sort(order[ends[position] : ends[position + 1]]) for position, name in enumerate(groups)}


@compiled
def _words_of_people(seed: int, n_users: int) -> np.ndarray[Any, np.dtype[np.uint32]]:
    drawn = np.empty(n_users, np.uint32)
    for user in range(n_users):
        word, _, _, _ = words(seed, user, GROUP, 0, 0)
        drawn[user] = word
    return drawn


def _user(path: str | Path, data: Interactions, person: str) -> int:
    try:
        return data.user_index(person)
    except UnknownId as unknown:
        raise BadFile(f"{path} names somebody who is not there: {unknown}") from unknown
