"""`federank serve METHOD`: the server of a federation, for clients over HTTPS and for browsers."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from federank.cli.listening import LOOPBACK, Duration, listening, listening_options, shown_host
from federank.cli.options import (
    FILE,
    FOLDER,
    LIMITS,
    METHOD_NAMED,
    MORE,
    SETTINGS,
    Command,
    MethodGroup,
    Option,
    Reading,
    given_settings,
    is_given,
    more,
    names_of,
    option_name,
    reads_data_option,
    settings_options,
    taken_reading,
)
from federank.cli.plan import SURELY_LITTLE
from federank.errors import SettingError
from federank.methods.registry import federated_method, help_of, served_names
from federank.privacy.accountant import epsilon_of_mu
from federank.secagg.config import GRADIENTS
from federank.service.local_helper import allows_leader, helper_port_of, helper_store_of, running_helper
from federank.service.server.bootstrap import FederationSpec, open_store
from federank.service.server.config import LONGEST_NOUN, language_of, noun_of, read_config, suggested_policy, words_of
from federank.service.server.http.listening import hosts_of
from federank.service.server.logs import Log
from federank.service.server.methods import SERVER_METHODS, ServerMethod
from federank.service.server.processes import Serving
from federank.service.server.processes import serve as serve_federation
from federank.service.server.secure_config import SecaggSpec
from federank.service.server.settings import RoundSettings, TrustSettings
from federank.service.server.store.database import Database, without_password

if TYPE_CHECKING:
    from federank.data.interactions import Interactions

DEFAULT = "frugal"
LOCAL = "this machine"
"""The helper's address until a local one is started."""
_PRESETS = {"federank": ("fpl", {"order": "as-printed", "mask": "as-printed"})}

_HELP = {
    "fpl": {"triples": "Pairs that a client trains on in a round.  [default: the mean size of the histories]"},
    "frugal": {
        "messages": "Uploads per client in a season; clients count them too.  [default: 5]",
        "clip": "Norm bound of an upload. With --helper: Frugal's own recipe with one noise for all uploads, instead "
        "of the one that `train --epsilon` simulates.",
        "most_shown": "Largest share of users that an item may be recommended to, as estimated from the model; rows of "
        "sums are bounded too. It limits what malicious clients can push. 1: no bound.  [default: none; with --helper "
        "0.15 where there is a clip, else 0.2, or 0.3 under much noise]",
    },
}
"""Help where a setting of a federation differs from that of a simulation."""
_ROUND_HELP = {
    "target": "Uploads that end a round.  [default: 20; with --helper 50, or --least-cohort if that is more]",
    "minimum": "Minimum number of uploads. A round that reaches its deadline with fewer is discarded. Recommended: 50 "
    "or more.  [default: 20; with --helper that of --least-cohort; in a rehearsal 1]",
    "over_selection": "Clients that are invited to a round, as a multiple of the target.  [default: 1.3; of frugal, "
    "and with --helper, 1]",
    "deadline": "Seconds until a round ends, from its first ticket on.  [default: 60; with --helper 3600]",
}


def served_methods() -> list[str]:
    """The methods that can be served, and the presets of them."""
    return [*served_names(), *_PRESETS]


def _command(name: str) -> click.Command:
    """The command that serves this method, with its flags alone."""
    method = _PRESETS.get(name, (name, {}))[0]
    served = SERVER_METHODS[method]
    rounds = settings_options(RoundSettings)
    for option in rounds:
        if isinstance(option, Option) and option.name in _ROUND_HELP:
            option.help = _ROUND_HELP[str(option.name)]
            option.section = MORE if option.name == "over_selection" else option.section

    def run(**values: Any) -> None:
        sys.exit(_serve(taken_reading(values), name, served, values))

    return Command(
        name,
        callback=run,
        help=f"{help_of(name)}\n\n\b\nExample:\n  federank serve {name} --data city --plain",
        params=[*_method_options(served), *_common.params, *rounds, *settings_options(TrustSettings, section=LIMITS)],
    )


def _method_options(served: ServerMethod) -> list[click.Parameter]:
    """The settings of a method that the federation decides; owners decide the others."""
    names = {option_name(name, served.name, _reserved()): name for name in served.federation_settings}
    options = [option for option in settings_options(served.kind, served.name, _reserved()) if option.name in names]
    texts = _HELP.get(served.name, {})
    for option in options:
        assert isinstance(option, Option)
        option.help = texts.get(names[str(option.name)], option.help)
        if option.section == SETTINGS and option.name not in (*texts, "factors", "learning_rate", "rho"):
            option.section = MORE
    return options


