"""`--help` of every command: at most two screens, with an example whose flags exist."""

import click
import pytest
from tests.commands import succeeded
from tests.test_docs import unknown_flags

from federank.cli import federank

SCREENS = 48


def commands(command, path=()):
    """The words of every command below this one, and its own."""
    yield path
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=path[-1] if path else "federank")
        for name in command.list_commands(context):
            yield from commands(command.get_command(context, name), (*path, name))


@pytest.mark.parametrize("words", list(commands(federank)), ids=" ".join)
def test_help_fits_two_screens_and_its_examples_exist(words):
    lines = succeeded(*words, "--help").output.splitlines()
    assert len(lines) <= SCREENS
    examples = [line.strip() for line in lines if line.startswith("    federank ")]
    assert {example: flags for example in examples if (flags := unknown_flags(example))} == {}
