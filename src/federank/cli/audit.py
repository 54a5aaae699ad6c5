"""`federank audit`: what an observer of a federation would learn, and what malicious clients could do.

`audit METHOD` trains with a method's settings and attacks what is sent. `audit DIR` attacks the run of a stored model.
`audit poison` and `audit sybil` simulate malicious clients, `audit plan` forecasts a privacy guarantee,
and `audit verify` recomputes the model versions that two servers have published.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import click

from federank.cli.options import (
    Command,
    MethodGroup,
    given_settings,
    more,
    names_of,
    preset_option,
    reads_data_option,
    settings_options,
    taken_preset,
    taken_reading,
)
from federank.cli.tables import new_table, plain, show, training_bar
from federank.errors import ModelError, SettingError
from federank.methods.registry import audited_names, help_of, method_names, recommender_class

if TYPE_CHECKING:
    from federank.audit.scoring import Audited, Findings
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
    common = [*preset_option(name), *_common.params]
    if not _has_cohorts(method):
        common = [param for param in common if param.name != "cohort"]
    names = name, names_of(common)

    def run(**values: Any) -> None:
        settings = taken_preset(values) | given_settings(method.settings_type, values, *names)
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


@click.command(
    cls=_Audits,
    names=audited_names,
    build=_command,
    others=("poison", "sybil", "plan", "verify"),
    files={"sybil": "poison", "verify": "plan"},
)
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


# The report: what each attack infers, and what the figures mean.


ROWS = {
    "popularity": "Popularity alone",
    "sign": "One upload, its signs",
    "vector_signs": "One upload, vectors alone",
    "accumulation": "All uploads, their signs",
    "frequency": "Sent more than once",
    "magnitude": "Size of the gradients",
    "absence": "Never sent as a negative",
    "vector_recovery": "One row gives the vector",
    "presence": "Named in one upload",
    "intersection": "Named in every upload",
    "second_rows": "Rows of the second kind",
    "membership": "Sums with and without",
    "sum_vector": "Sums give the vector",
    "reading": "One upload, inverted",
    "vector": "The vector in an upload",
    "neighbours": "Clients with similar uploads",
    "learned": "Trained on own clients",
    "held_back": "Trained, on held-back items",
    "fused": "All attacks combined",
}
"""The name of each attack in a table."""

_SERVERS = {
    "updates": "An honest-but-curious server that stores every upload",
    "anonymous": "An honest-but-curious server that sees single uploads",
    "sums": "An honest-but-curious server that sees only sums over rounds of {cohort:,} clients",
    "plain": "An honest-but-curious server that stores every upload",
    "both": "Two servers that collude and so open every upload",
    "leader": "A leader that sees sums over rounds of {cohort:,} clients",
    "helper": "A helper that sees sums over rounds of {cohort:,} clients",
    "outsider": "An outsider who sees every sum and every model, in rounds of {cohort:,} clients",
}
"""The first words of a report, by threat model."""

_INSTEAD = {
    ("sums", "updates"): "A round has one client here, and the sum over one client is its upload:\nthe server sees"
    " every upload. `--cohort K` makes rounds of K clients.\n",
    ("updates", "sums"): "Noise hides the signs of an upload, so the uploads of a client are averaged\nover rounds,"
    " as sums over one client.\n",
}
"""The requested threat model, the one that was audited instead, and why."""


def report_audit(findings: list[Findings], about: dict[str, Any], requested: str) -> None:
    """Print the findings of the last epoch as a table, and of each epoch if there are several.

    `requested` is the threat model of the command line; another may have been audited instead.
    """
    result, seen = findings[-1], about["sees"]
    if (requested, seen) in _INSTEAD:
        click.echo(_INSTEAD[requested, seen])
        seen = "updates"
    heading = (
        f"{_SERVERS[seen].format(**about)} of {plain(about['data'])} ({about['users']:,} users, "
        f"{about['items']:,} items) {_after(result, about)}:"
    )
    click.echo(f"{fill(heading, 79)}\n")
    table = new_table("Attack", "Precision>", "Recall>", "AUC>", "Held back>", "Gain>")
    for name, marks in result.attacks.items():
        table.add_row(
            ROWS.get(name, name),
            _percent(marks["precision"]),
            _percent(marks["recall"]),
            *("-" if marks[mark] is None else f"{marks[mark]:.3f}" for mark in ("auc", "auc_held_back")),
            "-" if marks["gain"] is None else f"{marks['gain']:+.3f}",
        )
    show(table)
    click.echo(
        f"  Precision: share of the named items that a user has (at random: {result.base_rate:.1%}).\n"
        "  Recall: share of a user's items that are named. AUC: how often an item of\n"
        "  the user is ranked above another item (0.5: chance). Held back: AUC of items\n"
        "  never sent as liked. Gain: AUC beyond popularity or chance.\n"
    )
    if len(findings) > 1:
        _report_epochs(findings, about)
    _report_more(result)
    best = result.attacks[_strongest(result)]
    meaning = (
        f"What it means: {result.disclosed_share:.1%} of a user's items {_left(about)} at least once. From everything "
        f"it saw, the observer names {_percent(best['recall'])} of a user's items, and {_percent(best['precision'])} "
        "of what it names is right."
    )
    click.echo(fill(meaning, 79))
    if about.get("family") == "squares":
        _report_limits(about)
    _report_sample(about)


def _report_sample(about: dict[str, Any]) -> None:
    """How many users the figures are means over, and why not all."""
    attacked, users = about["people_attacked"], about["users"]
    own = about["attackers_own_devices"]
    shadows = f" {own:,} more are the server's own clients, for training attacks, and are not judged." if own else ""
    if attacked + own >= users:
        sample = f"Means over all {attacked:,} users that can be attacked, with 95 % intervals over users.{shadows}"
    else:
        sample = (
            f"Means over {attacked:,} of {users:,} users, drawn with the seed, with 95 % intervals over users: attacks "
            "take memory and time for every user and item, and users who take no part cannot be attacked. "
            f"`--sample N` sets the number.{shadows}"
        )
    click.echo(fill(sample, 79))


def _after(result: Findings, about: dict[str, Any]) -> str:
    """How long the observer has watched."""
    if about.get("family") == "squares":
        most = min(result.epoch, about["messages"])
        return f"after at most {most} upload{'s' * (most > 1)} of each client"
    return f"after {result.epoch} epoch{'s' * (result.epoch > 1)} of training"


def _left(about: dict[str, Any]) -> str:
    """How items have left a client."""
    if about.get("family") == "squares" and about["sees"] in ("sums", "leader", "helper", "outsider"):
        return "went into a sum"
    return "were sent in two shares that both servers combine" if about["sees"] == "both" else "were sent openly"


def _report_limits(about: dict[str, Any]) -> None:
    """What the figures do not show."""
    if "epsilon" in about:
        inferred = (
            f"Sums carry noise: epsilon {about['epsilon']:.3g} at delta {about['delta']:g} against this observer. "
            "Someone who knows everything else distinguishes a user's uploads from zeros with an AUC of at most "
            f"{about['order_allowed']:.3f} (0.5: chance), whatever the attack."
        )
    elif about["sees"] in ("leader", "helper", "outsider"):
        inferred = (
            "The sums carry no noise here, so nothing bounds their leakage: sums hide a user among the clients of "
            "their rounds, and no better than that (`train frugal --epsilon 4` adds noise)."
        )
    elif about["sees"] == "both":
        inferred = "Two servers that combine their shares read every upload, noise or not: nothing hides a user then."
    elif about["sees"] == "sums":
        inferred = (
            "Sums hide a user among the clients of their rounds, and no better than that: two rounds that differ by "
            "one client give that client's items, and a round of one gives everything. No noise is added here."
        )
    else:
        inferred = (
            "A plain upload discloses everything that it was computed from: one is enough. Few uploads are few "
            "chances to read one, not secrecy. Only secure sums hide uploads (`--sees sums`); only held-back items "
            "(`--sharing fixed-subset --pi 0.3`) are in none, and taste still points at them."
        )
    click.echo(fill(inferred, 79))

    for name, figures in about.get("side_knowledge", {}).items():
        known = (
            f"Someone who knows {figures['known']} of a user's items and {_GUESSED[name]} names 10 more: "
            f"{_percent(figures['inside'])} are right for users in the federation, {_percent(figures['outside'])} for "
            f"the same users left out of it, {_percent(figures['popularity'])} by popularity "
            f"({figures['users']:,} users)."
        )
        click.echo(fill(known, 79))


_GUESSED = {
    "shares": "combines all sums into shares of users",
    "cosines": "combines all sums into cosines of items",
    "model": "has the published vectors",
    "weights": "has the published item-item weights",
}


def _report_epochs(findings: list[Findings], about: dict[str, Any]) -> None:
    sent = "Sent openly>" if _left(about).endswith("openly") else "Sent>"
    table = new_table("Epoch>", sent, "Precision>", "Recall>", "AUC>", "Gain>")
    for result in findings:
        best = result.attacks[_strongest(result)]
        table.add_row(
            str(result.epoch),
            f"{result.disclosed_share:.1%}",
            _percent(best["precision"]),
            _percent(best["recall"]),
            f"{best['auc']:.3f}",
            f"{best['gain']:+.3f}",
        )
    show(table)


def _report_more(result: Findings) -> None:
    """The best attack, and what is inferred beyond items."""
    best = result.best
    for of, what in (("", ""), ("_held_back", " on held-back items")):
        name = best[f"by_auc{of}"]
        if name is None or best[f"gain{of}"] is None:
            continue
        low, high = best[f"gain{of}_low"], best[f"gain{of}_high"]
        between = "" if low is None else f" (95 %: {low:+.3f} to {high:+.3f})"
        click.echo(
            f"The best attack{what}: {ROWS.get(name, name).lower()},\n"
            f"{best[f'auc{of}']:.3f}, {best[f'gain{of}']:+.3f} beyond popularity or chance{between}."
        )
    if result.categories is not None:
        plainly, inferred = result.categories["popularity"], result.categories["fused"]
        click.echo(
            f"Shares of categories: off by {inferred['error']:.3f} on average (popularity: {plainly['error']:.3f}),\n"
            f"correlation {inferred['correlation']:.2f} ({plainly['correlation']:.2f})."
        )
    if result.ratings:
        inferred, plainly = result.ratings["two_steps"], result.ratings["mean"]
        click.echo(
            f"Ratings from two uploads: {_percent(inferred['exact'])} exact, off by {inferred['error']:.2f} "
            f"(the mean: {_percent(plainly['exact'])}, {plainly['error']:.2f})."
        )


def _strongest(result: Findings) -> str:
    """The strongest attack: the combined one, or the one with the best AUC."""
    return "fused" if "fused" in result.attacks else str(result.best["by_auc"])


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"
