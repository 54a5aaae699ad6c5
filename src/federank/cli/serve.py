"""`federank serve`: a federation in the world, for devices over HTTPS and for browsers."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from federank.cli.plan import SURELY_LITTLE
from federank.cli.reading import Reading, reads_data_option
from federank.errors import SettingError

if TYPE_CHECKING:
    from federank.data.interactions import Interactions
    from federank.service.server.bootstrap import Demand
    from federank.service.server.secure_config import SumsDemand


# The flags of `federank serve`: our own, and those that settings records make (settings_flags.py).


class ServeCommand(click.Command):
    """The command, whose further flags are made from the settings records when it is asked for."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Our own options, then those of the records."""
        from federank.cli.settings_flags import settings_options
        from federank.service.server.settings import RoundSettings, TrustSettings

        if len(self.params) == self._own:
            self.params += [*settings_options(RoundSettings), *_method_options(), *settings_options(TrustSettings)]
            for option in self.params:
                if isinstance(option, click.Option) and option.name in _ROUND_HELP:
                    option.help = _ROUND_HELP[str(option.name)]
        return super().get_params(ctx)

    def __init__(self, *args: Any, **values: Any) -> None:
        super().__init__(*args, **values)
        self._own = len(self.params)


def _method_options() -> list[click.Option]:
    """The settings that federations decide, of every method that can be served: each once, with whose it is."""
    from federank.cli.settings_flags import settings_options
    from federank.service.server.methods import SERVER_METHODS

    found: dict[str, click.Option] = {}
    for served in SERVER_METHODS.values():
        for option in settings_options(served.settings):
            name = str(option.name)
            if name not in served.federation_settings:
                continue
            option.help = f"{served.name}: {_HELP.get(served.name, {}).get(name, option.help)}"
            if name in found:
                found[name].help = f"{found[name].help} {option.help}"
            else:
                found[name] = option
    return list(found.values())


_HELP = {
    "fpl": {"triples": "Pairs a device trains on in a round: a number, or mean (of the data).  [default: mean]"},
    "frugal": {
        "messages": "How many messages a device is ever invited to send; it counts them too.  [default: 5]",
        "clip": "Scale every message down to this length at most. With --helper: Frugal's own recipe with one noise "
        "for all messages, instead of the one that `train --epsilon` plays.",
        "most_shown": "No item is shown to a larger share of people than this, as far as the model tells, and rows of "
        "sums are bounded: what malicious devices can push. 1: no bound.  [default: none; with --helper 0.15 where "
        "there "
        "is a clip, else 0.2, or 0.3 under much noise]",
    },
}
"""Where a federation's setting says more, or less, than a simulation's."""
_ROUND_HELP = {
    "minimum": "Reports below which a round whose time is up is abandoned, leaving no trace in the model; 50 are "
    "better.  [default: 20; in a rehearsal 1]",
}


_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_LONGEST_PERIOD = 366 * 86_400


class Duration(click.ParamType[float]):
    """A duration such as 90s, 15m, 12h, 1d or 2w, in seconds; 0 is none."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The seconds of a duration."""
        if isinstance(value, float):
            return value
        match = re.fullmatch(r"(\d{1,9}(?:\.\d{1,3})?)([smhdw]?)", str(value).strip())
        if match and (match[2] or float(match[1]) == 0):
            seconds = float(match[1]) * _UNITS.get(match[2], 1)
            if seconds <= _LONGEST_PERIOD:
                return seconds
        return self.fail(f"{value!r} is no duration of at most 366d; write 90s, 15m, 12h, 1d, 2w or 0.", param, ctx)


