"""`federank audit`: what an observer of a federation would learn, and what malicious clients could do.

`audit METHOD` trains with a method's settings and attacks what is sent. `audit DIR` attacks the run of a stored model.
`audit poison` and `audit sybil` simulate malicious clients, `audit plan` forecasts a privacy guarantee,
and `audit verify` recomputes the model versions that two servers have published.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from federank.cli.options import (
    Command,
    MethodGroup,
    given_settings,
    more,
    names_of,
    reads_data_option,
    settings_options,
    taken_reading,
)
from federank.cli.plan import plan
from federank.cli.poison import poison, sybil
from federank.cli.verify import verify
from federank.errors import ModelError, SettingError
from federank.methods.fpl.settings import PRESETS
from federank.methods.registry import audited_names, help_of, method_names, recommender_class

if TYPE_CHECKING:
    from federank.audit.scoring import Audited
    from federank.data.interactions import Interactions
    from federank.methods.recommender import Recommender


def _options_of_an_audit(command: Any) -> Any:
    for option in reversed(
        (
            click.option(
                "--sees",
                type=click.Choice(["updates", "anonymous", "sums", "leader", "helper", "outsider", "both", "plain"]),
                default="updates",
                show_default=True,
                help="The threat model. updates: a server that links each client's uploads; anonymous: one that sees "
                "single uploads; sums: one that sees only each round's sum; outsider (fpl, frugal, fcf): someone who "
                "fetches the model around every round; leader, helper, both, plain (frugal, fcf): one of two servers, "
                "both together, or uploads sent without secure aggregation.",
            ),
            click.option("--per-epoch", is_flag=True, help="Report after each epoch, not only after the last."),
            click.option("--sample", type=int, metavar="N", help="Attack this many users, drawn with the seed."),
            click.option(
                "--known",
                type=click.IntRange(min=0),
                metavar="K",
                help="Frugal, where sums or models are seen: the attacker also tries users of whom it knows K items; "
                "0: not.  [default: 10]",
            ),
            click.option(
                "--threads", type=int, metavar="N", default=1, show_default=True, help="Cores; the result is the same."
            ),
            click.option("--quiet", is_flag=True, help="No progress bar."),
            click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON."),
        )
    ):
        command = option(command)
    return command


@click.command()
@_options_of_an_audit
@click.option(
    "--cohort",
    type=click.IntRange(min=1),
    metavar="K",
    help="With --sees sums or outsider: rounds of K clients, whose sum is seen.",
)
@more(
    "--split",
    "way",
    type=click.Choice(["temporal", "random", "none"]),
    default="temporal",
    show_default=True,
    help="How a fifth of each history is kept out of training, as `train` does; or none.",
)
@reads_data_option
def _common(**_: Any) -> None:
    """The options of every method."""


def _command(name: str) -> click.Command:
    """The command that audits this method, with its flags alone."""
    method = recommender_class(name)
    preset = click.Option(["--preset"], type=click.Choice(list(PRESETS)), help="A published configuration by name.")
    common = [*([preset] if name == "fpl" else []), *_common.params]
    if not _has_cohorts(method):
        common = [param for param in common if param.name != "cohort"]
    names = name, names_of(common)

    def run(**values: Any) -> None:
        settings = PRESETS.get(values.pop("preset", None) or "", {})
        settings |= given_settings(method.settings_type, values, *names)
        reading, way, cohort = taken_reading(values), values.pop("way"), values.pop("cohort", None)
        if cohort is not None:
            settings["clients_per_round"] = _cohort(cohort, values["sees"], settings.get("clients_per_round"))
        model = method(**settings)
        data = reading.interactions()
        _run(model, _training_part(data, way), **values)

    return Command(
        name,
        callback=run,
        help=f"{help_of(name)}\n\n\b\nExample:\n  federank audit {name} --data city",
        params=[*settings_options(method.settings_type, *names), *common],
    )


class _Audits(MethodGroup):
    """Methods, other commands, and folders of stored models."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The audit of this method, or of the model in this folder."""
        if cmd_name in self.list_commands(ctx):
            return super().get_command(ctx, cmd_name)
        if cmd_name in method_names() and not Path(cmd_name).exists():
            raise SettingError(f"{cmd_name} sends nothing that could be audited; {', '.join(audited_names())} do.")
        return _audit_of(cmd_name)


def _audit_of(folder: str) -> click.Command:
    @click.command(folder)
    @_options_of_an_audit
    def stored(**values: Any) -> None:
        """Attack the run of a stored model, with its own data and settings."""
        from federank.methods.model_folder import load_model

        model = load_model(folder)
        if model.name not in audited_names():
            raise ModelError(f"{folder} holds a model of {model.name}; only {', '.join(audited_names())} are audited.")
        _run(model, None, **values)

    return stored


@click.command(cls=_Audits, names=audited_names, build=_command)
def audit() -> None:
    """Attack a federation: what would an honest-but-curious server learn about its users?

    A method is trained with the given settings and the defaults of `federank train`. The observer follows the
    protocol, stores the uploads that it sees, and tries several attacks, which are judged by the true histories. DIR is
    a model that `federank train` has stored. Nothing is written.

    \b
    Examples:
      federank audit fpl --data city --pi 0.1 --triples mean --epochs 2
      federank audit fpl --data city --pi 0.1 --triples mean --epochs 2 --sees sums --cohort 50
      federank audit fpl --data city --triples mean --epochs 2 --sees outsider --cohort 20
      federank audit frugal --data city --sharing fixed-subset --pi 0.3
      federank audit frugal --data city --messages 1 --cohorts 10 --sees sums
      federank audit pmf --data ml-100k --rho 2 --style batch --iterations 20
      federank audit runs/city --json
    """


for _other in (poison, sybil, plan, verify):
    audit.add_command(_other)


def _run(
    model: Recommender,
    part: Interactions | None,
    *,
    sees: str,
    per_epoch: bool,
    sample: int | None,
    known: int | None,
    threads: int,
    quiet: bool,
    as_json: bool,
) -> None:
    from federank.audit.audit import audit_model, audit_training
    from federank.cli.audit_report import report_audit
    from federank.cli.tables import training_bar
    from federank.simulation.options import TrainingOptions

    with training_bar(type(model), quiet or as_json) as progress:
        options = TrainingOptions(threads=threads, progress=progress)
        results: Audited
        if part is None and not per_epoch:
            results = audit_model(model, sees=sees, people=sample, known=known)
        else:
            data = model.training if part is None else part
            results = audit_training(
                model, data, sees=sees, people=sample, known=known, per_epoch=per_epoch, training_options=options
            )
    findings, about = results
    if as_json:
        each = {"per_epoch": [asdict(result) for result in findings]} if per_epoch else {}
        click.echo(json.dumps({**asdict(findings[-1]), **about, **each}, indent=2))
    else:
        report_audit(findings, about, sees)


def _has_cohorts(method: type[Recommender]) -> bool:
    return "clients_per_round" in method.settings_type.__dataclass_fields__


def _cohort(cohort: int, sees: str, clients: Any) -> int:
    """The clients of a round over which a sum is taken."""
    if sees not in ("sums", "outsider"):
        raise SettingError(f"--cohort is about sums, and the server sees {sees}; add `--sees sums`, or leave it out.")
    if clients is not None and str(clients) != str(cohort):
        raise SettingError(
            f"A sum over {cohort} clients needs rounds of {cohort}, but --clients-per-round is {clients}; give one."
        )
    return cohort


def _training_part(data: Interactions, way: str) -> Interactions:
    from federank.data.splits import Division, divide

    return data if way == "none" else divide(data, Division(way=way))[0].train
