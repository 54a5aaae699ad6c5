"""`federank audit fpl` and `federank audit DIR`: what would a honest-but-curious server learn about the people in a
run?
"""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import cache
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from federank.cli.reading import Reading, reads_data_option
from federank.cli.settings_flags import given_settings, names_of, settings_options
from federank.errors import ModelError, SettingError
from federank.methods.fedrec.settings import PMFSettings
from federank.methods.fpl.settings import PRESETS, FPLSettings
from federank.methods.frugal.losses import FrugalSettings
from federank.methods.registry import audited_names, recommender_class

if TYPE_CHECKING:
    from federank.audit.scoring import Audited, Findings
    from federank.data.interactions import Interactions
    from federank.methods.recommender import Recommender
    from federank.simulation.options import TrainingOptions


# How an audit is told to a person: who guesses how well, and what it means.


ROWS = {
    "popularity": "What is popular anyway",
    "sign": "One message, its signs",
    "vector_signs": "One message, vectors alone",
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
    "reading": "A message, read backwards",
    "vector": "The vector in a message",
    "neighbours": "Those who send alike",
    "learned": "Learnt on own devices",
    "held_back": "Learnt, of what was kept",
    "fused": "All of these together",
}
"""What each attack is called in a table."""

_SERVERS = {
    "updates": "A honest-but-curious server that keeps every message",
    "anonymous": "A honest-but-curious server that sees one message at a time",
    "sums": "A honest-but-curious server that sees only sums over rounds of {cohort:,} devices",
    "plain": "A honest-but-curious server that keeps every message",
    "both": "Two servers that collude and so open every message",
    "leader": "A leader that sees sums over rounds of {cohort:,} devices",
    "helper": "A helper that sees sums over rounds of {cohort:,} devices",
    "outsider": "Someone outside who sees every sum and every model, in rounds of {cohort:,} devices",
}
"""How a report begins."""

_INSTEAD = {
    ("sums", "updates"): "A round has one device here, and the sum over one device is its message:\nthe server sees"
    " every message. `--cohort K` makes rounds of K devices.\n",
    ("updates", "sums"): "Noise hides the signs of a message, so the messages of a device are averaged\nover rounds,"
    " as sums over one device.\n",
}
"""What was asked for, what was audited in its place, and why."""