def _reserved() -> frozenset[str]:
    """Names that a setting of a method of another package may have, but not as its flag."""
    return names_of(_common.params) - {"epsilon", "sigma", "delta"}


@click.command(
    cls=MethodGroup,
    names=served_methods,
    build=_command,
    accepts=lambda name: federated_method(name) is not None,
    default=DEFAULT,
)
def serve() -> None:
    """Serve a federation to clients and browsers. Without METHOD: frugal, or what the store holds.

    The data give the catalogue (ids, titles, categories) and the mean number of items per user. No history is stored.
    The federation's configuration stays in the store; a server that is started again continues.

    A new federation needs a decision that cannot be changed later: --helper, --local-helper or --plain.

    \b
    Examples:
      federank serve --data city --helper https://helper.example --epsilon 4
      federank serve --data city --local-helper
      federank serve frugal --data city --plain --messages 3
      federank serve --store postgresql://federank@localhost/federank --workers 2
      federank serve frugal --help
    """


@click.command()
@listening_options(8470)
@more("--admin-host", default="127.0.0.1", show_default=True, help="The operator's address.")
@more("--admin-port", type=click.IntRange(0, 65535), help="The operator's port.  [default: the port after --port]")
@click.option(
    "--store",
    default="sqlite:///federation.sqlite",
    show_default=True,
    help="sqlite:///FILE or postgresql://USER@HOST/NAME.",
)
@more("--workers", type=click.IntRange(1, 64), default=1, show_default=True, help="Server processes.")
@click.option("--name", help="Name of the federation.  [default: the data's name]")
@more("--description", metavar="TEXT", help="What users should know before they take part.")
@more("--run-by", metavar="TEXT", help="Who runs it, as the page says.")
@more("--noun", metavar="ONE/MANY", help="What its items are called, such as film/films.")
@more("--seen", metavar="WORDS", help="The button that hides an item that the user knows, such as Seen it.")
@more("--language", metavar="TAG", help="Language of name and description: en, de, it.")
@click.option(
    "--every",
    type=Duration(),
    metavar="DURATION",
    help="A client uploads at most once per period: 12h, 1d, 2w; 0: as often as there are rounds.  [default: 1d; in a "
    "rehearsal 0]",
)
@more("--start-from", type=FOLDER, help="Begin with a trained model's item factors.")
@more("--suggest-pi", type=float, metavar="X", help="Suggest to clients to share this much; owners decide.")
@more(
    "--suggest-sharing",
    type=click.Choice(["all", "fixed-subset", "randomized-response"]),
    help="The sharing policy that goes with --suggest-pi.  [default: fixed-subset]",
)
@more("--suggest-item-epsilon", type=float, metavar="X", help="The item epsilon of suggested randomized response.")
@more("--new-admin-token", is_flag=True, help="Make and show a new operator's token; the old one is revoked.")
@more("--restored", is_flag=True, help="The store was restored from a backup: let its numbers jump ahead.")
@click.option(
    "--rehearsal",
    is_flag=True,
    help="Lift the limits on requests and on small rounds; for simulated clients on one machine.",
)
@more(
    "--i-accept-that-outsiders-can-read-updates",
    "accepts_few",
    is_flag=True,
    help="Allow rounds of fewer than 20 uploads.",
)
@click.option(
    "--helper",
    metavar="URL",
    help="The second server, for secure aggregation; another organisation runs it, so neither can read an upload.",
)
@click.option(
    "--local-helper",
    is_flag=True,
    help="Secure aggregation for trying out: both servers run on this machine, which could read every upload.",
)
@click.option("--plain", is_flag=True, help="No secure aggregation: the operator can read every upload.")
@more("--helper-ca", type=FILE, help="Certificates (PEM) by which the helper is known.  [default: the system's]")
@click.option(
    "--epsilon",
    type=float,
    metavar="X",
    help="With --helper: differential privacy of all uploads of a client, against either server.  [default: the "
    "smallest that surely costs less than a tenth of the accuracy with --target clients; none where there is none]",
)
@more(
    "--sigma",
    type=float,
    metavar="X",
    help="With --helper, instead of --epsilon: noise of each server, in norms of an upload; 0: none.",
)
@more("--delta", type=float, metavar="X", help="The probability with which epsilon may fail.  [default: 1e-6]")
@click.option(
    "--least-cohort",
    type=click.IntRange(2, 100_000),
    metavar="N",
    help="With --helper: minimum number of uploads in a sum that is opened.  [default: 50]",
)
@more(
    "--norm-check",
    type=click.Choice(["128", "64", "off"]),
    help="With --helper: random projections of the proof that an upload is within its norm bound. The proof has had no "
    "outside review. off: one malicious client can outweigh all others.  [default: 128]",
)
@more("--proxies", metavar="ADDRESSES", help="Proxies whose X-Forwarded-For is trusted.")
@click.option("--quiet", is_flag=True, help="No log on stderr.")
@reads_data_option
def _common(**_: Any) -> None:
    """The options of every method."""


