"""The command line: `federank COMMAND ...`, one file per command.

Commands are imported when they are used, so that `federank --help` is fast. Results go to stdout, progress and errors
to stderr. An error that the user can fix is a message and exit code 2.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from io import TextIOWrapper

import click

from federank import __version__
from federank.checks import unknown_name
from federank.errors import FedeRankError, SettingError
from federank.extras import need

COMMANDS = {
    "data": "Data sets: list, download, describe, split; a synthetic city.",
    "train": "Train a method and store the model in a folder.",
    "evaluate": "Metrics of a model, or of recommendations in a file; model cards.",
    "compare": "Significance tests between models, paired over users.",
    "recommend": "Recommendations and predicted ratings of a trained model.",
    "audit": "Attacks on a federation; forecasts and verification of its guarantees.",
    "bench": "Public benchmarks: one method beside the published figures.",
    "study": "Studies: the papers' tables and figures, or your own, from one file each.",
    "serve": "The server of a federation, for clients and browsers.",
    "helper": "The second server of secure aggregation.",
    "client": "One user's client: take part, ledger, recommend, policy; simulated clients.",
    "admin": "An operator's commands: versions, rollback, ban, export.",
    "demo": "The complete story on a synthetic city, in about a minute.",
}
"""Each command's line of help. Its file has its name."""

SECTIONS = {
    "Research": ("data", "train", "evaluate", "compare", "recommend", "audit", "study", "bench"),
    "Service": ("serve", "helper", "client", "admin"),
    "Start here": ("demo",),
}

EXTRAS = dict.fromkeys(SECTIONS["Service"], "service")
"""The extra that a command needs, if any. The code behind single flags checks its own."""


class CommandsOnDemand(click.Group):
    """A group whose commands are imported only when one is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands' names, by section."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name, from the file of this name."""
        if cmd_name not in COMMANDS:
            raise SettingError(unknown_name("command", cmd_name, COMMANDS))
        if cmd_name in EXTRAS:
            need(EXTRAS[cmd_name], f"federank {cmd_name}")
        command: click.Command = getattr(import_module(f"federank.cli.{cmd_name}"), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, without importing one."""
        for title, names in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name, COMMANDS[name]) for name in names])


@click.command(cls=CommandsOnDemand, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="federank %(version)s")
def federank() -> None:
    """FedeRank: a recommender that learns without collecting anyone's history.

    \b
    Example:
      federank data stats city
    """


def main() -> None:
    """Run one command; a user's mistake becomes an error message and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without a letter shows a question mark
    try:
        federank(prog_name="federank", standalone_mode=False)
    except click.ClickException as mistake:
        mistake.show()
        sys.exit(2)
    except FedeRankError as mistake:
        _fail(str(mistake))
    except PermissionError as reason:
        _fail(f"This user may not use {reason.filename} ({reason.strerror}); give it access, or name another.")
    except MemoryError:
        _fail("This needs more memory than there is; use fewer factors or less data.")
    except (KeyboardInterrupt, click.Abort):
        _fail("stopped.", 130)
    except BrokenPipeError:
        # The reader of our output has ended (`| head`), and nothing can be flushed at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)


def _fail(text: str, code: int = 2) -> None:
    click.echo(f"federank: {text}", err=True)
    sys.exit(code)
