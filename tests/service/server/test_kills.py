"""`kill -9` under load loses nothing and applies nothing twice, also between rollbacks and bans of an operator."""

import random
from contextlib import closing

import httpx
import pytest
from tests.service.federations import assert_recomputed, establish_small, newest, opened, stored
from tests.service.server.killing import Forked, Persistent, play_between_kills

from federank.service.server.store.writer import all_actions, is_unbroken

DEVICES = 6


class Operator:
    """An operator who rolls back and bans while the server is killed."""

    def __init__(self, address, token, devices):
        headers = {"Authorization": f"Bearer {token}"}
        self._http = httpx.Client(base_url=f"{address}/admin/api/v1", headers=headers, timeout=5)
        self._chance, self._devices = random.Random(11), devices

    def act(self, number):
        """One action; a server that is killed meanwhile may have done it or not, and its log says which."""
        try:
            if number % 3 == 1:
                kept = self._http.get("/versions").json()["versions"]
                self._http.post("/rollback", json={"version": self._chance.choice(kept)["version"]})
            elif number in (6, 12):
                self._http.post("/ban", json={"client": self._devices[number // 6 - 1].name})
        except (httpx.TransportError, KeyError):
            pass

    def close(self):
        self._http.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "kills", "has_operator"), [("sqlite", 25, False), ("postgresql", 10, False), ("sqlite", 20, True)]
)
def test_kills_lose_nothing_and_apply_nothing_twice(request, sqlite_store, kind, kills, has_operator):
    store = sqlite_store if kind == "sqlite" else request.getfixturevalue("postgresql_server").database()
    token = establish_small(store, {"target": 3, "over_selection": 1.0, "minimum": 1, "deadline": 0.5})
    server = Forked(store)
    devices = [Persistent(server.address, seed) for seed in range(1, DEVICES + 1)]
    operator = Operator(server.admin_address, token, devices)
    with closing(operator):
        play_between_kills(server, devices, kills, meanwhile=operator.act if has_operator else None)
    assert not any(device.twice for device in devices)
    kept = [bytes(digest).hex() for (digest,) in stored(store, "SELECT digest FROM uploads")]
    assert len(kept) == len(set(kept)), "no upload is stored twice"
    banned = {name for (name,) in stored(store, "SELECT client FROM clients WHERE banned = 1")}
    for device in devices:
        lost = [receipt for receipt in device.receipts if receipt not in kept]
        assert len(lost) <= (device.name in banned), "only a ban withdraws an acknowledged upload"
    [(rollbacks,)] = stored(store, "SELECT COUNT(*) FROM actions WHERE action = 'rollback'")
    assert (rollbacks > 0) == has_operator
    assert newest(store).version > rollbacks, "rounds were aggregated between the kills"
    assert_recomputed(store)
    with opened(store) as connection:
        assert is_unbroken(all_actions(connection))
    assert stored(store, "SELECT COUNT(*) FROM rounds WHERE state IN ('open', 'closed')")[0][0] <= 1
