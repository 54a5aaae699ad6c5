"""Taking one's things along: all that a client knows, as plain values, with items under their ids and titles."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from federank._numerics.arrays import FloatVector, IntVector
from federank.errors import BadFile, BadState, SettingError
from federank.federation.client import History, Model
from federank.federation.method import Scale
from federank.privacy.ledger import RATING_NAMES, message_as_columns, message_columns
from federank.service.client.federation import Catalogue
from federank.service.client.http import shown
from federank.service.client.state import Identity, policy_as_text
from federank.service.client.store import ClientStore

LEDGER_COLUMNS = ("item", "title", "first_round", "last_round", "times_liked", "times_compared", "real")


def exported(store: ClientStore) -> dict[str, Any]:
    """All that a client knows, but for the token."""
    identity = store.identity()
    info = identity.info
    model = store.model(info)
    home = None if model is None else store.home_vector(model.version)
    return {
        "server": identity.server,
        "client": identity.client_id,
        "seed": identity.seed,
        "user": identity.user,
        "policy": exported_policy(store),
        "rounds": store.rounds(),
        "history": exported_history(store),
        "vector": None if info.rules.is_home_alone else store.vector(info.state_size).tolist(),
        "home_vector": None if home is None else home.tolist(),
        "model_version": None if model is None else model.version,
        "ledger": exported_ledger(store),
        "messages": store.ledger().message_rows(),
        "uploads": [{"round": sent.round_number, "outcome": sent.outcome or "waiting"} for sent in store.uploads()],
    }


def exported_history(store: ClientStore) -> list[dict[str, Any]]:
    """What the owner has, and how it is rated where the federation is of ratings."""
    catalogue, history = store.catalogue(), store.history()
    rows: list[dict[str, Any]] = [
        {"item": catalogue.ids[item], "title": catalogue.titles[item]} for item in history.items.tolist()
    ]
    for row, rating in zip(rows, history.ratings.tolist(), strict=False):
        row["rating"] = rating
    return rows


def exported_policy(store: ClientStore) -> dict[str, Any]:
    """What may leave, and who chose it."""
    policy, chosen_by = store.policy()
    ids = store.catalogue().ids
    never = [ids[item] for item in sorted(policy.never_items)]
    values: dict[str, Any] = json.loads(policy_as_text(policy))
    if policy.filling is None:
        values = {name: value for name, value in values.items() if name not in ("filling", "rho", "sampling")}
    return values | {"never_items": never, "chosen_by": chosen_by}


def exported_ledger(store: ClientStore) -> list[dict[str, Any]]:
    """What has left, item by item; where the federation is of ratings, as rated or as sampled."""
    catalogue, names = store.catalogue(), _columns(store)
    return [
        {"item": catalogue.ids[row["item"]], "title": catalogue.titles[row["item"]]}
        | {names.get(name, name): value for name, value in row.items() if name != "item"}
        for row in store.ledger().to_rows()
    ]


def _columns(store: ClientStore) -> dict[str, str]:
    """What columns are called otherwise where the federation is of ratings."""
    return {} if store.identity().info.scale is None else RATING_NAMES


def ledger_as_text(store: ClientStore, as_json: bool) -> str:
    """What has left, item by item and message by message, as JSON or as CSV."""
    rows, messages = exported_ledger(store), store.ledger().message_rows()
    if as_json:
        return json.dumps({"items": rows, "messages": messages} if messages else rows, indent=1)
    text = io.StringIO(newline="")
    names = _columns(store)
    columns = tuple(names.get(name, name) for name in LEDGER_COLUMNS)
    table = csv.DictWriter(text, columns + message_columns(store.ledger().messages))
    table.writeheader()
    table.writerows(rows)
    for message in store.ledger().messages:
        table.writerow({names.get(name, name): value for name, value in message_as_columns(message).items()})
    return text.getvalue()


# The owner's history, from a small CSV file: which of the federation's items it names.


RATING_COLUMNS = ("rating", "stars")


class Matched(NamedTuple):
    """What of a file the federation knows."""

    profile: IntVector  # item numbers, ascending
    named: int  # how many lines named an item
    unknown: list[str]
    ratings: FloatVector = np.zeros(0, dtype=np.float32)  # of the profile, where the federation is of ratings

    @property
    def history(self) -> History:
        """The same as a client keeps it."""
        return History(self.profile, self.ratings)


def read_profile(path: Path, catalogue: Catalogue, scale: Scale | None = None) -> Matched:
    """The items of a history file, matched by id and otherwise by title, whatever its capitals.

    `scale` is what ratings there are, where the federation is of ratings.
    """
    lines = _lines(path, scale)
    find = Finder(catalogue)
    found: dict[int, float] = {}
    unknown = []
    for text, rating in lines:
        number = find.number(text)
        if number is None:
            unknown.append(text)
        else:
            found[number] = rating
    profile = np.array(sorted(found), dtype=np.int32)
    if scale is None:
        return Matched(profile, len(lines), unknown)
    return Matched(profile, len(lines), unknown, np.array([found[item] for item in profile.tolist()], np.float32))


def rating_of(text: str, scale: Scale, where: str) -> float:
    """The rating that a person has written; `where` begins the sentence that says why it is none."""
    try:
        value = float(text.strip().replace(",", "."))
    except ValueError:
        raise BadFile(f"{where} is {shown(text)[:40]!r}, which is no number; ratings go {scale}.") from None
    reason = scale.why_not(value)
    if reason is not None:
        raise BadFile(f"{where} is {value:g}; {reason}.")
    return value


class Finder:
    """Items of a catalogue by what people write."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._ids = {name: number for number, name in enumerate(catalogue.ids)}
        self._titles: dict[str, int | None] = {}
        for number, title in enumerate(catalogue.titles):
            # Of two items with one title, none is meant for sure.
            key = title.casefold().strip()
            self._titles[key] = None if key in self._titles else number
        self._titles.pop("", None)

    def number(self, text: str) -> int | None:
        """The number of the item with this id, or with this title if only one has it."""
        text = shown(text)  # as the catalogue's own names are kept
        by_id = self._ids.get(text)
        return self._titles.get(text.casefold().strip()) if by_id is None else by_id


