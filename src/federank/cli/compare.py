"""`federank compare DIR DIR ...`: are the differences between models more than luck?"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path

import click

from federank.cli.evaluate import show_groups
from federank.cli.options import JSON
from federank.cli.tables import new_table, plain, show
from federank.data.interactions import Interactions
from federank.errors import BadSplit, SettingError
from federank.evaluation.evaluate import Evaluation, Part, evaluate
from federank.evaluation.significance import Comparison
from federank.evaluation.significance import compare as compare_users
from federank.methods.model_folder import load_model, load_split


@click.command()
@click.argument("models", type=click.Path(path_type=Path), metavar="DIR DIR...", nargs=-1, required=True)
@click.option("--at", type=int, metavar="N", default=10, show_default=True, help="Length of the lists to judge.")
@click.option(
    "--metrics", metavar="NAME,...", default="precision,recall,ndcg", show_default=True, help="What to compare by."
)
@click.option(
    "--part", type=click.Choice(["test", "validation"]), default="test", show_default=True, help="What to judge by."
)
@click.option(
    "--seed", type=click.IntRange(min=0), metavar="N", default=1, show_default=True, help="Seed of the bootstrap."
)
@JSON
def compare(models: tuple[Path, ...], at: int, metrics: str, part: Part, seed: int, as_json: bool) -> None:
    """Test whether models differ, over the users that they were all evaluated on.

    Every two models are compared by a paired t-test and Wilcoxon's test, with p-values corrected after Holm for the
    number of tests, an effect size (Cohen's d) and a bootstrap interval of the difference.

    \b
    Example:
      federank compare runs/a runs/b --at 10
    """
    if len(set(models)) < len(models) or len(models) < 2:
        raise SettingError("Give the folders of two or more different models to compare.")
    names = metrics.split(",")
    evaluations: dict[str, Evaluation] = {}
    first: Interactions | None = None
    for folder in models:
        split = load_split(folder)
        held_out = split.test if part == "test" else split.development.test
        first = first or held_out
        if held_out.fingerprint != first.fingerprint:
            raise BadSplit(f"{folder} and {models[0]} keep different {part} parts; train both on one split.")
        evaluations[str(folder)] = evaluate(load_model(folder), split, at=at, part=part, metrics=names)
    comparisons = compare_users(evaluations, metrics=[f"{name}@{at}" for name in names], seed=seed)
    if as_json:
        rows = ((one.as_dict().items()) for one in comparisons)  # JSON has no word for infinity
        content = [{name: None if value in (math.inf, -math.inf) else value for name, value in row} for row in rows]
        click.echo(json.dumps(content, indent=2))
        return
    _show(comparisons, evaluations)


def _show(comparisons: list[Comparison], evaluations: Mapping[str, Evaluation]) -> None:
    letter = {name: _letter(position) for position, name in enumerate(evaluations)}
    metrics = list(dict.fromkeys(one.metric for one in comparisons))
    table = new_table("", "Model", *(f"{metric}>" for metric in metrics))
    for name, evaluation in evaluations.items():
        table.add_row(letter[name], plain(name), *(f"{evaluation.means[metric]:.5f}" for metric in metrics))
    show(table)
    table = new_table("", "Diff.>", "95 % interval>", "t-test>", "Wilcoxon>", "d>")
    for one in comparisons:
        table.add_row(
            f"{one.metric} {letter[one.first]}-{letter[one.second]}",
            _signed(one.difference),
            f"{_signed(one.low)} {_signed(one.high)}",
            _p_value(one.t_test_holm),
            _p_value(one.wilcoxon_holm),
            f"{one.effect_size:+.2f}",
        )
    show(table)
    named = {letter[name]: evaluation for name, evaluation in evaluations.items()}
    show_groups(named, [metric.partition("@")[0] for metric in metrics], int(metrics[0].partition("@")[2]))
    users = {one.users for one in comparisons}
    tests = f"{len(comparisons)} pairs of figures" if len(comparisons) > 1 else "one pair of figures"
    click.echo(f"  {tests}, over {' and '.join(f'{count:,}' for count in sorted(users))} common users;")
    click.echo("  p-values are corrected after Holm; * below 0.05, ** below 0.01.")


def _letter(position: int) -> str:
    """A, B, ... Z, then A1, B1, ..."""
    return chr(ord("A") + position % 26) + (str(position // 26) if position >= 26 else "")


def _signed(value: float) -> str:
    """A small number with its sign and without the zero before the point, to save space."""
    return f"{value:+.5f}".replace("0.", ".", 1) if abs(value) < 1 else f"{value:+.3f}"


def _p_value(p: float) -> str:
    stars = "**" if p < 0.01 else "* " if p < 0.05 else "  "
    return ("<.0001" if p < 0.0001 else f"{p:.4f}".lstrip("0") if p < 1 else "1") + stars
