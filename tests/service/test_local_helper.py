"""A helper on the leader's own machine ends with the leader."""

import subprocess
import sys
import tempfile

import psutil

from federank.service.local_helper import MEMORY

LEADER = """
import sys, time
from pathlib import Path
from federank.service.local_helper import running_helper
with running_helper(Path(sys.argv[1]), keys=sys.argv[2]) as address:
    print(address, flush=True)
    time.sleep(600)
"""


def test_sigterm_before_the_leader_serves_ends_its_helper_too(tmp_path):
    keys = tempfile.TemporaryDirectory(dir=MEMORY)
    words = [sys.executable, "-c", LEADER, str(tmp_path / "helper.sqlite"), keys.name]
    with keys, subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as leader:
        assert leader.stdout.readline().startswith("http://")
        [helper] = psutil.Process(leader.pid).children()
        leader.terminate()
        assert leader.wait(60) == 143
    assert not helper.is_running()
