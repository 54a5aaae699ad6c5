"""`federank audit fpl` and `federank audit DIR`: what would a curious server learn about the people in a run?"""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from federank.cli.reading import Reading, reads_data_option
from federank.cli.settings_flags import given_settings, settings_options
from federank.errors import ModelError, SettingError
from federank.protocol.rating_recipes import PMFSettings, SVDPlusPlusSettings
from federank.protocol.recipes import PRESETS, FPLSettings

if TYPE_CHECKING:
    from federank.audit.audit import Findings
    from federank.data.interactions import Interactions

ROWS = {
    "popularity": "What is popular anyway",
    "sign": "One message, its signs",
    "accumulation": "All messages, their signs",
    "frequency": "Sent more than once",
    "magnitude": "Size of the gradients",
    "absence": "Never sent as a negative",
    "vector_recovery": "One row gives the vector",
    "presence": "Named in one message",
    "intersection": "Named in every message",
    "second_rows": "Rows of the second kind",
    "membership": "Sums with and without",
    "sum_vector": "Sums give the vector",
    "neighbours": "Those who send alike",
    "learned": "Learnt on own devices",
    "held_back": "Learnt, of what was kept",
    "fused": "All of these together",
}
"""What each attack is called in a table."""

_SERVERS = {
    "updates": "A curious server that keeps every message",
    "anonymous": "A curious server that sees one message at a time",
    "sums": "A curious server that sees only sums over rounds of {cohort:,} devices",
}
"""How a report begins."""

_OF_AN_AUDIT = {"what", "sees", "per_epoch", "people", "threads", "quiet", "as_json"}
"""The options that are about the audit; all others are about the training."""


_OF_FPL = {field.name for field in fields(FPLSettings)}

_METHODS = {"fpl": FPLSettings, "pmf": PMFSettings, "svdpp": SVDPlusPlusSettings}
"""What can be trained and audited, and its settings."""


@click.command(
    params=[
        *settings_options(FPLSettings),
        *(option for option in settings_options(PMFSettings) if option.name not in _OF_FPL),
        click.Option(["--preset"], type=click.Choice(list(PRESETS)), help="A published configuration by name."),
    ]
)
@click.argument("what", metavar="fpl|pmf|svdpp|DIR")
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
    type=click.Choice(["updates", "anonymous", "sums"]),
    default="updates",
    show_default=True,
    help="The curious server: it links each device's messages; sees one at a time; or only each round's sum.",
)
@click.option("--cohort", type=int, metavar="K", help="With `--sees sums`: rounds of K devices, whose sum is seen.")
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

    `fpl`, `pmf` and `svdpp` train with the settings given and watch; DIR is a model that `federank train` has kept: its
    run is watched once more. The server keeps to the protocol but remembers each device's messages, tries several
    attacks, and is judged by the true histories. Nothing is written.

    \b
    Examples:
      federank audit fpl --data city --pi 0.1 --triples mean --epochs 2
      federank audit fpl --data city --pi 0.1 --triples mean --epochs 2 --sees sums --cohort 50
      federank audit pmf --data ml-100k --rho 2 --style batch --iterations 20
      federank audit runs/city --json
    """
    from federank.cli.train import watching
    from federank.recommenders.registry import recommender_class

    if what in _METHODS:
        settings = _settings(what, values)
        settings = (PRESETS[preset] if preset else {}) | settings
        if cohort is not None:
            settings["clients_per_round"] = _cohort(cohort, sees, settings.get("clients_per_round"))
        model, part = recommender_class(what)(**settings), _training_part(reading, way)
    else:
        model, part = _kept_model(what), None
    with watching(type(model), quiet or as_json) as watch:
        how = {"threads": threads, "watch": watch}
        findings, about = _audit(model, part, sees, people, per_epoch, how)
    if as_json:
        each = {"per_epoch": [asdict(found) for found in findings]} if per_epoch else {}
        click.echo(json.dumps({**asdict(findings[-1]), **about, **each}, indent=2))
    else:
        _tell(findings, about)


def _audit(
    model: Any, part: Interactions | None, sees: str, people: int | None, per_epoch: bool, how: dict[str, Any]
) -> tuple[list[Findings], dict[str, Any]]:
    """Train and watch, or watch once more what has been trained."""
    if hasattr(model, "predict"):
        from federank.audit.rating_audit import audit_rating_model, audit_rating_training

        if per_epoch:
            raise SettingError(f"An audit of {model.name} looks once, at the end of the run; leave out --per-epoch.")
        if part is None:
            return audit_rating_model(model, sees=sees, people=people)
        return audit_rating_training(model, part, sees=sees, people=people, **how)
    from federank.audit.audit import audit_model, audit_training

    if part is None and not per_epoch:
        return audit_model(model, sees=sees, people=people)
    data = model.training if part is None else part
    return audit_training(model, data, sees=sees, people=people, per_epoch=per_epoch, **how)


def _settings(what: str, values: dict[str, Any]) -> dict[str, Any]:
    """The settings that were given, if all of them are this method's."""
    settings = given_settings(_METHODS[what], values)
    others = [name for name, value in values.items() if value is not None]
    if others:
        raise SettingError(f"{what} has no setting --{others[0].replace('_', '-')}; leave it out.")
    return settings


