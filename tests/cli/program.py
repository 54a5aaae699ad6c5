"""The whole program in this process: its words, its exit code and what it prints, without a second for each start."""

import io
from contextlib import redirect_stderr, redirect_stdout
from typing import NamedTuple

import pytest

from federank.cli import main


class Answer(NamedTuple):
    """How a program ended."""

    returncode: int
    stdout: str
    stderr: str


def program(*words: object) -> Answer:
    """What `federank WORDS` answers."""
    with (
        redirect_stdout(io.StringIO()) as out,
        redirect_stderr(io.StringIO()) as err,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr("sys.argv", ["federank", *map(str, words)])
        try:
            main()
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
    return Answer(code, out.getvalue(), err.getvalue())