_RATES = ("client_rate", "address_rate", "enrolment_rate", "range_rate", "address_connections")
_NO_LIMITS = dict.fromkeys(_RATES, 0) | {"invited_only": False}


def _serve(reading: Reading, name: str, served: ServerMethod, values: dict[str, Any]) -> int:
    store, rehearsal = values["store"], values["rehearsal"]
    trust = TrustSettings(**((_NO_LIMITS if rehearsal else {}) | given_settings(TrustSettings, values)))
    if rehearsal:
        values |= {"accepts_few": True, "every": values["every"] or 0.0}
    spec = _spec(reading, name, served, values)
    # The token of a federation is shown once, so every other error comes before there is one.
    with ExitStack() as stack:
        at = stack.enter_context(listening(values))
        if spec.sums is not None and spec.sums.helper == LOCAL:
            local = stack.enter_context(_local_helper(values, at.certificate, at.key))
            spec = replace(spec, sums=replace(spec.sums, **local))
        token = open_store(store, spec, Log(None if values["quiet"] else sys.stderr))
        click.echo(f"federation   {at.address}")
        port = at.operator.getsockname()[1]
        click.echo(f"operator     {at.scheme}://{shown_host(values['admin_host'])}:{port}/admin")
        if token is not None:
            click.echo(f"admin token  {token}  (shown this once; the store keeps only its hash)")
        click.echo(f"store        {without_password(store)}")
        report_guarantee(store, trust.invited_only, local=bool(values.get("local_helper")))
        if at.certificate is not None and values["self_signed"]:
            hosts = ", ".join(hosts_of(at.certificate))
            click.echo(f"certificate  {at.certificate}  (for {hosts}; give it to clients: --ca)")
        if at.certificate is None and at.host not in LOOPBACK:
            click.echo("federank: without TLS, put a proxy that has it in front: clients refuse plain HTTP.", err=True)
        serving = Serving(
            store=store,
            trust=trust,
            certificate=at.certificate,
            key=at.key,
            **{name: values[name] for name in ("workers", "proxies", "quiet")},
        )
        return serve_federation(serving, at.public, at.operator)


@contextmanager
def _local_helper(values: dict[str, Any], certificate: Path | None, key: Path | None) -> Iterator[dict[str, Any]]:
    """A helper on this machine, while the block runs; as fields of `SecaggSpec`."""
    host, store = values["host"], helper_store_of(values["store"])
    if host in ("0.0.0.0", "::") or (certificate is None and host not in LOOPBACK):
        raise SettingError(
            f"--local-helper with --host {host}: clients ask the helper too, at an address that they can reach and "
            "over TLS. Name this machine's address with --host, and add --self-signed; or leave --host out."
        )
    port = helper_port_of(values["store"], values["port"])
    with running_helper(store, host=host, port=port, certificate=certificate, key=key) as address:
        authority = None if certificate is None else certificate.read_text()
        yield {"helper": address, "authority": authority, "allow": allows_leader(store)}


def _spec(reading: Reading, name: str, served: ServerMethod, values: dict[str, Any]) -> FederationSpec:
    """The federation that the flags describe."""

    def data() -> Interactions:
        from federank.data.formats import is_catalogue_file, read_catalogue_file

        path = Path(reading.source).expanduser()
        return read_catalogue_file(path) if is_catalogue_file(path) else reading.interactions()

    def words(flag: str, *limit: int) -> str | None:
        text = values[flag]
        return None if text is None else words_of(f"--{flag.replace('_', '-')}", text, *limit)

    preset = _PRESETS[name][1] if name in _PRESETS else {}
    options = {name: option_name(name, served.name, _reserved()) for name in sorted(served.federation_settings)}
    settings = {name: values[option] for name, option in options.items() if values[option] is not None}
    named = click.get_current_context().meta.get(METHOD_NAMED, True)
    texts = {
        "suggested_policy": suggested_policy(
            values["suggest_pi"], values["suggest_sharing"], values["suggest_item_epsilon"]
        ),
        "noun": None if values["noun"] is None else noun_of(values["noun"]),
        "description": words("description"),
        "seen": words("seen", LONGEST_NOUN),
        "run_by": words("run_by"),
        "language": None if values["language"] is None else language_of(values["language"]),
        "upload_period": values["every"],
    }
    return FederationSpec(
        data=data,
        source=reading.source,
        names_data=is_given("source"),
        name=values["name"],
        method=served.name if named else None,
        settings=preset | settings,
        rounds=given_settings(RoundSettings, values),
        start_from=values["start_from"],
        texts={name: text for name, text in texts.items() if text is not None},
        restored=values["restored"],
        new_admin_token=values["new_admin_token"],
        sums=_secagg_spec(values),
        plain=values["plain"],
        accepts_few=values["accepts_few"],
    )


