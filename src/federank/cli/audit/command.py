"""`federank audit fpl` and `federank audit DIR`: what would a curious server learn about the people in a run?"""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from federank.cli.audit.report import tell_audit
from federank.cli.reading import Reading, reads_data_option
from federank.cli.settings_flags import given_settings, names_of, settings_options
from federank.errors import ModelError, SettingError
from federank.protocol.frugal import FrugalSettings
from federank.protocol.pairs.recipes import PRESETS, FPLSettings
from federank.protocol.ratings.recipes import PMFSettings
from federank.recommenders.registry import audited_names, recommender_class

if TYPE_CHECKING:
    from federank.audit.findings import Audited
    from federank.data.interactions import Interactions
    from federank.engines.conduct import Conduct
    from federank.recommenders.recommender import Recommender

_OF_AN_AUDIT = {"what", "sees", "per_epoch", "people", "threads", "quiet", "as_json"}
"""The options that are about the audit; all others are about the training."""


_FIRST: dict[str, type[Any]] = {"fpl": FPLSettings, "pmf": PMFSettings, "frugal": FrugalSettings}
"""The records that are told first; those of fcf and svdpp have nothing beside them."""


class WithSettings(click.Command):
    """A command that also has an option for every setting of every method that can be audited."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The settings' options, then the command's own."""
        others = [name for name in audited_names() if name not in (*_FIRST, "fcf", "svdpp")]
        records = _FIRST | {name: recommender_class(name).settings_type for name in others}
        return [*_options(tuple(records.items()), names_of(self.params)), *super().get_params(ctx)]


@cache
def _options(records: tuple[tuple[str, type[Any]], ...], reserved: frozenset[str]) -> list[click.Option]:
    """The settings of all of them; one that several have is told as the first has it, with everybody's choices."""
    first: dict[str | None, click.Option] = {}
    for method, settings in records:
        for option in settings_options(settings, method, reserved):
            held = first.setdefault(option.name, option)
            if held is not option and isinstance(held.type, click.Choice) and isinstance(option.type, click.Choice):
                more = [choice for choice in option.type.choices if choice not in held.type.choices]
                if more:
                    held.type = click.Choice([*held.type.choices, *more])
                    held.help = f"{held.help}  With {', '.join(more)}: {option.help}"
    return list(first.values())


@click.command(
    cls=WithSettings,
    params=[click.Option(["--preset"], type=click.Choice(list(PRESETS)), help="A published configuration by name.")],
)
@click.argument("what", metavar=f"{'|'.join(audited_names())}|DIR")
@click.option(
    "--split",
    "way",
    type=click.Choice(["temporal", "random", "none"]),
    default="temporal",
    show_default=True,
    help="How a fifth of each history is kept out of training, as `train` does; or none.",
)
@click.option(
    "--sees",
    type=click.Choice(["updates", "anonymous", "sums", "leader", "helper", "outsider", "both", "plain"]),
    default="updates",
    show_default=True,
    help="The curious server: it links each device's messages; sees one at a time; or only each round's sum. Of fpl, "
    "frugal and fcf also: somebody outside who fetches the model around every round (outsider). Of frugal and fcf: one "
    "of two servers, both together, messages sent plainly.",
)
@click.option(
    "--cohort",
    type=click.IntRange(min=1),
    metavar="K",
    help="With `--sees sums` or `outsider`: rounds of K devices, whose sum is seen.",
)
@click.option("--per-epoch", is_flag=True, help="What the server knows after each epoch, not only after the last.")
@click.option("--people", type=int, metavar="N", help="Follow and attack so many people, drawn with the seed.")
@click.option("--threads", type=int, metavar="N", default=1, show_default=True, help="Cores; the result is the same.")
@click.option("--quiet", is_flag=True, help="No progress bar.")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
@reads_data_option
def audit(
    reading: Reading,
    what: str,
    way: str,
    sees: str,
    cohort: int | None,
    per_epoch: bool,
    people: int | None,
    threads: int,
    quiet: bool,
    as_json: bool,
    preset: str | None,
    **values: Any,
) -> None:
    """What a curious server would learn from a federation's messages.

    A federated method is trained with the settings given and watched (with the defaults of `federank train`); DIR is a
    model that `federank train` has kept: its run is watched once more. The server keeps to the protocol but remembers
    each device's messages, tries several attacks, and is judged by the true histories. Nothing is written.

    \b
    Examples:
      federank audit fpl --data city --pi 0.1 --triples mean --epochs 2
      federank audit fpl --data city --pi 0.1 --triples mean --epochs 2 --sees sums --cohort 50
      federank audit fpl --data city --triples mean --epochs 2 --sees outsider --cohort 20
      federank audit frugal --data city --sharing sticky --pi 0.3
      federank audit frugal --data city --messages 1 --cohorts 10 --sees sums
      federank audit pmf --data ml-100k --rho 2 --style batch --iterations 20
      federank audit runs/city --json
    """
    from federank.cli.train.command import watching
    from federank.engines.conduct import Conduct

    if what in audited_names():
        settings = _settings(what, values if what == "fpl" else values | {"preset": preset, "cohort": cohort})
        settings = (PRESETS[preset] if preset else {}) | settings
        if cohort is not None:
            settings["clients_per_round"] = _cohort(cohort, sees, settings.get("clients_per_round"))
        model, part = recommender_class(what)(**settings), _training_part(reading, way)
    else:
        model, part = _kept_model(what), None
    with watching(type(model), quiet or as_json) as watch:
        conduct = Conduct(threads=threads, progress=watch)
        findings, about = _audit(model, part, sees, people, per_epoch, conduct)
    if as_json:
        each = {"per_epoch": [asdict(found) for found in findings]} if per_epoch else {}
        click.echo(json.dumps({**asdict(findings[-1]), **about, **each}, indent=2))
    else:
        tell_audit(findings, about, sees)