def _cohort(cohort: int, sees: str, clients: Any) -> str:
    """Rounds of so many clients as a sum is taken over."""
    if sees != "sums":
        raise SettingError(f"--cohort is about sums, and the server sees {sees}; add `--sees sums`, or leave it out.")
    if clients is not None and str(clients) != str(cohort):
        raise SettingError(
            f"A sum over {cohort} devices needs rounds of {cohort}, but --clients-per-round is {clients}; give one."
        )
    return str(cohort)


def _training_part(reading: Reading, way: str) -> Interactions:
    from federank.data.splits import split_random, split_temporal

    data = reading.interactions()
    return data if way == "none" else (split_temporal if way == "temporal" else split_random)(data).train


def _kept_model(what: str) -> Any:
    from federank.recommenders.registry import METHODS
    from federank.recommenders.storage import load_model

    if what in METHODS and not Path(what).exists():
        raise SettingError(f"{what} cannot be audited, only {', '.join(_METHODS)}, or the folder of a model of these.")
    context = click.get_current_context()
    for option in context.command.params:
        given = context.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE
        if given and option.name not in _OF_AN_AUDIT:
            raise SettingError(
                f"{what} was trained with data and settings of its own; leave out {option.opts[0]}, or name a method."
            )
    model = load_model(what)
    if model.name not in _METHODS:
        raise ModelError(f"{what} holds a model of {model.name}; only those of {', '.join(_METHODS)} can be audited.")
    return model


def _tell(findings: list[Findings], about: dict[str, Any]) -> None:
    from federank.cli.tables import new_table, plain, show

    found = findings[-1]
    click.echo(
        f"{_SERVERS[about['sees']].format(**about)} of {plain(about['data'])}\n({about['users']:,} people, "
        f"{about['items']:,} items) after {found.epoch} epoch{'s' * (found.epoch > 1)} of training:\n"
    )
    table = new_table("How it guesses", "Right>", "Found>", "Order>", "Kept back>", "Gain>")
    for name, marks in found.attacks.items():
        table.add_row(
            ROWS[name],
            _percent(marks["precision"]),
            _percent(marks["recall"]),
            *("-" if marks[mark] is None else f"{marks[mark]:.3f}" for mark in ("auc", "auc_held_back")),
            "-" if marks["gain"] is None else f"{marks['gain']:+.3f}",
        )
    show(table)
    click.echo(
        "  Right: of the items it names, those a person has (at random: "
        f"{found.base_rate:.1%}).\n"
        "  Found: of a person's items, those it names. Order: how often it ranks one of\n"
        "  a person's items above another item (0.5: chance, 1: always). Kept back: order\n"
        "  of those never sent as liked. Gain: order beyond popularity or chance.\n"
    )
    if len(findings) > 1:
        _tell_epochs(findings)
    _tell_more(found)
    best = found.attacks[_strongest(found)]
    click.echo(
        f"What it means: {found.disclosed_share:.1%} of a person's items were sent openly at least once. With\n"
        f"everything it saw, the server names {_percent(best['recall'])} of a person's items, and\n"
        f"{_percent(best['precision'])} of what it names is right."
    )
    if about["people_attacked"] < about["users"]:
        click.echo(
            f"Means over {about['people_followed']:,} people followed and {about['people_attacked']:,} attacked, "
            f"of {about['users']:,}.\n{about['attackers_own_devices']:,} devices are the server's own, to learn on."
        )


def _tell_epochs(findings: list[Findings]) -> None:
    from federank.cli.tables import new_table, show

    table = new_table("Epoch>", "Sent openly>", "All together: right>", "Found>", "Order>", "Gain>")
    for found in findings:
        best = found.attacks[_strongest(found)]
        table.add_row(
            str(found.epoch),
            f"{found.disclosed_share:.1%}",
            _percent(best["precision"]),
            _percent(best["recall"]),
            f"{best['auc']:.3f}",
            f"{best['gain']:+.3f}",
        )
    show(table)


def _tell_more(found: Findings) -> None:
    """The headline, and what the guesses tell beyond items."""
    best = found.best
    if best["gain_held_back"] is not None:
        click.echo(
            f"The best guess at what was kept back: {ROWS[best['by_auc_held_back']].lower()},\n"
            f"{best['auc_held_back']:.3f}, {best['gain_held_back']:+.3f} beyond popularity or chance."
        )
    if found.categories is not None:
        plainly, told = found.categories["popularity"], found.categories["fused"]
        click.echo(
            f"Shares of categories: off by {told['error']:.3f} on average (popularity: {plainly['error']:.3f}),\n"
            f"correlation {told['correlation']:.2f} ({plainly['correlation']:.2f})."
        )
    if found.ratings:
        told, plainly = found.ratings["two_steps"], found.ratings["mean"]
        click.echo(
            f"Ratings from two messages: {_percent(told['exact'])} exact, off by {told['error']:.2f} "
            f"(the mean: {_percent(plainly['exact'])}, {plainly['error']:.2f})."
        )


def _strongest(found: Findings) -> str:
    """The attack that speaks for all: the fused one, or the best in order."""
    return "fused" if "fused" in found.attacks else str(found.best["by_auc"])


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"