def serve_options(command: Callable[..., None]) -> Callable[..., None]:
    """Our own options, in the order in which help shows them."""
    for option in reversed(
        (
            click.option(
                "--host", default="127.0.0.1", show_default=True, help="Address to listen on; 0.0.0.0 for all."
            ),
            click.option(
                "--port", type=click.IntRange(0, 65535), default=8470, show_default=True, help="0: any free one."
            ),
            click.option("--admin-host", default="127.0.0.1", show_default=True, help="The operator's address."),
            click.option(
                "--admin-port",
                type=click.IntRange(0, 65535),
                help="The operator's port.  [default: the port after --port]",
            ),
            click.option(
                "--store",
                default="sqlite:///federation.sqlite",
                show_default=True,
                help="sqlite:///FILE or postgresql://USER@HOST/NAME.",
            ),
            click.option(
                "--workers", type=click.IntRange(1, 64), default=1, show_default=True, help="Processes that serve."
            ),
            click.option(
                "--tls-cert", type=click.Path(path_type=Path), metavar="FILE", help="Certificate chain (PEM)."
            ),
            click.option("--tls-key", type=click.Path(path_type=Path), metavar="FILE", help="Its key (PEM)."),
            click.option(
                "--self-signed",
                is_flag=True,
                help="Make a certificate, and write it to the current folder for devices' --ca.",
            ),
            click.option(
                "--method",
                metavar="frugal|fpl|federank|pmf|svdpp|NAME",
                help="What it learns by: few uploads, pair-wise learning as in its authors' code (fpl) or as printed "
                "(federank), ratings (FedRec), or a method of another package.  [default: frugal]",
            ),
            click.option("--name", help="What the federation is called.  [default: the data's name]"),
            click.option("--noun", metavar="ONE/MANY", help="What its items are called, such as film/films."),
            click.option(
                "--seen", metavar="WORDS", help="The button that hides one that people know, such as Seen it."
            ),
            click.option("--description", metavar="TEXT", help="What people should know before they take part."),
            click.option("--language", metavar="TAG", help="Language of name and description: en, de, it."),
            click.option(
                "--every",
                type=Duration(),
                metavar="DURATION",
                help="A client uploads at most once per period: 12h, 1d, 2w; 0: as often as there are rounds.  "
                "[default: 1d; in a rehearsal 0]",
            ),
            click.option("--run-by", metavar="TEXT", help="Who runs it, as the page tells people."),
            click.option(
                "--start-from",
                type=click.Path(path_type=Path),
                metavar="DIR",
                help="Begin with a trained model's item factors.",
            ),
            click.option(
                "--suggest-pi", type=float, metavar="X", help="Suggest to devices to share this much; owners decide."
            ),
            click.option(
                "--suggest-sharing",
                type=click.Choice(["all", "fixed-subset", "randomized-response"]),
                help="The way of sharing that goes with --suggest-pi.  [default: fixed-subset]",
            ),
            click.option(
                "--suggest-item-epsilon",
                type=float,
                metavar="X",
                help="The item epsilon of suggested randomized response.",
            ),
            click.option(
                "--new-admin-token", is_flag=True, help="Make and show a new operator's token; the old one dies."
            ),
            click.option(
                "--restored", is_flag=True, help="The store was restored from a backup: let its numbers jump ahead."
            ),
            click.option(
                "--rehearsal",
                is_flag=True,
                help="Lift the limits on requests and on small rounds, for a fleet on one machine.",
            ),
            click.option(
                "--i-accept-that-outsiders-can-read-updates",
                "accepts_few",
                is_flag=True,
                help="Allow rounds of fewer than 20 reports.",
            ),
            click.option(
                "--helper",
                metavar="URL",
                help="frugal, pmf, svdpp: a second server, run by someone else, so that neither can read an upload.",
            ),
            click.option(
                "--helper-ca",
                type=click.Path(path_type=Path),
                metavar="FILE",
                help="Certificates (PEM) by which the helper is known.  [default: the system's]",
            ),
            click.option(
                "--epsilon",
                type=float,
                metavar="X",
                help="With --helper: what all messages of a life may tell whoever runs one of the two servers. "
                " [default: the smallest that surely costs less than a tenth of the accuracy with --target people; "
                "none where there is none]",
            ),
            click.option(
                "--sigma",
                type=float,
                metavar="X",
                help="With --helper, instead of --epsilon: noise of each server, in longest messages; 0: none.",
            ),
            click.option(
                "--delta", type=float, metavar="X", help="The chance with which epsilon may fail.  [default: 1e-6]"
            ),
            click.option(
                "--least-cohort",
                type=click.IntRange(2, 100_000),
                help="With --helper: no sum of fewer messages is opened.  [default: 50]",
            ),
            click.option(
                "--norm-check",
                type=click.Choice(["128", "64", "off"]),
                help="With --helper: a proof, not reviewed from outside, that no message is louder than it may be, by "
                "this many random projections; off: one device may say as much as all others together.  [default: 128]",
            ),
            click.option("--proxies", metavar="ADDRESSES", help="Proxies whose X-Forwarded-For is believed."),
            click.option("--quiet", is_flag=True, help="No log on stderr."),
        )
    ):
        command = option(command)
    return command


_NO_LIMITS = {
    "device_rate": 0.0,
    "address_rate": 0.0,
    "enrolment_rate": 0.0,
    "range_rate": 0.0,
    "address_connections": 0,
    "invited_only": False,
}


@click.command(cls=ServeCommand)
@serve_options
@reads_data_option
def serve(reading: Reading, **values: Any) -> None:
    """Serve a federation to devices and browsers.

    The data give the catalogue (ids, titles, categories) and the mean number of items per person, nothing else:
    no one's history is kept. What the federation is stays in the store; started again, it goes on where it was.

    \b
    Examples:
      federank serve --data city
      federank serve --data city --messages 3
      federank serve --data city --helper https://helper.example --epsilon 4
      federank serve --data city --self-signed --host 0.0.0.0
      federank serve --store postgresql://federank@localhost/federank --workers 2
    """
    sys.exit(_serve(reading, **values))


