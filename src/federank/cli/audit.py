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
from typing import Any

import click

from federank.audit.audit import audit_model, audit_training
from federank.audit.scoring import Findings
from federank.cli.options import (
    JSON,
    Command,
    MethodGroup,
    given_settings,
    more,
    names_of,
    options,
    preset_option,
    reads_data_option,
    settings_options,
    taken_preset,
    taken_reading,
)
from federank.cli.tables import new_table, plain, plural, show, training_bar
from federank.data.interactions import Interactions
from federank.data.splits import Division, divide
from federank.errors import ModelError, SettingError
from federank.methods.model_folder import load_model
from federank.methods.recommender import Recommender
from federank.methods.registry import audited_names, help_of, method_names, recommender_class
from federank.simulation.options import TrainingOptions

_audit_options = options(
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
        help="The attacker also tries users of whom it knows K items; 0: not. Of frugal, where sums or models are "
        "seen.  [default: 10]",
    ),
    click.option(
        "--threads", type=int, metavar="N", default=1, show_default=True, help="Cores; the result is the same."
    ),
    click.option("--quiet", is_flag=True, help="No progress bar."),
    JSON,
)


@click.command()
@_audit_options
@click.option(
    "--cohort",
    type=click.IntRange(min=1),
    metavar="K",
    help="Rounds of K clients, whose sum is seen, with --sees sums or outsider.",
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
    has_cohorts = "clients_per_round" in method.settings_type.__dataclass_fields__
    common = [*preset_option(name), *(param for param in _common.params if has_cohorts or param.name != "cohort")]
    names = name, names_of(common)

    def run(**values: Any) -> None:
        settings = taken_preset(values) | given_settings(method.settings_type, values, *names)
        reading, way, cohort = taken_reading(values), values.pop("way"), values.pop("cohort", None)
        if cohort is not None:
            settings["clients_per_round"] = _cohort(cohort, values["sees"], settings.get("clients_per_round"))
        model, data = method(**settings), reading.interactions()
        _run(model, data if way == "none" else divide(data, Division(way=way))[0].train, **values)

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
    @_audit_options
    def stored(**values: Any) -> None:
        """Attack the run of a stored model, with its own data and settings."""

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
    model: Recommender, part: Interactions | None, *, threads: int, quiet: bool, as_json: bool, **values: Any
) -> None:
    per_epoch, people = values.pop("per_epoch"), values.pop("sample")
    with training_bar(type(model), quiet or as_json) as progress:
        if part is None and not per_epoch:
            findings, about = audit_model(model, people=people, **values)
        else:
            run = TrainingOptions(threads=threads, progress=progress)
            data = model.training if part is None else part
            findings, about = audit_training(
                model, data, people=people, per_epoch=per_epoch, training_options=run, **values
            )
    if as_json:
        each = {"per_epoch": [asdict(result) for result in findings]} if per_epoch else {}
        click.echo(json.dumps({**asdict(findings[-1]), **about, **each}, indent=2))
    else:
        report_audit(findings, about, values["sees"])


def _cohort(cohort: int, sees: str, clients: Any) -> int:
    """The clients of a round over which a sum is taken."""
    if sees not in ("sums", "outsider"):
        raise SettingError(f"--cohort is about sums, and the server sees {sees}; add `--sees sums`, or leave it out.")
    if clients is not None and str(clients) != str(cohort):
        raise SettingError(
            f"A sum over {cohort} clients needs rounds of {cohort}, but --clients-per-round is {clients}; give one."
        )
    return cohort


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

_INSTEAD = {
    ("sums", "updates"): "A round has one client here, and the sum over one client is its upload: the server sees "
    "every upload. `--cohort K` makes rounds of K clients.",
    ("updates", "sums"): "Noise hides the signs of an upload, so the uploads of a client are averaged over rounds, "
    "as sums over one client.",
}
"""The requested threat model, the one that was audited instead, and why."""
_GUESSED = {
    "shares": "combines all sums into shares of users",
    "cosines": "combines all sums into cosines of items",
    "model": "has the published vectors",
    "weights": "has the published item-item weights",
}


