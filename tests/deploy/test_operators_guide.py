"""The operator's guide, typed: docs/operating.md's own commands, from an empty machine to a server that is killed.

What needs a machine of its own is left out: packages and users of the system, and systemd, in whose place this test
runs the unit's command line. Paths of the system are folders of the test's, and `sudo -u NAME` is PostgreSQL's user.
"""

import os
import re
import shlex
import shutil
import signal
import ssl
import subprocess
import urllib.request
from pathlib import Path

import psutil
import pytest
from tests.packaging.environments import ROOT, Clone
from tests.pasted import blocks, free_ports
from tests.service.postgres import PostgreSQL
from tests.test_docs import MACHINE

from federank.service.server.http.listening import self_signed

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

SUDO = """#!/bin/sh
export PGUSER="$2"
shift 2
exec "$@"
"""
NOT_HERE = ("apt", "useradd", "systemctl")


class Machine:
    """A machine to be set up: folders in the place of the system's, and a PostgreSQL of its own."""

    def __init__(self, folder: Path, database: PostgreSQL, programs: Path) -> None:
        self.clone = Clone(folder / "federank")
        self.ports = free_ports(2)
        places = {"/opt/": folder / "opt", "/etc/": folder / "etc", "/var/lib/": folder / "var"}
        self.instead = {path: f"{place}/" for path, place in places.items()}
        self.instead |= {"--port 8470": f"--port {self.ports[0]}", "0.0.0.0": "127.0.0.1"}
        for place in ("bin", "opt", "etc/systemd/system", "etc/prometheus"):
            (folder / place).mkdir(parents=True)
        for name, script in {"sudo": SUDO, **dict.fromkeys(NOT_HERE, "#!/bin/sh\n")}.items():
            (folder / "bin" / name).write_text(script)
            (folder / "bin" / name).chmod(0o755)
        (folder / "bin" / "federank").symlink_to(folder / "opt" / "federank" / "bin" / "federank")
        (folder / "bin" / "pip").symlink_to(folder / "opt" / "federank" / "bin" / "pip")
        self.clone.environment |= {
            "PATH": f"{folder / 'bin'}:{programs}:{os.environ['PATH']}",
            "PGHOST": str(database.folder),
            "PGPORT": str(database.port),
            "HOME": "/dev/null",  # a service's user may have no home
        }
        items = [f"{item},Film {item}" for item in range(300)]
        (self.clone.folder / "catalogue.csv").write_text("\n".join(["item_id,title", *items]))
        certificate, key = self_signed(folder, ("localhost", "127.0.0.1"))
        shutil.copy(certificate, self.clone.folder / "fullchain.pem")
        shutil.copy(key, self.clone.folder / "privkey.pem")
        self.trusted = ssl.create_default_context(cafile=certificate)

    def adapted(self, text: str) -> str:
        for theirs, ours in self.instead.items():
            text = text.replace(theirs, ours)
        return text

    def type(self, text: str, **options: object) -> None:
        """Type commands that end."""
        self.clone.run("sh", "-euc", self.adapted(text), **options)

    def begin(self, line: str, scheme: str = "http") -> "Running":
        """Type a command that serves, and wait until it is ready."""
        words = f"exec {self.adapted(line)} --port {self.ports[0]} --admin-port {self.ports[1]}"
        process = subprocess.Popen(
            ["sh", "-euc", words], cwd=self.clone.folder, env=self.clone.environment, stdout=subprocess.PIPE, text=True
        )
        return Running(process, f"{scheme}://127.0.0.1:{self.ports[0]}", self.trusted)


class Running:
    """A server of the machine's."""

    def __init__(self, process: subprocess.Popen[str], address: str, trusted: ssl.SSLContext) -> None:
        self.process, self.address, self.trusted = process, address, trusted
        self.told = dict[str, str]()
        while "store" not in self.told:
            line = process.stdout.readline()
            assert line, f"the server has ended with {process.wait()}"
            name, _, value = line.partition("  ")
            self.told[name] = value.strip()

    def is_ready(self) -> bool:
        context = self.trusted if self.address.startswith("https") else None
        with urllib.request.urlopen(f"{self.address}/health", context=context, timeout=60) as answer:
            return answer.status == 200

    def end(self, number: signal.Signals) -> int:
        """End it and its workers, as systemd does with a unit's processes."""
        workers = psutil.Process(self.process.pid).children(recursive=True)
        self.process.send_signal(number)
        self.process.communicate()
        _, alive = psutil.wait_procs(workers, timeout=60)
        assert not alive
        return self.process.returncode


@pytest.fixture
def database(postgresql):
    server = PostgreSQL(postgresql, owner="postgres")
    server.start()
    yield server
    server.remove()


def test_the_guide_s_commands_set_a_server_up(database, postgresql, tmp_path):
    machine = Machine(tmp_path, database, postgresql)
    guide = [block.text for block in blocks(ROOT / "docs" / "operating.md")]
    first, unit, second = (text for text in guide if text.startswith(MACHINE))

    # The first block: everything is installed, and its last line establishes the federation.
    setting_up, _, establishing = first.strip().rpartition("\n")
    machine.type(setting_up)
    server = machine.begin(establishing)
    assert server.is_ready()
    assert len(server.told["admin token"].split()[0]) > 30
    assert server.end(signal.SIGINT) == 0

    # The unit's command line goes on with the store, also after a crash.
    machine.type(unit)
    unit_file = (tmp_path / "etc" / "systemd" / "system" / "federank.service").read_text()
    [command] = re.findall(r"^ExecStart=(.*)$", unit_file, re.MULTILINE)
    environment = (tmp_path / "etc" / "federank" / "environment").read_text()
    name, _, store = environment.strip().partition("=")
    machine.clone.environment["PGUSER"] = "federank"
    for end in (signal.SIGKILL, signal.SIGTERM):
        server = machine.begin(command.replace(f"${{{name}}}", shlex.quote(store)))
        assert server.is_ready()
        assert "admin token" not in server.told
        server.end(end)

    # The second way: a password, TLS and two workers.
    machine.clone.environment["PGUSER"] = "postgres"
    machine.type("dropdb federank && dropuser federank")
    setting_up, serving = re.fullmatch(r"(.*?)^(federank serve .*)", second, re.MULTILINE | re.DOTALL).groups()
    machine.type(setting_up, input="secret\nsecret\n")
    server = machine.begin(serving.strip(), scheme="https")
    assert server.is_ready()
    assert server.end(signal.SIGINT) == 0