def _secagg_spec(values: dict[str, Any]) -> SecaggSpec | None:
    """The helper and the guarantee that the flags describe."""
    helper, authority, local = values.get("helper"), values.get("helper_ca"), bool(values.get("local_helper"))
    if (helper is not None) + local + values["plain"] > 1:
        raise SettingError("--helper, --local-helper and --plain exclude one another; give one of them.")
    names = ("epsilon", "sigma", "delta", "least_cohort")
    given = {name: values[name] for name in names if values.get(name) is not None}
    if values.get("norm_check") is not None:
        given["projections"] = 0 if values["norm_check"] == "off" else int(values["norm_check"])
    if local:
        return SecaggSpec(helper=LOCAL, **given)
    if helper is None:
        if given or authority is not None:
            raise SettingError(
                "--epsilon, --sigma, --delta, --least-cohort, --norm-check and --helper-ca go with --helper or "
                "--local-helper: give one of them too."
            )
        return None
    parts = urlsplit(helper)
    if parts.scheme != "https" and parts.hostname not in LOOPBACK:
        raise SettingError(
            f"--helper is {helper}, but the two servers speak TLS unless both are on this machine; give https://..., "
            "and --helper-ca FILE where the helper's certificate is its own."
        )
    try:
        return SecaggSpec(helper=helper, authority=authority and authority.read_text(), **given)
    except OSError as reason:
        raise SettingError(f"--helper-ca {authority} cannot be read ({reason.strerror}).") from reason


def report_guarantee(store: str, invited_only: bool | None, local: bool = False) -> None:
    """Who can read uploads, who may enrol, the privacy guarantee, bounds on malicious clients, the norm check."""
    database = Database(store)
    with database.connection() as connection:
        federation = read_config(connection)
    database.release()
    assert federation is not None, "the store was opened"
    agreed = federation.sums
    needs_invitation = agreed is not None and not agreed.config.has_noise if invited_only is None else invited_only
    by_invitation = "by invitation only (federank admin invite --count 100)"
    click.echo(f"enrolment    {by_invitation if needs_invitation else 'open'}")
    if agreed is None:
        click.echo("uploads      plain: the operator can read every upload (new --store, --helper URL: only sums)")
        click.echo("guarantee    none")
        return
    config = agreed.config
    who = "both servers run on this machine, which could read every upload" if local else "neither server reads one"
    click.echo(f"uploads      secure aggregation; {who} (helper {config.helper_origin})")
    if config.has_noise:
        epsilon = epsilon_of_mu(config.mu(), float(config.delta))
        click.echo(f"guarantee    epsilon {epsilon:.2f} at delta {config.delta}, for all uploads of a client")
        if config.recipe == GRADIENTS:
            click.echo(
                "federank: ratings under noise need some hundred thousand users in a round; with 6,040 they were "
                "predicted far worse than each user's own mean (docs/fedrec.md). --sigma 0 is for a new --store.",
                err=True,
            )
    else:
        size = f"`federank audit plan` shows from which size on it {SURELY_LITTLE}"
        hint = "--epsilon adds it" if config.recipe == GRADIENTS else size
        click.echo(f"guarantee    none: sums carry no noise ({hint})")
    most_shown = json.loads(agreed.settings).get("most_shown")
    if most_shown is None or float(most_shown) >= 1:
        click.echo("bounds       none: malicious clients together can push any item to all users")
    else:
        click.echo(f"bounds       an item is recommended to at most {float(most_shown):.0%} of users, as estimated")
    if agreed.config.projections:
        click.echo(f"norm check   {agreed.config.projections} projections (no outside review)")
    else:
        click.echo("norm check   off")
        click.echo(
            "federank: uploads are not checked, and no server can read them: a single malicious client can outweigh "
            "all others. --norm-check 128 is for a new --store.",
            err=True,
        )
