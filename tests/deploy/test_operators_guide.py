"""The operators' guides, typed: the commands of docs/helper.md and docs/operating.md, from two empty machines to a
federation with secure aggregation whose servers are killed.

What needs a machine of its own is left out: packages and users of the system, the proxy, and systemd, in whose place
this test runs the units' command lines. Paths of the system are folders of the test's, and `sudo -u NAME` is
PostgreSQL's user.
"""

import json
import os
import re
import shlex
import shutil
import signal
import ssl
import subprocess
import tempfile
import time
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
NOT_HERE = ("apt", "useradd", "systemctl", "journalctl")


class Machine:
    """A machine to be set up: folders in the place of the system's."""

    def __init__(self, folder: Path, programs: Path, ports: list[int], memory: Path, helper: str) -> None:
        self.folder, self.ports = folder, ports
        self.clone = Clone(folder / "federank")
        places = {"/opt/": folder / "opt", "/etc/": folder / "etc", "/var/lib/": folder / "var", "/run/": memory}
        self.instead = {path: f"{place}/" for path, place in places.items()}
        self.instead |= {"--port 8470": f"--port {ports[0]}", "0.0.0.0": "127.0.0.1", "https://helper.example": helper}
        for place in (
            "bin",
            "opt",
            "etc/systemd/system",
            "etc/prometheus",
            "etc/caddy",
            "var/federank",
            "var/federank-helper",
        ):
            (folder / place).mkdir(parents=True)
        for name, script in {"sudo": SUDO, **dict.fromkeys(NOT_HERE, "#!/bin/sh\n")}.items():
            (folder / "bin" / name).write_text(script)
            (folder / "bin" / name).chmod(0o755)
        (folder / "bin" / "federank").symlink_to(folder / "opt" / "federank" / "bin" / "federank")
        (folder / "bin" / "pip").symlink_to(folder / "opt" / "federank" / "bin" / "pip")
        self.clone.environment |= {
            "PATH": f"{folder / 'bin'}:{programs}:{os.environ['PATH']}",
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

    def command_of(self, unit: str) -> str:
        """The command line of an installed unit, with the variables of its environment file."""
        lines = dict(
            line.split("=", 1)
            for line in (self.folder / "etc" / "systemd" / "system" / unit).read_text().splitlines()
            if line.startswith(("ExecStart=", "EnvironmentFile="))
        )
        file = Path(self.adapted(lines["EnvironmentFile"].removeprefix("-")))
        command = lines["ExecStart"]
        for name, value in (line.split("=", 1) for line in file.read_text().split()):
            command = command.replace(f"${{{name}}}", shlex.quote(value))
        return command

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
        with urllib.request.urlopen(f"{self.address}/health", context=context, timeout=600) as answer:
            return answer.status == 200

    def rounds(self) -> list[int]:
        """The rounds of a leader, as soon as there is one."""
        for _ in range(600):
            with urllib.request.urlopen(f"{self.address}/api/v1/sums/rounds", timeout=600) as answer:
                rounds = json.loads(answer.read())["rounds"]
            if rounds:
                return [one["round"] for one in rounds]
            time.sleep(0.1)
        raise AssertionError("no round was opened")

    def end(self, number: signal.Signals) -> int:
        """End it and its workers, as systemd does with a unit's processes."""
        workers = psutil.Process(self.process.pid).children(recursive=True)
        self.process.send_signal(number)
        self.process.communicate()
        _, alive = psutil.wait_procs(workers, timeout=600)
        assert not alive
        return self.process.returncode


@pytest.fixture
def database(postgresql):
    server = PostgreSQL(postgresql, owner="postgres")
    server.start()
    yield server
    server.remove()


@pytest.fixture
def memory():
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield Path(folder)


def machine_blocks(page):
    return [block.text for block in blocks(ROOT / "docs" / page) if block.text.startswith(MACHINE)]


def test_the_guides_commands_set_both_servers_up(database, postgresql, tmp_path, memory):
    ports = free_ports(4)
    origin = f"http://127.0.0.1:{ports[2]}"
    helping = Machine(tmp_path / "helper", postgresql, ports[2:], memory, origin)
    leading = Machine(tmp_path / "leader", postgresql, ports[:2], memory, origin)
    leading.clone.environment |= {"PGHOST": str(database.folder), "PGPORT": str(database.port)}
    install_helper, leaders, backup = machine_blocks("helper.md")
    install_leader, unit, second = machine_blocks("operating.md")

    # The helper is installed, and its unit's command line is run.
    helping.type(install_helper)
    run_helper = helping.command_of("federank-helper.service")
    helper = helping.begin(run_helper)
    assert helper.is_ready()

    # The leader is installed; it ends until the helper's operator has allowed its key.
    setting_up, _, establishing = install_leader.strip().rpartition("\n")
    leading.type(setting_up)
    refused = subprocess.run(
        ["sh", "-euc", leading.adapted(establishing)],
        cwd=leading.clone.folder,
        env=leading.clone.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert refused.returncode == 2, refused.stderr
    [fingerprint] = re.findall(r"helper allow '([^']*)'", refused.stderr)
    helping.type(leaders.replace("FINGERPRINT", fingerprint))
    server = leading.begin(establishing)
    assert server.is_ready()
    assert len(server.told["admin token"].split()[0]) > 30
    assert server.end(signal.SIGINT) == 0

    # The units' command lines go on with the stores, also after a crash.
    leading.type(unit)
    leading.clone.environment["PGUSER"] = "federank"
    run_leader = leading.command_of("federank.service")
    for end in (signal.SIGKILL, signal.SIGTERM):
        server = leading.begin(run_leader)
        assert server.is_ready()
        assert "admin token" not in server.told
        assert server.rounds() == [0], "the same round is open: the helper has kept its key"
        server.end(end)
        helper.end(end)
        helper = helping.begin(run_helper)

    # A helper that is restored from its backup is the same helper.
    helping.type(backup)
    known = helper.told["fingerprint"]
    helper.end(signal.SIGTERM)
    helping.type("cd /var/lib/federank-helper && rm -f helper.db* && cp copy.db helper.db")
    helper = helping.begin(run_helper)
    assert helper.is_ready()
    assert helper.told["fingerprint"] == known
    assert helper.end(signal.SIGTERM) == 0

    # Another way for the leader: a password, TLS and two workers.
    leading.clone.environment["PGUSER"] = "postgres"
    leading.type("dropdb federank && dropuser federank")
    setting_up, serving = re.fullmatch(r"(.*?)^(federank serve .*)", second, re.MULTILINE | re.DOTALL).groups()
    leading.type(setting_up, input="secret\nsecret\n")
    server = leading.begin(serving.strip(), scheme="https")
    assert server.is_ready()
    assert server.end(signal.SIGINT) == 0
