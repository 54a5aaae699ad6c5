"""Programs that tests start, each a process of its own, forked from one that has everything imported already.

An interpreter needs about two seconds of a processor's time to import what a server is made of, and the tests start
hundreds of servers. So one process in a session imports it all, once (preloaded.py), and a server is a fork of that. It
is asked for as with `subprocess.Popen`, and has as much of its manners as tests use.
"""

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

_FORKS = get_context("forkserver")
_FORKS.set_forkserver_preload(["tests.preloaded"])


class Forked:
    """A function in a process of its own. What it prints can be read here; its complaints too, or go to a file."""

    def __init__(self, function, *arguments, cwd=None, stderr=None):
        self.stdout, printing = _pipe()
        self.stderr = None
        if stderr == subprocess.PIPE:
            self.stderr, complaining = _pipe()
        else:
            complaining = Connection(os.dup(2 if stderr is None else stderr.fileno()), readable=False)
        whole = (str(cwd or Path.cwd()), dict(os.environ), printing, complaining, function, arguments)
        self._process = _FORKS.Process(target=_run, args=whole, daemon=True)
        self._process.start()
        self.pid = self._process.pid
        printing.close()
        complaining.close()

    @property
    def returncode(self):
        return self._process.exitcode

    def poll(self):
        return self._process.exitcode

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self):
        self.send_signal(signal.SIGTERM)

    def wait(self, timeout=None):
        self._process.join(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired("a forked process", timeout)
        return self.returncode

    def communicate(self, timeout=None):
        """Wait for the end; what was printed and complained since."""
        streams = [stream for stream in (self.stdout, self.stderr) if stream is not None]
        with ThreadPoolExecutor(2) as readers:
            read = list(readers.map(lambda stream: stream.read(), streams))
        self.wait(timeout)
        for stream in streams:
            stream.close()
        return read[0], read[1] if self.stderr else None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.communicate()


def typed(*words, cwd=None, stderr=None):
    """`federank WORDS` in a process of its own."""
    return Forked(_command, list(map(str, words)), cwd=cwd, stderr=stderr)


def _command(words):
    from federank.cli import main

    sys.argv = ["federank", *words]
    return main()


def _pipe():
    """An end to read text from, and one for the process."""
    reading, writing = _FORKS.Pipe(duplex=False)
    text = os.fdopen(os.dup(reading.fileno()), encoding="utf-8")
    reading.close()
    return text, writing


def _run(folder, environment, printing, complaining, function, arguments):
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for number, connection in ((1, printing), (2, complaining)):
        os.dup2(connection.fileno(), number)
        connection.close()
    # As a new interpreter would make them: those of before the fork were made for other files.
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)
    sys.exit(function(*arguments))
