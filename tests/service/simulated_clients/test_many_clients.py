"""A rehearsal with many clients works with the defaults of both commands."""

import json

import pytest
from tests.commands import started
from tests.rated_worlds import two_opinions

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


def ratings(folder):
    """Ratings of more users than the fleet has clients."""
    data, path = two_opinions(600, 80, 8), folder / "ratings.csv"
    rows = zip(data.users.tolist(), data.items.tolist(), data.ratings.tolist(), strict=True)
    path.write_text("user,item,rating\n" + "".join(f"{user},{item},{rating:g}\n" for user, item, rating in rows))
    return str(path)


@pytest.mark.slow
def test_500_clients_rehearse(tmp_path):
    path = ratings(tmp_path)
    with started(*_with(SERVE, {DATA: path}), "--port", "0", "--admin-port", "0", "--quiet", cwd=tmp_path) as server:
        try:
            address = next(line.split()[1] for line in server.stdout if line.startswith("federation"))
            with started(*_with(FLEET, {DATA: path, ADDRESS: address}), "--json", cwd=tmp_path) as played:
                report = json.loads(played.stdout.read())
            assert played.returncode == 0
        finally:
            server.terminate()
    assert (report["devices"], report["rounds"]) == (500, 20)


def _with(words, others):
    return [others.get(word, word) for word in words]
