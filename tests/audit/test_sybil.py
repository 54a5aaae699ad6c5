"""Sybil clients: with one honest client without noise everything is read; with noise, or among many, little is."""

import json

import pytest
from tests.cli.program import program

from federank.audit.poisoning import HONEST, OBSERVERS, SybilSettings, rehearse_sybils
from federank.data.synthetic import city
from federank.errors import SettingError


@pytest.fixture(scope="module")
def rows():
    data = city(200, checkins=4000, seed=1)
    result = rehearse_sybils(data, SybilSettings(victims=60))
    return {(row.honest, row.observer, row.epsilon is not None): row for row in result}


def test_every_number_of_honest_clients_with_and_without_noise(rows):
    assert set(rows) == {(honest, observer, noisy) for honest in HONEST for observer in OBSERVERS for noisy in (0, 1)}
    assert {(row.honest, row.sybils) for row in rows.values()} == {(1, 99), (5, 95), (20, 80), (50, 50)}


@pytest.mark.parametrize("observer", OBSERVERS)
def test_without_noise_the_only_honest_client_is_read_completely(rows, observer):
    assert (rows[1, observer, False].precision, rows[1, observer, False].auc) == (1, 1)


@pytest.mark.parametrize("observer", OBSERVERS)
def test_less_is_read_the_more_honest_clients_there_are(rows, observer):
    aucs = [rows[honest, observer, False].auc for honest in HONEST]
    assert aucs == sorted(aucs, reverse=True)
    assert rows[50, observer, False].precision < 0.35


@pytest.mark.parametrize("observer", OBSERVERS)
def test_with_noise_even_the_only_honest_client_is_not_read(rows, observer):
    row = rows[1, observer, True]
    assert row.precision < 0.15
    assert row.auc < row.popularity_auc


def test_a_cohort_needs_room_for_sybils_and_the_data_enough_users():
    with pytest.raises(SettingError):
        SybilSettings(cohort=50)
    with pytest.raises(SettingError):
        rehearse_sybils(city(40, checkins=400, seed=1), SybilSettings())


def test_the_command_reports_every_row_as_json(tmp_path):
    users = [f"{user},{item}\n" for user in range(60) for item in range(user % 7, 90, 3)]
    (tmp_path / "shop.csv").write_text("user,item\n" + "".join(users))
    answer = program("audit", "sybil", "--data", tmp_path / "shop.csv", "--victims", 3, "--json")
    assert answer.returncode == 0, answer.stderr
    found = json.loads(answer.stdout)
    assert (found["victims"], len(found["rows"])) == (3, 2 * len(OBSERVERS) * len(HONEST))
    assert found["rows"][0]["precision"] == 1
