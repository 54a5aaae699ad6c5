"""What enrolling costs: invitations, and caps per address and range of addresses."""

import pytest
from tests.service.federations import PATIENT, serving, stored

from federank.service.server.http.limits import TokenBuckets

ADMIN = "/admin/api/v1"


async def invitations(running, count):
    answer = await running.admin.post(f"{ADMIN}/invitations", json={"count": count}, headers=running.operator)
    assert answer.status_code == 200, answer.text
    return answer.json()["invitations"]


async def test_where_only_the_invited_enrol_an_invitation_lets_one_client_in(store):
    async with serving(store, PATIENT, {"invited_only": True}) as running:
        first, second = await invitations(running, 2)
        answers = []
        for told in ({}, {"invitation": "guessed"}, {"invitation": first}, {"invitation": first}, {"invitation": 7}):
            answer = await running.client.post("/api/v1/devices", json=told)
            answers.append(answer.status_code)
        assert answers == [403, 403, 201, 403, 403]
        assert answer.json()["error"] == "not-invited"
        assert (await running.client.post("/api/v1/devices", json={"invitation": second})).status_code == 201
        assert running.service.latest is not None
        assert stored(store, "SELECT COUNT(*) FROM invites") == [(0,)]
        log = (await running.admin.get(f"{ADMIN}/log", headers=running.operator)).json()["actions"]
        assert (log[-1]["action"], log[-1]["count"]) == ("invite", 2)
        assert first not in str(log)


async def test_only_the_operator_invites_and_a_sensible_number(sqlite_store):
    async with serving(sqlite_store) as running:
        assert (await running.admin.post(f"{ADMIN}/invitations", json={"count": 1})).status_code == 401
        for count in (0, 10_001, "3", True):
            answer = await running.admin.post(f"{ADMIN}/invitations", json={"count": count}, headers=running.operator)
            assert answer.status_code == 422


async def test_a_range_of_addresses_enrols_no_more_than_its_share(sqlite_store):
    async with serving(sqlite_store) as running:
        running.service.range_limit = TokenBuckets(0.001, least_burst=3.0)
        answers = [(await running.client.post("/api/v1/devices", json={})).status_code for _ in range(4)]
        assert answers == [201, 201, 201, 429]


def test_a_client_brings_its_invitation():
    from tests.service.client.worlds import scripted_federation

    from federank.service.client.federation import register
    from federank.service.client.http import Client

    bodies = []
    with scripted_federation() as federation:
        usual = federation.answer
        federation.answer = lambda method, path, body: bodies.append(body) or usual(method, path, body)
        for invitation in (None, "code"):
            with Client(federation.address, invitation=invitation) as client:
                assert register(client)[0] == "d1"
    assert bodies == [b"{}", b'{"invitation": "code"}']


@pytest.mark.parametrize("address", ["203.0.113.9", "2001:db8::1"])
def test_without_limits_no_client_is_counted(address):
    assert TokenBuckets(0.0).take(address) == 0.0