def _serve(
    reading: Reading,
    *,
    host: str,
    port: int,
    admin_host: str,
    admin_port: int | None,
    store: str,
    workers: int,
    tls_cert: Path | None,
    tls_key: Path | None,
    self_signed: bool,
    rehearsal: bool,
    proxies: str | None,
    quiet: bool,
    **values: Any,
) -> int:
    from federank.cli.settings_flags import given_settings
    from federank.service.server.bootstrap import open_store
    from federank.service.server.http.listening import hosts_of
    from federank.service.server.logs import Log
    from federank.service.server.processes import Serving, bind
    from federank.service.server.processes import serve as serve_federation
    from federank.service.server.settings import TrustSettings

    trust = TrustSettings(**((_NO_LIMITS if rehearsal else {}) | given_settings(TrustSettings, values)))
    if rehearsal:
        values |= {"accepts_few": True, "every": values["every"] or 0.0}
    demand = _demand(reading, values)
    refuse_names(proxies)
    certificate, key = certificate_of(tls_cert, tls_key, self_signed, host)
    # The token of a federation is shown once, so what can go wrong goes wrong before there is one.
    after = port + 1 if port else 0
    with (
        bind(host, port) as public,
        bind(admin_host, after if admin_port is None else admin_port, "--admin-port") as admin,
    ):
        token = open_store(store, demand, Log(None if quiet else sys.stderr))
        scheme = "https" if certificate else "http"
        _report(scheme, host, public.getsockname()[1], admin_host, admin.getsockname()[1], store, token)
        _report_guarantee(store)
        if certificate is not None and self_signed:
            click.echo(
                f"certificate  {certificate}  (for {', '.join(hosts_of(certificate))}; give it to devices: --ca)"
            )
        if certificate is None and host not in ("127.0.0.1", "::1", "localhost"):
            click.echo("federank: without TLS, put a proxy that has it in front: devices refuse plain HTTP.", err=True)
        return serve_federation(
            Serving(
                store=store,
                trust=trust,
                certificate=certificate,
                key=key,
                workers=workers,
                proxies=proxies,
                quiet=quiet,
            ),
            public,
            admin,
        )


def _demand(reading: Reading, values: dict[str, Any]) -> Demand:
    """What the flags ask of the store."""
    from federank.cli.settings_flags import given_settings
    from federank.data.formats import is_catalogue_file, read_catalogue_file
    from federank.service.server.bootstrap import Demand
    from federank.service.server.config import LONGEST_NOUN, language_of, noun_of, suggested_policy, words_of
    from federank.service.server.methods import SERVER_METHODS
    from federank.service.server.settings import RoundSettings

    def data() -> Interactions:
        path = Path(reading.source).expanduser()
        return read_catalogue_file(path) if is_catalogue_file(path) else reading.interactions()

    of_methods = {name for served in SERVER_METHODS.values() for name in served.federation_settings}
    settings = {name: values[name] for name in sorted(of_methods) if values[name] is not None}
    method = values["method"]
    if method == "federank":  # a preset of fpl: its clients are told the order and the mask, as of any fpl federation
        method, settings = "fpl", {"order": "as-printed", "mask": "as-printed"} | settings
    return Demand(
        data=data,
        source=reading.source,
        names_data=click.get_current_context().get_parameter_source("source") is ParameterSource.COMMANDLINE,
        name=values["name"],
        method=method,
        settings=settings,
        rounds=given_settings(RoundSettings, values),
        start_from=values["start_from"],
        suggested_policy=suggested_policy(
            values["suggest_pi"], values["suggest_sharing"], values["suggest_item_epsilon"]
        ),
        noun=None if values["noun"] is None else noun_of(values["noun"]),
        description=None if values["description"] is None else words_of("--description", values["description"]),
        seen=None if values["seen"] is None else words_of("--seen", values["seen"], LONGEST_NOUN),
        language=None if values["language"] is None else language_of(values["language"]),
        upload_period=values["every"],
        run_by=None if values["run_by"] is None else words_of("--run-by", values["run_by"]),
        restored=values["restored"],
        new_admin_token=values["new_admin_token"],
        sums=_sums_demand(values),
        accepts_few=values["accepts_few"],
    )


