"""`federank client simulate`: mistakes that it names before it plays."""

import pytest
from tests.commands import refused
from tests.service.client.worlds import scripted_federation


def complaint(*words):
    return str(refused("client", "simulate", *words))


@pytest.mark.parametrize(
    ("words", "needed"),
    [
        (("--rounds", 0), "--rounds"),
        (("--seconds", -1), "--seconds"),
        (("--rounds", 1, "--vanish", 2), "--vanish"),
        (("--rounds", 1, "--users", 0), "--users"),
        (("--rounds", 1, "--processes", 0), "--processes"),
    ],
)
def test_what_cannot_be_played_is_refused(words, needed):
    assert needed in complaint("--server", "http://127.0.0.1:1", *words)


def test_users_of_another_catalogue_cannot_be_played(tmp_path):
    path = tmp_path / "others.csv"
    path.write_text("user,item\n1,a\n1,b\n2,c\n")
    with scripted_federation() as federation:
        told = complaint("--server", federation.address, "--data", path, "--rounds", 1)
    assert "the same data" in told


def test_more_clients_than_users_are_refused(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("user,item\n1,101\n1,102\n2,103\n")
    with scripted_federation() as federation:
        assert "2 people can take part" in complaint(
            "--server", federation.address, "--data", path, "--rounds", 1, "--users", 3
        )
