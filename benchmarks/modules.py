"""How many of the product's modules a command imports: `train frugal`, `audit fpl`, and a server that is ready.

    python benchmarks/modules.py [--names]

Each runs in a process of its own on the synthetic city. Fewer modules are faster to start and easier to follow.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile

COMMAND = """
from federank.cli import federank
try:
    federank({words!r}, standalone_mode=False)
finally:
    names = sorted(name for name in sys.modules if name.partition(".")[0] == "federank")
    print(json.dumps(names), file=sys.__stderr__)
"""
SERVER = """
from federank.data.loading import load
from federank.service.server.bootstrap import FederationSpec, open_store
from federank.service.server.http.app import public_app
from federank.service.server.logs import Log
from federank.service.server.service import open_service
from federank.service.server.settings import TrustSettings
open_store("sqlite:///store.sqlite", FederationSpec(data=lambda: load("city"), source="city", plain=True))
public_app(open_service("sqlite:///store.sqlite", TrustSettings(), Log(None)))
names = sorted(name for name in sys.modules if name.partition(".")[0] == "federank")
print(json.dumps(names), file=sys.__stderr__)
"""
PROGRAMS = {
    "train frugal": COMMAND.format(words=["train", "frugal", "--data", "city", "--out", "model", "--quiet"]),
    "audit fpl": COMMAND.format(words=["audit", "fpl", "--data", "city", "--epochs", "1", "--json"]),
    "serve": SERVER,
}


def modules_of(program: str) -> list[str]:
    """The modules that a program has imported when it ends."""
    with tempfile.TemporaryDirectory() as folder:
        ran = subprocess.run(
            [sys.executable, "-c", "import json, sys\n" + program],
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
        )
    names: list[str] = json.loads(ran.stderr.strip().splitlines()[-1])
    return names


def main() -> None:
    """Print a line of JSON per command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--names", action="store_true", help="list the modules")
    options = parser.parse_args()
    for command, program in PROGRAMS.items():
        names = modules_of(program)
        print(json.dumps({"command": command, "modules": len(names)} | ({"names": names} if options.names else {})))


if __name__ == "__main__":
    main()