def _sums_demand(values: dict[str, Any]) -> SumsDemand | None:
    """The helper that the flags ask for."""
    from federank.service.server.secure_config import SumsDemand

    helper, authority = values["helper"], values["helper_ca"]
    given = {name: values[name] for name in ("epsilon", "sigma", "delta", "least_cohort") if values[name] is not None}
    if values["norm_check"] is not None:
        given["projections"] = 0 if values["norm_check"] == "off" else int(values["norm_check"])
    if helper is None:
        if given or authority is not None:
            raise SettingError(
                "--epsilon, --sigma, --delta, --least-cohort, --norm-check and --helper-ca go with --helper: name the "
                "helper too."
            )
        return None
    try:
        return SumsDemand(helper=helper, authority=authority and authority.read_text(), **given)
    except OSError as reason:
        raise SettingError(f"--helper-ca {authority} cannot be read ({reason.strerror}).") from reason


def _report(scheme: str, host: str, port: int, admin_host: str, admin_port: int, store: str, token: str | None) -> None:
    from federank.service.server.store.database import without_password

    click.echo(f"federation   {scheme}://{_shown(host)}:{port}")
    click.echo(f"operator     {scheme}://{_shown(admin_host)}:{admin_port}/admin")
    if token is not None:
        click.echo(f"admin token  {token}  (shown this once; the store keeps only its hash)")
    click.echo(f"store        {without_password(store)}")


_PLAN_HINT = f"federank plan tells from which size on it {SURELY_LITTLE}"


def _report_guarantee(store: str) -> None:
    """What a federation guarantees and how messages of sums are checked; what it means where there is none of it."""
    from federank.privacy.accountant import epsilon_of_mu
    from federank.secagg.config import GRADIENTS
    from federank.service.server.config import read_config
    from federank.service.server.store.database import Database

    database = Database(store)
    with database.connection() as connection:
        federation = read_config(connection)
    database.release()
    assert federation is not None, "the store was opened"
    agreed = federation.sums
    if agreed is None:
        how = "--helper URL" if federation.served.sums else "--method frugal --helper URL"
        click.echo(f"guarantee      none: this server can read every message ({how}: only sums, for a new --store)")
        return
    config = agreed.config
    if all(config.noises):
        epsilon = epsilon_of_mu(config.mu(), float(config.delta))
        click.echo(f"guarantee      epsilon {epsilon:.2f} at delta {config.delta}, for all messages of a lifetime")
        if config.recipe == GRADIENTS:
            click.echo(
                "federank: ratings under noise want some hundred thousand people in a round; with 6,040 they were "
                "predicted far worse than by everyone's own mean (docs/fedrec.md). --sigma 0 is for a new --store.",
                err=True,
            )
    else:
        hint = "--epsilon asks for some" if config.recipe == GRADIENTS else _PLAN_HINT
        click.echo(f"guarantee      none: sums carry no noise ({hint})")
    most_shown = json.loads(agreed.settings).get("most_shown")
    if most_shown is None or float(most_shown) >= 1:
        click.echo("bounds       none: devices that lie together may show everyone what they like")
    else:
        click.echo(
            f"bounds       no item is to be shown to more than {float(most_shown):.0%} of people, as far as sums tell"
        )
    if agreed.config.projections:
        click.echo(f"norm check   {agreed.config.projections} projections (not reviewed from outside)")
    else:
        click.echo("norm check   off")
        click.echo(
            "federank: no message is checked, and no one can read one: a single malicious device may say as much as "
            "all "
            "others together. --norm-check 128 is for a new --store.",
            err=True,
        )


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def refuse_names(proxies: str | None) -> None:
    """A proxy that is named otherwise than by its address would never be believed."""
    import ipaddress

    for proxy in () if proxies is None else proxies.split(","):
        try:
            ipaddress.ip_network("0.0.0.0/0" if proxy.strip() == "*" else proxy.strip())
        except ValueError as reason:
            raise SettingError(
                f"--proxies names {proxy.strip()!r}; addresses or networks are needed, such as 127.0.0.1,10.0.0.0/8."
            ) from reason


def certificate_of(
    certificate: Path | None, key: Path | None, make_one: bool, host: str
) -> tuple[Path | None, Path | None]:
    """The certificate and its key that the flags ask for, made if they ask for that; what cannot be used is refused."""
    from federank.service.server.http.listening import self_signed, server_context

    if make_one and (certificate is not None or key is not None):
        raise SettingError("--self-signed makes a certificate; leave it out where --tls-cert and --tls-key name one.")
    if make_one:
        import socket

        hosts = dict.fromkeys((host, "localhost", "127.0.0.1", "::1", socket.gethostname()))
        certificate, key = self_signed(Path.cwd(), tuple(name for name in hosts if name not in ("0.0.0.0", "::")))
    if (certificate is None) != (key is None):
        raise SettingError("A certificate and its key go together: give both --tls-cert and --tls-key.")
    if certificate is not None and key is not None:
        server_context(certificate, key)  # refuse what cannot be used before anything begins
    return certificate, key
