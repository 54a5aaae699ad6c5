"""The wheel in an empty environment: what it says it needs is all that it needs."""

import re
import subprocess
import urllib.request

import pytest
from tests.packaging.environments import install, new_environment, surroundings

from federank import __version__


@pytest.mark.slow
def test_the_wheel_brings_all_it_needs(wheel, tmp_path):
    python = new_environment(tmp_path / "environment")
    install(python, f"{wheel}[service]")
    command = python.parent / "federank"
    user = {"cwd": tmp_path, "env": surroundings(XDG_CACHE_HOME=str(tmp_path / "cache")), "text": True}

    def run(*arguments):
        done = subprocess.run([command, *arguments], capture_output=True, check=False, **user)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert run("--version") == f"federank {__version__}\n"
    assert "federank-table2" in run("study", "list")
    assert "Open city/report.html" in run("demo", "--out", "city")
    assert (tmp_path / "city" / "report.html").stat().st_size > 10_000

    serve = [command, "serve", "--plain", "--data", "city", "--port", "0", "--admin-port", "0"]
    with subprocess.Popen(serve, stdout=subprocess.PIPE, **user) as server:
        try:
            told = next(line for line in server.stdout if line.startswith("federation"))
            [address] = re.findall(r"http://\S+", told)
            with urllib.request.urlopen(f"{address}/health") as answer:
                assert answer.status == 200
        finally:
            server.terminate()
            server.stdout.read()
    assert server.returncode == 0
