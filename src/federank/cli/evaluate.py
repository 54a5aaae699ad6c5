"""`federank evaluate DIR`: how good a model's recommendations are, or those in a file of another toolkit."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import click

from federank.cli.options import FILE, FOLDER
from federank.errors import SettingError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from federank.data.interactions import Categories
    from federank.data.splits import Split
    from federank.evaluation.evaluate import Evaluation, Over, Part
    from federank.methods.recommender import Recommender


ROWS = {
    "precision": "Precision",
    "recall": "Recall",
    "f1": "F1",
    "ndcg": "nDCG",
    "map": "MAP",
    "mrr": "MRR",
    "hit_rate": "Hit rate",
    "item_coverage": "Item coverage: different items",
    "item_coverage_share": "  as a share of the catalogue",
    "gini_diversity": "1 - Gini, as in the papers: 1 is even",
    "gini": "Gini index: 0 is even",
    "epc": "Novelty (EPC)",
    "arp": "Popularity of items (ARP)",
    "popularity_lift": "  lift over the users' profiles",
}
"""What each metric is called in a table, in the table's order."""
SAMPLED_ROWS = {
    "sampled_hit_rate": "Hit rate among sampled items",
    "sampled_ndcg": "nDCG among sampled items",
    "sampled_mrr": "MRR among sampled items",
}


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
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
def evaluate(
    model: Path | None,
    at: tuple[int, ...],
    part: Part,
    over: Over,
    recommendations: Path | None,
    split_folder: Path | None,
    category_file: Path | None,
    group_file: Path | None,
    per_user: Path | None,
    negatives: int | None,
    card: Path | None,
    as_json: bool,
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
    from federank.evaluation.evaluate import evaluate as judge
    from federank.methods.model_folder import is_folds, load_model

    given = model if recommendations is None else recommendations
    if given is None or (model is not None and recommendations is not None):
        raise SettingError("Say what to judge: a model's folder, or a file with --recommendations; one of them.")
    if split_folder is None and model is None:
        raise SettingError("A file of recommendations does not say what to judge it by; add --split DIR.")
    if card is not None:
        _write_card(model, at, card)
        return
    if model is not None and is_folds(model):
        others = split_folder or category_file or group_file or per_user or negatives
        if others or part != "test" or over != "all":
            raise SettingError(f"{model} holds folds, each with its own test part; only --at and --json go with them.")
        evaluate_folds(model, at, as_json=as_json)
        return
    split = read_any_split(split_folder or given)
    categories, groups, new_users = _read_files(category_file, group_file, split)
    loaded = None if model is None else load_model(model)
    judged = given if loaded is None else loaded
    result = judge(
        judged, split, at=at, part=part, over=over, categories=categories, groups=groups, negatives=negatives
    )
    errors, fallbacks = rating_figures(loaded, split if part == "test" else split.development)
    notes = [*fallbacks, *result.notes, *new_users]
    if per_user is not None:
        result.write_per_user(per_user)
    promised = _guarantee(loaded)
    if as_json:
        content: dict[str, Any] = {**errors, **result.means, **promised, "notes": notes}
        content |= {"part": part, "split": split.how}
        content["by_group"] = result.by_group.to_dicts()
        if groups is not None and result.bias is not None:
            content["bias_of_groups"] = result.bias.to_dicts()
        click.echo(json.dumps(content, indent=2))
        return
    click.echo(f"{split.train.name}, judged by the {part} part\nSplit: {split.how}\n")
    show_errors(errors)
    _show(result)
    if promised:
        from federank.cli.tables import reported_guarantee

        click.echo(f"{fill(reported_guarantee(promised), 79)}\n")
    for note in notes:
        click.echo(f"  {note}")
    if per_user is not None:
        click.echo(f"  Each user's values are in {per_user}.")


def _write_card(model: Path | None, at: tuple[int, ...], card: Path) -> None:
    from federank.evaluation.card import model_card
    from federank.files import atomic_write

    if model is None or len(at) > 1:
        raise SettingError("--card describes one stored model at one length of lists; name its folder and one --at.")
    atomic_write(card, model_card(model, at=at[0]))
    click.echo(f"Written: {card}")


def _guarantee(model: Recommender | None) -> dict[str, Any]:
    """What a model's report says of the noise it was learnt with; empty where there is none."""
    if model is None or "adjacency" not in model.report:
        return {}
    names = ("epsilon", "delta", "messages", "against", "adjacency")
    return {name: model.report[name] for name in names if name in model.report}


def read_any_split(folder: Path) -> Split:
    """The split that a model's folder keeps, or that `federank data split` wrote."""
    from federank.data.split_files import read_split
    from federank.methods.model_folder import load_split

    if (folder / "train.tsv").exists():
        return read_split(folder)
    return load_split(folder)


def _read_files(
    category_file: Path | None, group_file: Path | None, split: Split
) -> tuple[Categories | None, dict[Any, str] | None, list[str]]:
    """Categories of items and groups of users from files, and a sentence on what in them the data do not know."""
    from federank.evaluation.evaluate import read_categories, read_groups

    categories = groups = None
    notes = []
    if category_file is not None:
        categories, unknown = read_categories(category_file, split.train)
        notes += [f"Items of {category_file} that the data do not have, left out: {unknown:,}."] * (unknown > 0)
    if group_file is not None:
        groups, unknown = read_groups(group_file, split.train)
        notes += [f"Users of {group_file} that the data do not have, left out: {unknown:,}."] * (unknown > 0)
    return categories, groups, notes


def _show(result: Evaluation) -> None:
    from federank.cli.tables import new_table, plain, show
    from federank.evaluation.metrics import ALL_USERS, registered_metrics

    table = new_table("", *(f"@{n}>" for n in result.at))
    for name, title in (ROWS | {name: name for name in registered_metrics()}).items():
        table.add_row(title, *(figure(result.means[f"{name}@{n}"]) for n in result.at))
    if f"sampled_hit_rate@{result.at[0]}" in result.means:
        table.add_section()
        for name, title in SAMPLED_ROWS.items():
            table.add_row(title, *(figure(result.means[f"{name}@{n}"]) for n in result.at))
    table.add_section()
    table.add_row("Users", *([f"{result.means['users']:,}"] * len(result.at)))
    table.add_row("  of whom have recommendations", *([f"{result.means['user_coverage']:.1%}"] * len(result.at)))
    show(table)
    show_groups({"": result}, ("recall", "ndcg"), result.at[-1])
    if result.bias is not None:
        n = result.at[-1]
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
    from federank.cli.tables import new_table, show

    tables = {name: result.by_group.filter(at=n) for name, result in evaluations.items()}
    first = next(iter(tables.values()))
    metrics = [metric for metric in metrics if metric in first.columns]
    titles = [f"{name} {metric}@{n}>".lstrip() for name in tables for metric in metrics]
    table = new_table("Group", "History or users>", "Size>", *titles)
    for number, row in enumerate(first.iter_rows(named=True)):
        values = [result[metric][number] for result in tables.values() for metric in metrics]
        shown = ("-" if value is None else figure(value) for value in values)
        title = f"{'Users by activity' if row['by'] == 'activity' else 'Items by popularity'} {row['group']}"
        table.add_row(title, f"{row['least']:,} to {row['most']:,}", f"{row['size']:,}", *shown)
    show(table)


def figure(value: float) -> str:
    """A count as it is, a mean with five decimals."""
    return f"{value:,}" if isinstance(value, int) else f"{value:.5f}" if abs(value) < 100 else f"{value:,.1f}"


# `federank evaluate DIR`, where DIR holds folds: each model on its own test part, then means and deviations.


RATING_ROWS = {"mae": "MAE", "rmse": "RMSE"}


def rating_figures(model: Recommender | None, split: Split) -> tuple[dict[str, float], list[str]]:
    """MAE and RMSE of a model that predicts ratings, with notes on its fallbacks; nothing for any other."""
    from federank.evaluation.evaluate import prediction_errors
    from federank.methods.predicting import PredictsRatings

    if not isinstance(model, PredictsRatings):
        return {}, []
    result = prediction_errors(model, split.test)
    return {"mae": result.mae, "rmse": result.rmse}, result.notes


def show_errors(errors: dict[str, float]) -> None:
    """MAE and RMSE on a line each, where there are any."""
    for name, value in errors.items():
        click.echo(f"  {RATING_ROWS[name]:<5} {value:.4f}")
    if errors:
        click.echo()


def evaluate_folds(folder: Path, at: tuple[int, ...], *, as_json: bool) -> None:
    """Judge every fold, and print what they say together."""
    from federank.evaluation.evaluate import evaluate as judge
    from federank.evaluation.evaluate import over_folds
    from federank.methods.model_folder import folds_in, load_model, load_split

    figures, notes, name = [], [], ""
    for number, position in enumerate(folds_in(folder), start=1):
        model, split = load_model(position), load_split(position)
        name = split.train.name
        errors, fallbacks = rating_figures(model, split)
        result = judge(model, split, at=at)
        figures.append(errors | result.means)
        notes += [f"Fold {number}: {note}" for note in (*fallbacks, *result.notes)]
    together = over_folds(figures)
    if as_json:
        content: dict[str, Any] = {**together, "folds": len(figures), "per_fold": figures, "notes": notes}
        click.echo(json.dumps(content, indent=2))
        return
    click.echo(f"{name}, {len(figures)} folds, each model judged by its own test part\n")
    _show_folds(together, figures, at)
    for note in notes:
        click.echo(f"  {note}")


def _show_folds(together: dict[str, float], figures: list[dict[str, float]], at: tuple[int, ...]) -> None:
    from federank.cli.tables import new_table, show

    table = new_table("", "Mean>", "Deviation>", "Least>", "Most>")
    titles = RATING_ROWS | {f"{name}@{n}": f"{title} @{n}" for n in at for name, title in ROWS.items()}
    for name, title in titles.items():
        if name in together:
            values = [fold[name] for fold in figures]
            shown = (together[name], together[f"{name}_std"], min(values), max(values))
            table.add_row(title, *(figure(float(value)) for value in shown))
    show(table)