def report_audit(findings: list[Findings], about: dict[str, Any], asked: str) -> None:
    """Print the findings of the last epoch as a table, and of each epoch if there are several.

    `asked` is the threat model that was asked for; another may have been audited in its place.
    """
    from federank.cli.tables import new_table, plain, show

    found, seen = findings[-1], about["sees"]
    if (asked, seen) in _INSTEAD:
        click.echo(_INSTEAD[asked, seen])
        seen = "updates"
    heading = (
        f"{_SERVERS[seen].format(**about)} of {plain(about['data'])} ({about['users']:,} people, "
        f"{about['items']:,} items) {_after(found, about)}:"
    )
    click.echo(f"{fill(heading, 79)}\n")
    table = new_table("How it guesses", "Right>", "Found>", "Order>", "Kept back>", "Gain>")
    for name, marks in found.attacks.items():
        table.add_row(
            ROWS.get(name, name),
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
        _report_epochs(findings, about)
    _report_more(found)
    best = found.attacks[_strongest(found)]
    told = (
        f"What it means: {found.disclosed_share:.1%} of a person's items {_left(about)} at least once. With everything "
        f"it saw, it names {_percent(best['recall'])} of a person's items, and {_percent(best['precision'])} of what "
        "it names is right."
    )
    click.echo(fill(told, 79))
    if about.get("family") == "squares":
        _report_few_messages(about)
    _report_sample(about)


def _report_sample(about: dict[str, Any]) -> None:
    """How many people the figures are means over, and why not all."""
    attacked, users = about["people_attacked"], about["users"]
    own = about["attackers_own_devices"]
    learnt = f" {own:,} more are the server's own devices, to learn on, and are not judged." if own else ""
    if attacked + own >= users:
        told = f"Means over all {attacked:,} people that can be attacked, with 95 % intervals over people.{learnt}"
    else:
        told = (
            f"Means over {attacked:,} of {users:,} people, drawn with the seed, with 95 % intervals over people: notes "
            "and attacks take room and time for every person and item, and anyone who takes no part cannot be "
            "attacked. "
            f"`--people N` says how many.{learnt}"
        )
    click.echo(fill(told, 79))


def _after(found: Findings, about: dict[str, Any]) -> str:
    """How long the server has watched."""
    if about.get("family") == "squares":
        most = min(found.epoch, about["messages"])
        return f"after at most {most} message{'s' * (most > 1)} of each device"
    return f"after {found.epoch} epoch{'s' * (found.epoch > 1)} of training"


def _left(about: dict[str, Any]) -> str:
    """How what has left a device has left it."""
    if about.get("family") == "squares" and about["sees"] in ("sums", "leader", "helper", "outsider"):
        return "went into a sum"
    return "were sent in two parts that both servers put together" if about["sees"] == "both" else "were sent openly"


def _report_few_messages(about: dict[str, Any]) -> None:
    """What a table of few messages must not be taken for."""
    if "epsilon" in about:
        inferred = (
            f"Sums carry noise: epsilon {about['epsilon']:.3g} at delta {about['delta']:g} against this observer. "
            "Anyone who knows all else tells a world with a person's messages from one with zeros in their place with "
            "an "
            f"order of at most {about['order_allowed']:.3f} (0.5: chance), whatever the attack."
        )
    elif about["sees"] in ("leader", "helper", "outsider"):
        inferred = (
            "The sums carry no noise here, so nothing bounds what they tell: sums hide a person among the members of "
            "their rounds, and no better than that (`train frugal --epsilon 4` adds noise)."
        )
    elif about["sees"] == "both":
        inferred = (
            "Two servers that put their parts together read every message, noise or not: nothing hides a person then."
        )
    elif about["sees"] == "sums":
        inferred = (
            "Sums hide a person among the members of their rounds, and no better than that: two rounds that differ by "
            "one member give that member's items, and a round of one gives everything. No noise is added here."
        )
    else:
        inferred = (
            "A plain message gives away everything that it was made from: one is enough. Few messages are few "
            "chances to read one, not secrecy. Only sums hide messages (`--sees sums`); only what is held back "
            "(`--sharing fixed-subset --pi 0.3`) is in none, and taste still points at it."
        )
    click.echo(fill(inferred, 79))
    for name, figures in about.get("side_knowledge", {}).items():
        told = (
            f"Someone who knows {figures['known']} of a user's items and {_GUESSED[name]} names 10 more: "
            f"{_percent(figures['inside'])} are right for users in the federation, {_percent(figures['outside'])} for "
            f"the same users left out of it, {_percent(figures['popularity'])} by popularity "
            f"({figures['users']:,} users)."
        )
        click.echo(fill(told, 79))


_GUESSED = {
    "shares": "combines all sums into shares of users",
    "cosines": "combines all sums into cosines of items",
    "model": "has the published model",
}


def _report_epochs(findings: list[Findings], about: dict[str, Any]) -> None:
    from federank.cli.tables import new_table, show

    sent = "Sent openly>" if _left(about).endswith("openly") else "Sent>"
    table = new_table("Epoch>", sent, "All together: right>", "Found>", "Order>", "Gain>")
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


def _report_more(found: Findings) -> None:
    """The headline, and what the guesses tell beyond items."""
    best = found.best
    for of, what in (("", ""), ("_held_back", " at what was kept back")):
        name = best[f"by_auc{of}"]
        if name is None or best[f"gain{of}"] is None:
            continue
        low, high = best[f"gain{of}_low"], best[f"gain{of}_high"]
        between = "" if low is None else f" (95 %: {low:+.3f} to {high:+.3f})"
        click.echo(
            f"The best guess{what}: {ROWS.get(name, name).lower()},\n"
            f"{best[f'auc{of}']:.3f}, {best[f'gain{of}']:+.3f} beyond popularity or chance{between}."
        )
    if found.categories is not None:
        plainly, inferred = found.categories["popularity"], found.categories["fused"]
        click.echo(
            f"Shares of categories: off by {inferred['error']:.3f} on average (popularity: {plainly['error']:.3f}),\n"
            f"correlation {inferred['correlation']:.2f} ({plainly['correlation']:.2f})."
        )
    if found.ratings:
        inferred, plainly = found.ratings["two_steps"], found.ratings["mean"]
        click.echo(
            f"Ratings from two messages: {_percent(inferred['exact'])} exact, off by {inferred['error']:.2f} "
            f"(the mean: {_percent(plainly['exact'])}, {plainly['error']:.2f})."
        )


def _strongest(found: Findings) -> str:
    """The attack that speaks for all: the fused one, or the best in order."""
    return "fused" if "fused" in found.attacks else str(found.best["by_auc"])


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"


_OF_AN_AUDIT = {"what", "sees", "per_epoch", "people", "known", "threads", "quiet", "as_json"}
"""The options that are about the audit; all others are about the training."""


_FIRST: dict[str, type[Any]] = {"fpl": FPLSettings, "pmf": PMFSettings, "frugal": FrugalSettings}
"""The records that are told first; those of federank, fcf and svdpp have nothing beside them."""


class WithSettings(click.Command):
    """A command that also has an option for every setting of every method that can be audited."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The settings' options, then the command's own."""
        others = [name for name in audited_names() if name not in (*_FIRST, "federank", "fcf", "svdpp")]
        records = _FIRST | {name: recommender_class(name).settings_type for name in others}
        return [*_options(tuple(records.items()), names_of(self.params)), *super().get_params(ctx)]


@cache
def _options(records: tuple[tuple[str, type[Any]], ...], reserved: frozenset[str]) -> list[click.Option]:
    """The settings of all of them; one that several have is told as the first has it, with everyone's choices."""
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
    help="What the server sees: it links each client's messages; sees one at a time; or only each round's sum. Of fpl, "
    "frugal and fcf also: someone outside who fetches the model around every round (outsider). Of frugal and fcf: one "
    "of two servers, both together, messages sent plainly.",
)
@click.option(
    "--cohort",
    type=click.IntRange(min=1),
    metavar="K",
    help="With `--sees sums` or `outsider`: rounds of K devices, whose sum is seen.",
)
@click.option("--per-epoch", is_flag=True, help="What the server knows after each epoch, not only after the last.")
@click.option("--people", type=int, metavar="N", help="Follow and attack this many people, drawn with the seed.")
@click.option(
    "--known",
    type=click.IntRange(min=0),
    metavar="K",
    help="Of frugal, where sums or models are seen: the attacker also tries users of whom it knows K items; 0: not.  "
    "[default: 10]",
)
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
    known: int | None,
    threads: int,
    quiet: bool,
    as_json: bool,
    preset: str | None,
    **values: Any,
) -> None:
    """What a honest-but-curious server would learn from a federation's messages.

    A federated method is trained with the settings given and watched (with the defaults of `federank train`); DIR is a
    model that `federank train` has kept: its run is watched once more. The server keeps to the protocol but remembers
    each device's messages, tries several attacks, and is judged by the true histories. Nothing is written.

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
    from federank.cli.train import watching
    from federank.simulation.options import TrainingOptions

    if what in audited_names():
        settings = _settings(
            what, values if what in ("fpl", "federank") else values | {"preset": preset, "cohort": cohort}
        )
        settings = (PRESETS[preset] if preset else {}) | settings
        if cohort is not None:
            settings["clients_per_round"] = _cohort(cohort, sees, settings.get("clients_per_round"))
        model, part = recommender_class(what)(**settings), _training_part(reading, way)
    else:
        model, part = _kept_model(what), None
    with watching(type(model), quiet or as_json) as watch:
        training_options = TrainingOptions(threads=threads, progress=watch)
        findings, about = _audit(model, part, sees, people, known, per_epoch, training_options)
    if as_json:
        each = {"per_epoch": [asdict(found) for found in findings]} if per_epoch else {}
        click.echo(json.dumps({**asdict(findings[-1]), **about, **each}, indent=2))
    else:
        report_audit(findings, about, sees)


def _audit(
    model: Recommender,
    part: Interactions | None,
    sees: str,
    people: int | None,
    known: int | None,
    per_epoch: bool,
    training_options: TrainingOptions,
) -> Audited:
    """Train and watch, or watch once more what has been trained."""
    from federank.audit.audit import audit_model, audit_training

    if part is None and not per_epoch:
        return audit_model(model, sees=sees, people=people, known=known)
    data = model.training if part is None else part
    return audit_training(
        model, data, sees=sees, people=people, known=known, per_epoch=per_epoch, training_options=training_options
    )


def _settings(what: str, values: dict[str, Any]) -> dict[str, Any]:
    """The settings that were given, if all of them are this method's."""
    settings = given_settings(recommender_class(what).settings_type, values, what, names_of(audit.params))
    others = [name for name, value in values.items() if value is not None]
    if others:
        raise SettingError(f"{what} has no setting --{others[0].replace('_', '-')}; leave it out.")
    return settings


def _cohort(cohort: int, sees: str, clients: Any) -> str:
    """Rounds of this many clients as a sum is taken over."""
    if sees not in ("sums", "outsider"):
        raise SettingError(f"--cohort is about sums, and the server sees {sees}; add `--sees sums`, or leave it out.")
    if clients is not None and str(clients) != str(cohort):
        raise SettingError(
            f"A sum over {cohort} devices needs rounds of {cohort}, but --clients-per-round is {clients}; give one."
        )
    return str(cohort)


def _training_part(reading: Reading, way: str) -> Interactions:
    from federank.data.splits import Division, divide

    data = reading.interactions()
    return data if way == "none" else divide(data, Division(way=way))[0].train


def _kept_model(what: str) -> Recommender:
    from federank.methods.model_folder import load_model
    from federank.methods.registry import method_names

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