def never_items(catalogue: Catalogue, items: list[str], categories: list[str]) -> frozenset[int]:
    """The numbers of the items that must never be sent as liked, by id or title and by category; all must be known."""
    find = Finder(catalogue)
    numbers = set()
    for text in items:
        number = find.number(text)
        if number is None:
            raise SettingError(f"--never-items names {text!r}, which is no id and no single title of the catalogue.")
        numbers.add(number)
    wanted = {name.casefold() for name in categories}
    known = {name.casefold(): name for names in catalogue.categories for name in names}
    for name in categories:
        if name.casefold() not in known:
            raise SettingError(
                f"--never-categories names {name!r}; the catalogue has {', '.join(sorted(known.values())) or 'none'}."
            )
    for number, names in enumerate(catalogue.categories):
        if wanted.intersection(name.casefold() for name in names):
            numbers.add(number)
    return frozenset(numbers)


def _lines(path: Path, scale: Scale | None) -> list[tuple[str, float]]:
    """What a history file names, and how it is rated; 0 where nothing is."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            rows = [row for row in csv.reader(lines, skipinitialspace=True) if any(cell.strip() for cell in row)]
    except FileNotFoundError:
        raise BadFile(f"There is no file {path}; a CSV with a column `item` is needed, with ids or titles.") from None
    except (OSError, UnicodeDecodeError, csv.Error) as reason:
        raise BadFile(f"{path} cannot be read as a CSV of UTF-8 text: {reason}.") from reason
    if not rows:
        raise BadFile(f"{path} is empty; a CSV with a column `item` is needed, with ids or titles.")
    header = [cell.strip().casefold() for cell in rows[0]]
    if "item" in header:
        column = header.index("item")
        stars = None if scale is None else next((n for n, name in enumerate(header) if name in RATING_COLUMNS), None)
        if scale is not None and stars is None:
            raise BadFile(_no_ratings(path, scale))
        found = []
        for line, row in enumerate(rows[1:], start=2):
            if len(row) <= column:
                raise BadFile(f"{path}, row {line}: there is no value in the column `item`.")
            if not row[column].strip():
                continue
            rating = 0.0
            if scale is not None and stars is not None:
                if len(row) <= stars or not row[stars].strip():
                    raise BadFile(f"{path}, row {line}: there is no rating in the column `{header[stars]}`.")
                rating = rating_of(row[stars], scale, f"{path}, row {line}: the rating of {shown(row[column])[:60]}")
            found.append((row[column].strip(), rating))
        return found
    if len(header) > 1:
        raise BadFile(f"{path} has the columns {', '.join(rows[0])}; one of them must be called `item`.")
    if scale is not None:
        raise BadFile(_no_ratings(path, scale))
    return [(row[0].strip(), 0.0) for row in rows]


def _no_ratings(path: Path, scale: Scale) -> str:
    return (
        f"{path} says which items and not how they were found: this federation is of ratings, not of likes. A column "
        f"`rating` is needed beside `item`; ratings go {scale}."
    )


# Recommending on the client: the best items of the cached model that its owner does not have; no network.


class Suggestion(NamedTuple):
    """One recommended item."""

    item: str
    title: str
    score: float


def recommend(store: ClientStore, n: int) -> list[Suggestion]:
    """The n best items that the owner does not have."""
    identity = store.identity()
    info = identity.info
    model = store.model(info)
    if model is None:
        raise BadState(f"{store.path} holds no model yet; `federank client` fetches one.")
    policy, _ = store.policy()
    at_home = info.rules.is_home_alone or policy.basis == "shared" or store.rounds() == 0
    vector = home_vector(store, identity, model) if at_home else store.vector(info.state_size)
    scores = info.rules.scores(model, vector)
    catalogue = store.catalogue()
    scores[store.profile()] = scores[list(catalogue.ended)] = -np.inf
    # Of equal scores the smaller number comes first, as everywhere.
    best = np.argsort(-scores, kind="stable")[:n]
    return [
        Suggestion(catalogue.ids[item], catalogue.titles[item], _shown_score(float(scores[item]), info.scale))
        for item in best
        if np.isfinite(scores[item])
    ]


def _shown_score(score: float, scale: Scale | None) -> float:
    return score if scale is None else min(max(score, scale.lowest), scale.highest)


def home_vector(store: ClientStore, identity: Identity, model: Model) -> FloatVector:
    """The home vector for this model: the one that is kept, or a new one."""
    info = identity.info
    kept = store.home_vector(model.version)
    if kept is not None:
        return kept
    vector = info.rules.home_vector(identity.seed, identity.user, store.history(), model)
    store.write_home_vector(vector, model.version)
    return vector


# Stars: the owner rates an item, and asks what they would give another; no network with either.


class Predicted(NamedTuple):
    """What the owner would give an item."""

    item: str
    title: str
    rating: float
    fallback: bool  # no upload has rated it: the rating is the owner's mean
    own: float | None  # what the owner has given it already


class Rated(NamedTuple):
    """What the owner has given an item, now and before."""

    item: str
    title: str
    rating: float | None
    before: float | None


def rate(store: ClientStore, item: str, stars: str) -> Rated:
    """Keep a rating, or take one back (`none`); a client that runs follows from its next round."""
    scale = needed_scale(store)
    number = _number(store, item)
    catalogue, history = store.catalogue(), store.history()
    known = dict(zip(history.items.tolist(), history.ratings.tolist(), strict=True))
    before = known.pop(number, None)
    rating = None
    if stars.strip().casefold() != "none":
        rating = known[number] = rating_of(stars, scale, f"The rating of {catalogue.titles[number]}")
    elif before is None:
        raise SettingError(f"{catalogue.titles[number]} is not rated, so there is nothing to take back.")
    if not known:
        raise SettingError(
            "This is the only rating, and a client without any cannot take part; `federank client leave --erase` "
            "removes the client."
        )
    if len(known) == len(catalogue.ids) and store.identity().info.rules.needs_others:
        raise SettingError("With this one all of the catalogue would be rated; nothing would be left to predict.")
    items = sorted(known)
    store.write_history(History(np.array(items, np.int32), np.array([known[item] for item in items], np.float32)))
    return Rated(catalogue.ids[number], catalogue.titles[number], rating, before)


def predict(store: ClientStore, item: str) -> Predicted:
    """What the owner would give an item, by id or title."""
    scale = needed_scale(store)
    number = _number(store, item)
    identity, history, catalogue = store.identity(), store.history(), store.catalogue()
    model = store.model(identity.info)
    if model is None:
        raise BadState(f"{store.path} holds no model yet; `federank client` fetches one.")
    vector = home_vector(store, identity, model)
    value = float(identity.info.rules.scores(model, vector)[number])
    fallback = not np.isfinite(value)
    if fallback:
        value = float(history.ratings.mean())
    at = int(np.searchsorted(history.items, number))
    own = float(history.ratings[at]) if at < len(history.items) and history.items[at] == number else None
    rating = min(max(value, scale.lowest), scale.highest)
    return Predicted(catalogue.ids[number], catalogue.titles[number], rating, fallback, own)


def needed_scale(store: ClientStore) -> Scale:
    """What ratings there are; a federation of likes has none."""
    scale = store.identity().info.scale
    if scale is None:
        raise SettingError(
            "This client's federation is of likes: it knows no ratings and predicts none. `federank client recommend` "
            "lists what it would recommend."
        )
    return scale


def _number(store: ClientStore, item: str) -> int:
    number = Finder(store.catalogue()).number(item)
    if number is None:
        raise SettingError(f"{item[:80]!r} is no id and no single title of the catalogue; write it as it stands there.")
    return number
