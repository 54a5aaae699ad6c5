"""`federank predict DIR --user U --item I`: the rating that a model expects, and what it rests on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from federank.errors import SettingError, UnknownId

if TYPE_CHECKING:
    from federank.methods.predicting import PredictsRatings


@click.command()
@click.argument("model", type=click.Path(path_type=Path), metavar="DIR")
@click.option("--user", metavar="ID", required=True, help="Someone the model has learnt from.")
@click.option("--item", metavar="ID", required=True, help="What to predict this person's rating of.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def predict(model: Path, user: str, item: str, as_json: bool) -> None:
    """The rating that a person would give an item, as a trained model sees it.

    Predictions lie within the declared range of ratings. An item that was never rated in training gets the person's
    mean rating, and that is said. Of a folder with folds, the models that have not seen this very rating are asked,
    and the mean of their predictions is given.

    \b
    Example:
      federank predict runs/pmf --user 42 --item 50
    """
    models = _models(model)
    known = [loaded for loaded in models if _knows(loaded, user)]
    if not known:
        models[0].training.user_index(user)  # says whom it knows
    unseen = [loaded for loaded in known if not _has_seen(loaded, user, item)] or known
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
    from federank.methods.folds import folds_in, is_folds
    from federank.methods.model_folder import load_model
    from federank.methods.predicting import PredictsRatings

    models = [load_model(position) for position in (folds_in(folder) if is_folds(folder) else [folder])]
    found = [model for model in models if isinstance(model, PredictsRatings)]
    if len(found) < len(models):
        raise SettingError(
            f"A {models[0].name} model ranks items and predicts no ratings; pmf, svdpp and biases models do."
        )
    return found


def _knows(model: PredictsRatings, user: str) -> bool:
    try:
        model.training.user_index(user)
    except UnknownId:
        return False
    return True


def _has_seen(model: PredictsRatings, user: str, item: str) -> bool:
    data = model.training
    try:
        return data.item_index(item) in data.profiles.of(data.user_index(user))
    except UnknownId:
        return False
