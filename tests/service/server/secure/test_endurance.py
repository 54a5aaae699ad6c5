"""The program that plays a whole federation of sums while both servers are killed, in a small form."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[4] / "benchmarks" / "sums_endurance.py"


@pytest.mark.slow
def test_federation_over_tls_survives_kills_of_both_servers():
    few = {"fleet": 6, "devices": 2, "browsers": 0, "rounds": 2, "kills": 1, "items": 150, "deadline": 30}
    flags = [part for name, value in few.items() for part in (f"--{name}", str(value))]
    command = [sys.executable, str(PROGRAM), "--json", "--most-seconds", "240", "--store", "sqlite", *flags]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert (found["versions"], found["messages"]) == (2, 2 * 8)
    assert (found["leader_kills"], found["helper_kills"], found["rounds_abandoned"]) == (1, 1, 0)
