"""The flags of `federank serve`: our own, and those that settings records make (settings_flags.py)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click


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
    from federank.service.server.families.registry import FAMILIES

    found: dict[str, click.Option] = {}
    for family in FAMILIES.values():
        for option in settings_options(family.settings):
            name = str(option.name)
            if name not in family.federation_settings:
                continue
            option.help = f"{family.method}: {_HELP.get(family.method, {}).get(name, option.help)}"
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
        "sums are bounded: what lying devices can push. 1: no bound.  [default: none; with --helper 0.15 where there "
        "is a clip, else 0.2, or 0.3 under much noise]",
    },
}
"""Where a federation's setting says more, or less, than a simulation's."""
_ROUND_HELP = {
    "minimum": "Reports below which a round whose time is up is abandoned, leaving no trace in the model; 50 are "
    "better.  [default: 20; in a rehearsal 1]",
}


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
                type=click.Choice(["frugal", "fpl", "pmf", "svdpp"]),
                help="What it learns by: few messages, the published pair-wise learning, or ratings (FedRec).  "
                "[default: frugal]",
            ),
            click.option("--name", help="What the federation is called.  [default: the data's name]"),
            click.option("--noun", metavar="ONE/MANY", help="What its items are called, such as film/films."),
            click.option(
                "--seen", metavar="WORDS", help="The button that hides one that people know, such as Seen it."
            ),
            click.option("--description", metavar="TEXT", help="What people should know before they take part."),
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
                type=click.Choice(["as-published", "sticky", "deniable"]),
                help="The way of sharing that goes with --suggest-pi.  [default: sticky]",
            ),
            click.option(
                "--suggest-epsilon", type=float, metavar="X", help="The epsilon of suggested deniable sharing."
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
                help="frugal, pmf, svdpp: a second server, run by somebody else, so that neither can read an upload.",
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
                "so many random projections; off: one device may say as much as all others together.  [default: 128]",
            ),
            click.option("--proxies", metavar="ADDRESSES", help="Proxies whose X-Forwarded-For is believed."),
            click.option("--quiet", is_flag=True, help="No log on stderr."),
        )
    ):
        command = option(command)
    return command