def report_audit(findings: list[Findings], about: dict[str, Any], requested: str) -> None:
    """Print the findings of the last epoch as a table, and of each epoch if there are several.

    `requested` is the threat model of the command line; another may have been audited instead.
    """
    result, seen = findings[-1], about["sees"]
    few_uploads = about.get("family") == "squares"
    only_sums = few_uploads and seen in ("sums", "leader", "helper", "outsider")
    openly = not only_sums and seen != "both"
    if (requested, seen) in _INSTEAD:
        _say(_INSTEAD[requested, seen] + "\n")
    most = min(result.epoch, about["messages"]) if few_uploads else result.epoch
    after = (
        f"at most {plural(most, 'upload')} of each client" if few_uploads else f"{plural(most, 'epoch')} of training"
    )
    cohort = f", in rounds of {about['cohort']:,} clients" if about["cohort"] > 1 else ""
    data = f"{plain(about['data'])} ({about['users']:,} users, {about['items']:,} items)"
    _say(f"The observer of {data} sees {about['threat_model']}{cohort}. After {after}:")
    table = new_table("Attack", "Precision>", "Recall>", "AUC>", "Held back>", "Gain>")
    for name, marks in result.attacks.items():
        shares = (_percent(marks[mark]) for mark in ("precision", "recall"))
        aucs = ("-" if marks[mark] is None else f"{marks[mark]:.3f}" for mark in ("auc", "auc_held_back"))
        table.add_row(ROWS.get(name, name), *shares, *aucs, _gain(marks["gain"]))
    click.echo()
    show(table)
    _say(
        f"Precision: share of the named items that a user has (at random: {result.base_rate:.1%}). Recall: share of a "
        "user's items that are named. AUC: how often an item of the user is ranked above another item (0.5: chance). "
        "Held back: AUC of items never sent as liked. Gain: AUC beyond popularity or chance.\n"
    )
    # The strongest attack: the combined one, or the one with the best AUC.
    strongest = "fused" if "fused" in result.attacks else str(result.best["by_auc"])
    if len(findings) > 1:
        table = new_table("Epoch>", "Sent openly>" if openly else "Sent>", "Precision>", "Recall>", "AUC>", "Gain>")
        for each in findings:
            best = each.attacks[strongest]
            shares = (_percent(share) for share in (each.disclosed_share, best["precision"], best["recall"]))
            table.add_row(str(each.epoch), *shares, f"{best['auc']:.3f}", _gain(best["gain"]))
        show(table)
    _report_more(result)
    best = result.attacks[strongest]
    left = "went into a sum" if only_sums else "were sent in two shares that both servers combine"
    _say(
        f"What it means: {result.disclosed_share:.1%} of a user's items {'were sent openly' if openly else left} at "
        f"least once. From everything it saw, the observer names {_percent(best['recall'])} of a user's items, and "
        f"{_percent(best['precision'])} of what it names is right."
    )
    if few_uploads:
        _report_limits(about)
    attacked, own = about["people_attacked"], about["attackers_own_devices"]
    some = "" if attacked + own >= about["users"] else f" of {about['users']:,}"
    drawn = ", drawn with the seed (`--sample N` sets the number)" if some else ""
    shadows = f" {own:,} more are the server's own clients, for training attacks, and are not judged." if own else ""
    _say(f"Means over {attacked:,}{some} users{drawn}, with 95 % intervals over users.{shadows}")


def _report_limits(about: dict[str, Any]) -> None:
    """What the figures do not show."""
    if "epsilon" in about:
        limits = (
            f"Sums carry noise: epsilon {about['epsilon']:.3g} at delta {about['delta']:g} against this observer. "
            "Someone who knows everything else distinguishes a user's uploads from zeros with an AUC of at most "
            f"{about['order_allowed']:.3f} (0.5: chance), whatever the attack."
        )
    elif about["sees"] in ("sums", "leader", "helper", "outsider"):
        limits = (
            "The sums carry no noise here, so nothing bounds their leakage: sums hide a user among the clients of "
            "their rounds, and two rounds that differ by one client give that client's items "
            "(`train frugal --epsilon 4` adds noise)."
        )
    elif about["sees"] == "both":
        limits = "Two servers that combine their shares read every upload, noise or not: nothing hides a user then."
    else:
        limits = (
            "A plain upload discloses everything that it was computed from: one is enough. Few uploads are few "
            "chances to read one, not secrecy. Only secure sums hide uploads (`--sees sums`); only held-back items "
            "(`--sharing fixed-subset --pi 0.3`) are in none, and taste still points at them."
        )
    _say(limits)
    for name, figures in about.get("side_knowledge", {}).items():
        _say(
            f"Someone who knows {figures['known']} of a user's items and {_GUESSED[name]} names 10 more: "
            f"{_percent(figures['inside'])} are right for users in the federation, {_percent(figures['outside'])} for "
            f"the same users left out of it, {_percent(figures['popularity'])} by popularity "
            f"({figures['users']:,} users)."
        )


def _report_more(result: Findings) -> None:
    """The best attack, and what is inferred beyond items."""
    best = result.best
    for of, what in (("", ""), ("_held_back", " on held-back items")):
        name, low, high = (
            best[f"{key}{of}{end}"] for key, end in (("by_auc", ""), ("gain", "_low"), ("gain", "_high"))
        )
        if name is not None and best[f"gain{of}"] is not None:
            between = "" if low is None else f" (95 %: {low:+.3f} to {high:+.3f})"
            _say(
                f"The best attack{what}: {ROWS.get(name, name).lower()}, {best[f'auc{of}']:.3f}, "
                f"{_gain(best[f'gain{of}'])} beyond popularity or chance{between}."
            )
    if result.categories is not None:
        plainly, inferred = result.categories["popularity"], result.categories["fused"]
        _say(
            f"Shares of categories: off by {inferred['error']:.3f} on average (popularity: {plainly['error']:.3f}), "
            f"correlation {inferred['correlation']:.2f} ({plainly['correlation']:.2f})."
        )
    if result.ratings:
        inferred, plainly = result.ratings["two_steps"], result.ratings["mean"]
        _say(
            f"Ratings from two uploads: {_percent(inferred['exact'])} exact, off by {inferred['error']:.2f} "
            f"(the mean: {_percent(plainly['exact'])}, {plainly['error']:.2f})."
        )


def _say(text: str) -> None:
    """Print a paragraph."""
    click.echo(fill(text, 79) + "\n" * text.endswith("\n"))


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"


def _gain(gain: float | None) -> str:
    return "-" if gain is None else f"{gain:+.3f}"
