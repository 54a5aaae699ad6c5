"""A rehearsal with many clients works with the defaults of both commands."""

import json

import pytest
from tests.commands import started
from tests.rated_worlds import two_opinions
from tests.service.simulated_clients.worlds import written

DATA, ADDRESS = "ml-100k", "http://127.0.0.1:8470"
SERVE = ("serve", "pmf", "--plain", "--data", DATA, "--rehearsal", "--store", "sqlite:///rehearsal.sqlite")
FLEET = (
    "client",
    "simulate",
    "--server",
    ADDRESS,
    "--data",
    DATA,
    "--method",
    "pmf",
    "--users",
    "500",
    "--rounds",
    "20",
)


@pytest.mark.slow
def test_500_clients_rehearse(tmp_path):
    path = str(written(two_opinions(600, 80, 8), tmp_path))  # of more users than there are simulated clients
    with started(*_with(SERVE, {DATA: path}), "--port", "0", "--admin-port", "0", "--quiet", cwd=tmp_path) as server:
        try:
            address = next(line.split()[1] for line in server.stdout if line.startswith("federation"))
            with started(*_with(FLEET, {DATA: path, ADDRESS: address}), "--json", cwd=tmp_path) as played:
                report = json.loads(played.stdout.read())
            assert played.returncode == 0
        finally:
            server.terminate()
    assert (report["clients"], report["rounds"]) == (500, 20)


def _with(words, others):
    return [others.get(word, word) for word in words]
