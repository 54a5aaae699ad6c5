"""The page's JavaScript under node, asked one thing after another: node starts once, not for every question."""

import json
import subprocess
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def conversing(node, program, *modules):
    """A function that asks a program of this folder (one that uses conversing.mjs), with modules of the page."""
    command = [node, Path(__file__).with_name(program), *(module.as_uri() for module in modules)]
    running = None

    def ask(question):
        nonlocal running
        if running is None or running.poll() is not None:
            pipe = subprocess.PIPE
            running = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, encoding="utf-8")
        running.stdin.write(json.dumps(question) + "\n")
        running.stdin.flush()
        answer = running.stdout.readline()
        assert answer, running.communicate()[1]
        return json.loads(answer)

    yield ask
    if running is not None:
        running.communicate()
