"""`kill -9` under load with an operator at work: rollbacks and bans between kills lose nothing."""

import json
import random

import httpx
import numpy as np
import pytest
from safetensors.numpy import load
from tests.service.federations import FACTORS, establish_small, opened, same_bits, stored
from tests.service.server.killing import Forked, Persistent, play_between_kills
from tests.worlds import decode_update

from federank.service.server.store.versions import newest_model
from federank.service.server.store.writer import all_actions, is_unbroken

KILLS, DEVICES, RATE = 20, 6, np.float32(0.5)


def replayed(store, last):
    """The newest version worked out again from folds of what was accepted and what was gone back to; and these."""
    first = load(bytes(stored(store, "SELECT body FROM versions WHERE version = 0")[0][0]))
    folded = iter(stored(store, "SELECT number FROM rounds WHERE state = 'folded' ORDER BY number"))
    lines = stored(store, "SELECT detail FROM actions WHERE action = 'rollback' ORDER BY number")
    went_back = {told["as_version"]: told["to"] for told in (json.loads(detail) for (detail,) in lines)}
    models = [(first["vectors"], first["biases"])]
    for version in range(1, last + 1):
        if version in went_back:
            models.append(models[went_back[version]])
            continue
        [number] = next(folded)
        vectors, biases = models[-1]
        sums = np.zeros_like(vectors), np.zeros_like(biases)
        for (body,) in stored(store, "SELECT body FROM uploads WHERE round = ? ORDER BY digest", number):
            update = decode_update(bytes(body), FACTORS, len(biases))
            sums[0][update.items] += update.vectors
            sums[1][update.items] += update.biases
        models.append((vectors + RATE * sums[0], biases + RATE * sums[1]))
    assert next(folded, None) is None, "every round that was folded has made a version"
    return models[-1], went_back


class AtWork:
    """An operator who goes back and bans while the server is killed."""

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
                self._http.post("/ban", json={"device": self._devices[number // 6 - 1].name})
        except (httpx.TransportError, KeyError):
            pass

    def close(self):
        self._http.close()


@pytest.mark.slow
def test_kills_rollbacks_and_bans_together_lose_nothing_and_apply_nothing_twice(sqlite_store):
    token = establish_small(sqlite_store, {"target": 3, "over_selection": 1.0, "minimum": 1, "deadline": 0.5})
    server = Forked(sqlite_store)
    devices = [Persistent(server.address, seed) for seed in range(1, DEVICES + 1)]
    operator = AtWork(server.admin_address, token, devices)
    play_between_kills(server, devices, KILLS, pauses=(0.1, 0.3, 0.6), longer=0.2, meanwhile=operator.act)
    operator.close()
    banned = {name for (name,) in stored(sqlite_store, "SELECT device FROM devices WHERE banned = 1")}
    kept = [bytes(digest).hex() for (digest,) in stored(sqlite_store, "SELECT digest FROM uploads")]
    assert len(kept) == len(set(kept)), "none is there twice"
    assert not any(device.twice for device in devices)
    for device in devices:
        lost = [receipt for receipt in device.receipts if receipt not in kept]
        assert len(lost) <= (device.name in banned), "only what a ban withdraws is gone"
    with opened(sqlite_store) as connection:
        model = newest_model(connection)
        assert is_unbroken(all_actions(connection))
    (vectors, biases), went_back = replayed(sqlite_store, model.version)
    assert went_back, "the operator has gone back at least once"
    assert model.version > len(went_back), "rounds were folded between the kills"
    assert same_bits(model.vectors, vectors)
    assert same_bits(model.content.tables["biases"], biases)
