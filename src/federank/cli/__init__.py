"""The command line: `federank COMMAND ...`, one file per command.

Commands are imported when they are asked for, so that `federank --help` answers at once. Results go to stdout,
progress and complaints to stderr; a mistake that the user can fix is one sentence and exit code 2.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from io import TextIOWrapper

import click

from federank.checks import unknown_name
from federank.errors import FedeRankError, SettingError
from federank.extras import need

COMMANDS = {
    "data": ("federank.cli.data", "Known data sets: list, get, look at, split; and the synthetic city."),
    "train": ("federank.cli.train", "Train a method and keep it in a folder."),
    "recommend": ("federank.cli.recommend", "Recommendations of a trained model, for one person or for all."),
    "predict": ("federank.cli.predict", "The rating that a person would give an item (pmf, svdpp and biases models)."),
    "evaluate": ("federank.cli.evaluate", "How good a model's recommendations are, or those in a file."),
    "card": ("federank.cli.card", "A model card: data, settings, metrics, and what left the devices."),
    "compare": ("federank.cli.compare", "Are the differences between models more than luck? Paired tests over users."),
    "audit": ("federank.cli.audit", "What a honest-but-curious server would learn from a federation's messages."),
    "bench": ("federank.cli.bench", "Public benchmarks: one method beside the published figures."),
    "plan": ("federank.cli.plan", "What a federation of a size can guarantee, and the accuracy to expect."),
    "attack": ("federank.cli.attack", "Devices that lie: attacks on a federation in a rehearsal, and what stops them."),
    "device": (
        "federank.cli.device",
        "One person's device in a federation: take part, ledger, recommend, policy.",
    ),
    "fleet": ("federank.cli.fleet", "Many virtual devices against a server: rehearsal and load test."),
    "study": (
        "federank.cli.study",
        "Studies: the papers' tables and figures, or your own, from one file each.",
    ),
    "serve": ("federank.cli.serve", "A federation in the world: a server for devices and browsers."),
    "helper": ("federank.cli.helper", "The second server of sums: opens seeds, adds masks up, reads no message."),
    "verify": ("federank.cli.verify", "Recompute every version of a federation of sums from what was published."),
    "admin": ("federank.cli.admin", "What an operator does to a running federation: versions, rollback, ban, export."),
    "demo": ("federank.cli.demo", "The whole story on a synthetic city, in about a minute."),
}
"""Each command's file and its one line of help, so that the list needs no import."""

EXTRAS = dict.fromkeys(("device", "fleet", "serve", "helper", "verify", "admin"), "service")
"""The extra that a command needs, if any. What only some of a command's flags need, the code behind them asks for."""


class CommandsOnDemand(click.Group):
    """A group whose commands live in files of their own, imported only when one is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands' names, in the order of a first day with the product."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name, from the file of this name."""
        if cmd_name not in COMMANDS:
            raise SettingError(unknown_name("command", cmd_name, COMMANDS))
        if cmd_name in EXTRAS:
            need(EXTRAS[cmd_name], f"federank {cmd_name}")
        command: click.Command = getattr(import_module(COMMANDS[cmd_name][0]), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, from `COMMANDS` alone."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


@click.command(cls=CommandsOnDemand, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="federank", message="federank %(version)s")
def federank() -> None:
    """FedeRank: a recommender that learns without collecting anyone's history.

    \b
    Example:
      federank data stats city
    """


def main() -> None:
    """Run one command; a mistake of the user's becomes one sentence and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that cannot show a letter shows a question mark
    try:
        federank(prog_name="federank", standalone_mode=False)
    except click.ClickException as mistake:
        mistake.show()
        sys.exit(2)
    except FedeRankError as mistake:
        click.echo(f"federank: {mistake}", err=True)
        sys.exit(2)
    except PermissionError as reason:
        click.echo(
            f"federank: This user may not use {reason.filename} ({reason.strerror}); give it access, or name another.",
            err=True,
        )
        sys.exit(2)
    except MemoryError:
        click.echo("federank: This needs more memory than there is; ask for fewer factors or less data.", err=True)
        sys.exit(2)
    except (KeyboardInterrupt, click.Abort):
        click.echo("federank: stopped.", err=True)
        sys.exit(130)
    except BrokenPipeError:
        # The reader of our output has gone (`| head`): nothing more to say, and nothing to flush at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