def _audit(
    model: Recommender, part: Interactions | None, sees: str, people: int | None, per_epoch: bool, conduct: Conduct
) -> Audited:
    """Train and watch, or watch once more what has been trained."""
    from federank.audit.audit import audit_model, audit_training

    if part is None and not per_epoch:
        return audit_model(model, sees=sees, people=people)
    data = model.training if part is None else part
    return audit_training(model, data, sees=sees, people=people, per_epoch=per_epoch, conduct=conduct)


def _settings(what: str, values: dict[str, Any]) -> dict[str, Any]:
    """The settings that were given, if all of them are this method's."""
    settings = given_settings(recommender_class(what).settings_type, values, what, names_of(audit.params))
    others = [name for name, value in values.items() if value is not None]
    if others:
        raise SettingError(f"{what} has no setting --{others[0].replace('_', '-')}; leave it out.")
    return settings


def _cohort(cohort: int, sees: str, clients: Any) -> str:
    """Rounds of so many clients as a sum is taken over."""
    if sees not in ("sums", "outsider"):
        raise SettingError(f"--cohort is about sums, and the server sees {sees}; add `--sees sums`, or leave it out.")
    if clients is not None and str(clients) != str(cohort):
        raise SettingError(
            f"A sum over {cohort} devices needs rounds of {cohort}, but --clients-per-round is {clients}; give one."
        )
    return str(cohort)


def _training_part(reading: Reading, way: str) -> Interactions:
    from federank.data.ways import Division, divide

    data = reading.interactions()
    return data if way == "none" else divide(data, Division(way=way))[0].train


def _kept_model(what: str) -> Recommender:
    from federank.recommenders.registry import method_names
    from federank.recommenders.stored.model_folder import load_model

    able = ", ".join(audited_names())
    if what in method_names() and not Path(what).exists():
        raise SettingError(f"{what} cannot be audited, only {able}, or the folder of a model of these.")
    context = click.get_current_context()
    for option in context.command.get_params(context):
        given = context.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE
        if given and option.name not in _OF_AN_AUDIT:
            raise SettingError(
                f"{what} was trained with data and settings of its own; leave out {option.opts[0]}, or name a method."
            )
    model = load_model(what)
    if model.name not in audited_names():
        raise ModelError(f"{what} holds a model of {model.name}; only those of {able} can be audited.")
    return model
