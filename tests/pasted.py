"""A terminal for what the documentation says to type: its blocks, one after the other, in a folder of their own.

Commands run as they stand, in a shell that stops at the first failure. Only this differs from a user's machine:

- `federank` is this Python's, and a server gets a terminal of its own: the next command comes when it listens;
- a helper's operator allows the leader's key that `serve` names, and `serve` is typed again;
- ports and host names of the documentation become free ports of this machine, with a certificate for it;
- `make` and `pip` only say what they would do: tests/packaging/ carries it out in a clone.
"""

import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from federank.service.server.http.listening import self_signed

ROOT = Path(__file__).parents[1]
SYSTEM = ("apt", "sudo", "useradd", "systemctl", "install", "cp")

FEDERANK = """#!/bin/sh
listen() {
    name=$1 sign=$2
    shift 2
    if [ -f "$TERMINAL/$name.pid" ]; then
        kill "$(cat "$TERMINAL/$name.pid")"
        while kill -0 "$(cat "$TERMINAL/$name.pid")" 2>/dev/null; do sleep 0.1; done
    fi
    "$PYTHON" -m federank "$@" > "$TERMINAL/$name.log" 2>&1 &
    echo $! > "$TERMINAL/$name.pid"
    until grep -q "$sign" "$TERMINAL/$name.log"; do
        kill -0 $! 2>/dev/null || { cat "$TERMINAL/$name.log"; rm "$TERMINAL/$name.pid"; return 1; }
        sleep 0.1
    done
    cat "$TERMINAL/$name.log"
}
case "$*" in
*\\ --help) exec "$PYTHON" -m federank "$@" ;;
serve*)
    set -- "$@" --port "$LEADER_PORT" --admin-port "$OPERATOR_PORT"
    listen leader ^store "$@" || {
        key=$(sed -n "s/.*helper allow '\\([^']*\\)'.*/\\1/p" "$TERMINAL/leader.log" | head -n 1)
        [ -n "$key" ] && "$PYTHON" -m federank helper allow "$key" && listen leader ^store "$@"
    } ;;
helper\\ allow*) exec "$PYTHON" -m federank "$@" ;;
helper*) listen helper ^store "$@" --port "$HELPER_PORT" ;;
demo\\ --serve*) listen leader ^Open "$@" --port "$LEADER_PORT" ;;
*) exec "$PYTHON" -m federank "$@" ;;
esac
"""
PIP = """#!/bin/sh
[ "$1" = install ] && shift
case "$1" in .\\[*) set -- "federank${1#.}" ;; esac  # the package of the clone that a page speaks of
told=$("$PYTHON" -m pip --disable-pip-version-check install --dry-run --no-index "$@" 2>&1)
status=$?
echo "$told"
case "$told" in *WARNING*) exit 1 ;; esac
exit $status
"""
MAKE = """#!/bin/sh
exec "$MAKE_PROGRAM" -C "$ROOT" --dry-run "$@"
"""


class Block(NamedTuple):
    """A fenced block of a page."""

    kind: str
    text: str


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in their order."""
    text = page.read_text(encoding="utf-8")
    return [Block(*parts) for parts in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)]


class Terminal:
    """A folder in which blocks are pasted; servers that they start end with it."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.folder, self._own = folder / "work", folder / "terminal"
        for place in (self.folder, self._own / "bin"):
            place.mkdir(parents=True)
        for name, script in (("federank", FEDERANK), ("pip", PIP), ("make", MAKE)):
            (self._own / "bin" / name).write_text(script)
            (self._own / "bin" / name).chmod(0o755)
        ports = dict(zip(("LEADER_PORT", "OPERATOR_PORT", "HELPER_PORT"), map(str, free_ports(3)), strict=True))
        self._instead = {
            "helper.example": "localhost",
            "leader.example": "localhost",
            "0.0.0.0": "127.0.0.1",
            **dict(zip(("8470", "8471", "8480"), ports.values(), strict=True)),
        }
        certificate, key = self_signed(self._own, ("localhost", "127.0.0.1"))
        for name, content in (("cert.pem", certificate), ("key.pem", key)):
            shutil.copy(content, self.folder / name)
        lines = [f"{item},Film {item},Drama|Comedy" for item in range(300)]
        for name in ("catalogue.csv", "films.csv"):
            (self.folder / name).write_text("\n".join(["item_id,title,categories", *lines]))
        self.environment = {
            **os.environ,
            **ports,
            "PATH": f"{self._own / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "PYTHON": sys.executable,
            "ROOT": str(ROOT),
            "MAKE_PROGRAM": shutil.which("make") or "make",
            "TERMINAL": str(self._own),
            "SSL_CERT_FILE": str(certificate),  # as if an authority that everyone knows had signed it
            **environment,
        }

    def paste(self, block: Block, *without: str) -> str:
        """Run a block, but for lines that begin like `without`; what it printed."""
        if block.kind == "python":
            return self.run(sys.executable, "-c", block.text)
        lines = [line for line in block.text.splitlines() if not line.startswith(without or ("\0",))]
        assert not [line for line in lines if line.startswith(SYSTEM)], "this would change the machine"
        return self.run("sh", "-euc", "\n".join(map(self.adapted, lines)))

    def run(self, *words: str) -> str:
        """Run a program that must succeed."""
        # What servers of a block print goes to files, so that this ends with the block itself.
        done = subprocess.run(
            words,
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{words[-1]}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def adapted(self, line: str) -> str:
        """A line with this machine's ports and names."""
        for name, here in self._instead.items():
            line = re.sub(rf"(?<![\w.]){re.escape(name)}(?![\w.])", here, line)
        return line

    def close(self) -> None:
        """End the servers."""
        for file in self._own.glob("*.pid"):
            process = int(file.read_text())
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGTERM)
                for _ in range(300):
                    os.kill(process, 0)
                    time.sleep(0.1)
                os.kill(process, signal.SIGKILL)

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_HANDED_OUT: set[int] = set()


def free_ports(number: int) -> list[int]:
    """Ports between those of Ray and those that the system hands out by itself: a server that is away keeps its port.

    No port is handed out twice, and each of the processes that run tests has ports of its own.
    """
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) % 16
    found: list[int] = []
    while len(found) < number:
        port = 20_000 + 16 * random.SystemRandom().randrange(750) + worker
        if port not in _HANDED_OUT:
            with socket.socket() as probe, suppress(OSError):
                probe.bind(("127.0.0.1", port))
                found.append(port)
                _HANDED_OUT.add(port)
    return found
