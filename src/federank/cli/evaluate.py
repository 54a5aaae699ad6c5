"""`federank evaluate DIR`: how good a model's recommendations are, or those in a file of another toolkit."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

import click

from federank.cli.options import FILE, FOLDER, JSON, is_given
from federank.cli.tables import new_table, plain, reported_guarantee, show
from federank.data.interactions import Interactions
from federank.data.split_files import read_split
from federank.data.splits import Split
from federank.errors import SettingError
from federank.evaluation.card import model_card
from federank.evaluation.evaluate import (
    METRICS,
    RATING,
    Evaluation,
    over_folds,
    prediction_errors,
    read_categories,
    read_groups,
)
from federank.evaluation.evaluate import evaluate as judge
from federank.evaluation.lists import SAMPLED
from federank.evaluation.metrics import ALL_USERS, registered_metrics
from federank.files import atomic_write
from federank.methods.model_folder import folds_in, is_folds, load_model, load_split
from federank.methods.predicting import PredictsRatings
from federank.methods.recommender import Recommender
from federank.studies.metric_words import words_of, written


def _lengths(_context: click.Context, _option: click.Parameter, value: str) -> tuple[int, ...]:
    """One or more lengths of a list: 10, or 5,10."""
    try:
        return tuple(int(part) for part in value.split(","))
    except ValueError:
        raise SettingError(f"--at is {value!r}; give a length of lists, or several with commas: 10, or 5,10.") from None


@click.command()
@click.argument("model", type=FILE, metavar="[DIR]", required=False)
@click.option(
    "--at", callback=_lengths, metavar="N,...", default="10", show_default=True, help="Lengths of the lists to judge."
)
@click.option(
    "--part", type=click.Choice(["test", "validation"]), default="test", show_default=True, help="What to judge by."
)
@click.option(
    "--over",
    type=click.Choice(["all", "covered"]),
    default="all",
    show_default=True,
    help="Whose values a mean is taken over: all who are tested, or those who got a list.",
)
@click.option(
    "--recommendations", type=FILE, help="Judge this file of `user item score` lines instead of a model; needs --split."
)
@click.option(
    "--split",
    "split_folder",
    type=FOLDER,
    help="A folder that `federank data split` wrote, or a model's; without it, the model's own split.",
)
@click.option("--categories", "category_file", type=FILE, help="Categories of items: lines of `item category`.")
@click.option(
    "--groups", "group_file", type=FILE, help="Groups of users, to report the bias of each: lines of `user group`."
)
@click.option("--per-user", type=FILE, help="Write each user's values as .parquet, .csv, .tsv or .json.")
@click.option(
    "--negatives",
    type=click.IntRange(min=1),
    metavar="N",
    help="Also rank each test item among N items drawn at random, as some papers do (99).",
)
@click.option("--card", type=FILE, help="Write a model card in Markdown instead.")
@JSON
def evaluate(
    model: Path | None,
    recommendations: Path | None,
    split_folder: Path | None,
    card: Path | None,
    per_user: Path | None,
    as_json: bool,
    **values: Any,
) -> None:
    """How good the recommendations of a trained model are, or those in a file.

    All items that a user does not have are ranked, and the first N compared with what the user chose later. Means
    are over all users with a test item, and one without recommendations counts as zero; with --over covered they are
    over those who got a list. With --negatives each test item is also ranked among a few: other figures.

    \b
    Examples:
      federank evaluate runs/city --at 5,10
      federank evaluate runs/city --card card.md
      federank evaluate --recommendations recs.tsv --split city-split --json
    """
    given = model if recommendations is None else recommendations
    if given is None or (model is not None and recommendations is not None):
        raise SettingError("Say what to judge: a model's folder, or a file with --recommendations; one of them.")
    if split_folder is None and model is None:
        raise SettingError("A file of recommendations does not say what to judge it by; add --split DIR.")
    at = values["at"]
    if card is not None:
        if model is None or len(at) > 1:
            raise SettingError(
                "--card describes one stored model at one length of lists; name its folder and one --at."
            )
        atomic_write(card, model_card(model, at=at[0]))
        click.echo(f"Written: {card}")
        return
    if model is not None and is_folds(model):
        others = any(is_given(name) for name in (*values, "split_folder", "per_user") if name != "at")
        if others:
            raise SettingError(f"{model} holds folds, each with its own test part; only --at and --json go with them.")
        _evaluate_folds(model, at, as_json=as_json)
        return
    folder, part = split_folder or given, values["part"]  # of a model, or one that `federank data split` wrote
    split = read_split(folder) if (folder / "train.tsv").exists() else load_split(folder)
    groups, new_users = _read_groups(values.pop("group_file"), read_groups, split)
    categories, new_items = _read_groups(values.pop("category_file"), read_categories, split)
    loaded = None if model is None else load_model(model)
    result = judge(given if loaded is None else loaded, split, categories=categories, groups=groups, **values)
    errors, fallbacks = _rating_figures(loaded, split if part == "test" else split.development)
    notes = [*fallbacks, *result.notes, *new_items, *new_users]
    if per_user is not None:
        result.write_per_user(per_user)
        notes.append(f"Each user's values are in {per_user}.")
    guarantee: dict[str, Any] = {}
    if loaded is not None and "adjacency" in loaded.report:
        names = ("epsilon", "delta", "messages", "against", "adjacency")
        guarantee = {name: loaded.report[name] for name in names if name in loaded.report}
    if as_json:
        content: dict[str, Any] = {**errors, **result.means, **guarantee, "notes": notes}
        content |= {"part": part, "split": split.how}
        content["by_group"] = result.by_group.to_dicts()
        if groups is not None and result.bias is not None:
            content["bias_of_groups"] = result.bias.to_dicts()
        click.echo(json.dumps(content, indent=2))
        return
    click.echo(f"{split.train.name}, judged by the {part} part\nSplit: {split.how}\n")
    for name, value in errors.items():
        click.echo(f"  {name.upper():<5} {value:.4f}")
    if errors:
        click.echo()
    _show(result)
    if guarantee:
        click.echo(f"{fill(reported_guarantee(guarantee), 79)}\n")
    for note in notes:
        click.echo(f"  {note}")


def _read_groups(path: Path | None, read: Callable[[Path, Interactions], tuple[Any, int]], split: Split) -> Any:
    """Categories of items or groups of users from a file, and a sentence on what in it the data do not know."""
    if path is None:
        return None, []
    groups, unknown = read(path, split.train)
    return groups, [f"Lines of {path} that the data do not have, left out: {unknown:,}."] * (unknown > 0)


def _show(result: Evaluation) -> None:
    table = new_table("", *(f"@{n}>" for n in result.at))
    for name in (*METRICS, *registered_metrics(), *SAMPLED):
        if f"{name}@{result.at[0]}" in result.means:
            figures = (written(name, result.means[f"{name}@{n}"]) for n in result.at)
            table.add_row(words_of(name).axis, *figures)
    table.add_section()
    table.add_row("Users", *([f"{result.means['users']:,}"] * len(result.at)))
    table.add_row("  of whom have recommendations", *([f"{result.means['user_coverage']:.1%}"] * len(result.at)))
    show(table)
    n = result.at[-1]
    show_groups({"": result}, ("recall", "ndcg"), n)
    if result.bias is None:
        return
    for (group,), rows in result.bias.filter(at=n).group_by("group", maintain_order=True):
        if group != ALL_USERS:
            click.echo(f"  Group: {plain(str(group)).plain}\n")
        table = new_table(f"Bias of categories @{n}", "Training>", "Lists>", "Disparity>")
        for row in rows.iter_rows(named=True):
            values = (row[name] for name in ("bias_train", "bias", "bias_disparity"))
            table.add_row(plain(row["category"]), *("-" if value is None else f"{value:.3f}" for value in values))
        show(table)


def show_groups(evaluations: Mapping[str, Evaluation], metrics: Sequence[str], n: int) -> None:
    """Metrics by user activity and item popularity, one column per metric and evaluation."""
    tables = {name: result.by_group.filter(at=n) for name, result in evaluations.items()}
    first = next(iter(tables.values()))
    metrics = [metric for metric in metrics if metric in first.columns]
    titles = [f"{name} {metric}@{n}>".lstrip() for name in tables for metric in metrics]
    table = new_table("Group", "History or users>", "Size>", *titles)
    for number, row in enumerate(first.iter_rows(named=True)):
        values = [written(metric, result[metric][number]) for result in tables.values() for metric in metrics]
        title = f"{'Users by activity' if row['by'] == 'activity' else 'Items by popularity'} {row['group']}"
        table.add_row(title, f"{row['least']:,} to {row['most']:,}", f"{row['size']:,}", *values)
    show(table)


def _rating_figures(model: Recommender | None, split: Split) -> tuple[dict[str, float], list[str]]:
    """MAE and RMSE of a model that predicts ratings, with notes on its fallbacks; nothing for any other."""
    if not isinstance(model, PredictsRatings):
        return {}, []
    result = prediction_errors(model, split.test)
    return {"mae": result.mae, "rmse": result.rmse}, result.notes


def _evaluate_folds(folder: Path, at: tuple[int, ...], *, as_json: bool) -> None:
    """Judge every fold, and print what they say together."""
    figures, notes, name = [], [], ""
    for number, position in enumerate(folds_in(folder), start=1):
        model, split = load_model(position), load_split(position)
        name = split.train.name
        errors, fallbacks = _rating_figures(model, split)
        result = judge(model, split, at=at)
        figures.append(errors | result.means)
        notes += [f"Fold {number}: {note}" for note in (*fallbacks, *result.notes)]
    together = over_folds(figures)
    if as_json:
        content: dict[str, Any] = {**together, "folds": len(figures), "per_fold": figures, "notes": notes}
        click.echo(json.dumps(content, indent=2))
        return
    click.echo(f"{name}, {len(figures)} folds, each model judged by its own test part\n")
    table = new_table("", "Mean>", "Deviation>", "Least>", "Most>")
    for metric in (*RATING, *(f"{name}@{n}" for n in at for name in METRICS)):
        if metric in together:
            values = [fold[metric] for fold in figures]
            shown = (together[metric], together[f"{metric}_std"], min(values), max(values))
            table.add_row(words_of(metric).axis, *(written(metric, float(value)) for value in shown))
    show(table)
    for note in notes:
        click.echo(f"  {note}")
