"""`federank recommend DIR`: recommendations of a trained model, and predicted ratings."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from federank.cli.options import FILE, FOLDER, JSON
from federank.cli.tables import new_table, plain, show
from federank.data.interactions import Interactions
from federank.errors import SettingError, UnknownId
from federank.methods.model_folder import folds_in, is_folds, load_model
from federank.methods.predicting import PredictsRatings, can_enrol, enrol


@click.command()
@click.argument("model", type=FOLDER)
@click.option("--user", metavar="ID", help="A user of the training data.")
@click.option("--like", "likes", metavar="ITEM", multiple=True, help="A new user who likes this item; repeatable.")
@click.option("--item", metavar="ID", help="With --user: predict the rating of this item (pmf, svdpp, biases).")
@click.option("--all", "all_users", is_flag=True, help="All users; needs --out.")
@click.option("-n", "n", type=int, metavar="N", default=10, show_default=True, help="How many items.")
@click.option("--out", type=FILE, help="Write `user item score` lines; .csv, .parquet or .json too.")
@JSON
def recommend(
    model: Path,
    user: str | None,
    likes: tuple[str, ...],
    item: str | None,
    all_users: bool,
    n: int,
    out: Path | None,
    as_json: bool,
) -> None:
    """Recommend the best items that a user does not have yet, or predict a rating (--item).

    A new user's vector is computed from the items they like; the model does not change. Predicted ratings stay within
    the range of ratings. An item without ratings in training gets the user's mean rating, and a note says so. Of a
    folder with folds, the mean over the models that have not seen this rating is predicted.

    \b
    Examples:
      federank recommend runs/city --user 17 -n 5
      federank recommend runs/city --like 3 --like 42
      federank recommend runs/city --all --out recommendations.tsv
      federank recommend runs/pmf --user 42 --item 50
    """
    if (user is not None) + bool(likes) + all_users != 1:
        raise SettingError("Say for whom: --user ID, or --like ITEM for a new user, or --all; one of them.")
    if item is not None:
        if user is None:
            raise SettingError("--item predicts a user's rating; name the user with --user.")
        _predict(model, user, item, as_json)
        return
    loaded = load_model(model)
    if all_users:
        if out is None:
            raise SettingError("The recommendations of all users need a file; name it with --out FILE.")
        table = loaded.recommend(n=n)
        table.write(out)
        click.echo(f"{len(table):,} users' recommendations are in {out}.")
        return
    if likes:
        if not can_enrol(loaded):
            raise SettingError(
                f"A {loaded.name} model has no vector for a new user who likes items; from Python see enrol."
            )
        listed = enrol(loaded, likes).recommend(n)
    else:
        listed = loaded.recommend(str(user), n)
    if as_json:
        click.echo(json.dumps([recommended._asdict() for recommended in listed]))
        return
    if not listed:
        click.echo("There is nothing left to recommend: this user has the full catalogue.")
        return

    titled = any(recommended.title for recommended in listed)
    shown = new_table("Rank>", "Item", *(["Title"] if titled else []), "Score>")
    for rank, (item, score, title) in enumerate(listed, start=1):
        shown.add_row(str(rank), plain(str(item)), *([plain(title)] if titled else []), f"{score:.3f}")
    show(shown)


def _predict(folder: Path, user: str, item: str, as_json: bool) -> None:
    models = _models(folder)
    known = [loaded for loaded in models if _number(loaded.training.user_index, user) is not None]
    if not known:
        models[0].training.user_index(user)  # says whom it knows
    unseen = [loaded for loaded in known if not _has_seen(loaded.training, user, item)] or known
    answers = [loaded.predict_all([user], [item]) for loaded in unseen]
    rating = sum(float(answer.values[0]) for answer in answers) / len(answers)
    fallback = any(answer.unrated_items for answer in answers)
    if as_json:
        content: dict[str, Any] = {"user": user, "item": item, "rating": rating, "models": len(answers)}
        click.echo(json.dumps(content | {"fallback": "user mean" if fallback else None}))
        return
    click.echo(f"{rating:.2f}")
    if fallback:
        click.echo(f"Item {item} was never rated in training; this is the mean rating of user {user}.", err=True)


def _models(folder: Path) -> list[PredictsRatings]:
    models = [load_model(position) for position in (folds_in(folder) if is_folds(folder) else [folder])]
    predicting = [model for model in models if isinstance(model, PredictsRatings)]
    if len(predicting) < len(models):
        raise SettingError(
            f"A {models[0].name} model ranks items and predicts no ratings; pmf, svdpp and biases models do."
        )
    return predicting


def _has_seen(data: Interactions, user: str, item: str) -> bool:
    return _number(data.item_index, item) in data.profiles.of(data.user_index(user)).tolist()


def _number(index: Callable[[str], int], identity: str) -> int | None:
    """The number of an id; None where the data do not have it."""
    try:
        return index(identity)
    except UnknownId:
        return None
