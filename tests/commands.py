"""Commands as they are typed: in this process where that is enough, else in one of their own."""

import subprocess
import sys
from pathlib import Path
from typing import IO

from click.testing import CliRunner, Result

from federank.cli import federank
from federank.errors import FedeRankError


def serve_words(*flags: object) -> list[str]:
    """The words of `federank serve` with these flags; `--method M` among them names the method.

    Uploads are plain where no helper is named.
    """
    words = [str(flag) for flag in flags]
    if not {"--helper", "--local-helper", "--plain"} & set(words):
        words.append("--plain")
    if "--method" not in words:
        return ["serve", *words]
    place = words.index("--method")
    return ["serve", words[place + 1], *words[:place], *words[place + 2 :]]


def started(*words: object, cwd: Path, stderr: IO[bytes] | int | None = None) -> subprocess.Popen[str]:
    """`federank WORDS` in a process of its own; what it prints can be read."""
    command = [sys.executable, "-m", "federank", *map(str, words)]
    return subprocess.Popen(command, cwd=cwd, stdout=subprocess.PIPE, stderr=stderr, text=True)


def run(*words: object) -> Result:
    """What came of a command."""
    return CliRunner().invoke(federank, [str(word) for word in words])


def succeeded(*words: object) -> Result:
    """What came of a command that must succeed."""
    result = run(*words)
    assert result.exit_code == 0, result.output + repr(result.exception)
    return result


def told(*words: object) -> str:
    """What a command prints that must succeed."""
    return succeeded(*words).stdout


def refused(*words: object) -> FedeRankError:
    """The error of a command that must be refused with a sentence; `main` makes exit code 2 of it."""
    result = run(*words)
    assert isinstance(result.exception, FedeRankError), result.output + repr(result.exception)
    return result.exception
