"""A fleet goes on while the operator adds items, and its people's new items are learnt."""

import threading
import time

import httpx
import numpy as np
import pytest
from tests.service.federations import Served

import federank as fr
from federank.service.client.federation import fetch_model
from federank.service.client.http import Client
from federank.service.simulated_clients.processes import Rehearsal, fetch_federation, rehearse
from federank.service.simulated_clients.rehearsal import Plan


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fpl", "frugal"])
def test_a_fleet_goes_on_while_the_catalogue_grows(tmp_path, method):
    data = fr.city(30, 40, 300, seed=1)
    known = data.item_ids.tolist()[:30]  # ten are added while devices take part
    lines = [
        f"{user},{item}"
        for user, item in zip(data.user_ids[data.users], data.item_ids[data.items], strict=True)
        if item in known
    ]
    (tmp_path / "data.csv").write_text("user,item\n" + "\n".join(lines) + "\n")
    flags = ("--data", "data.csv", "--method", method, "--target", "10", "--rehearsal", "--quiet", "--factors", "4")
    store = f"sqlite:///{tmp_path / 'federation.sqlite'}"
    with Served(store, *flags, folder=tmp_path) as server:
        new = [{"id": str(item)} for item in data.item_ids.tolist()[30:]]

        def operate():
            headers = {"Authorization": f"Bearer {server.token}"}
            with httpx.Client(base_url=f"{server.admin_address}/admin/api/v1", headers=headers) as operator:
                while operator.get("/versions").json()["version"] < 2:
                    time.sleep(0.05)
                assert operator.post("/items", json={"items": new}).status_code == 202

        operator = threading.Thread(target=operate)
        operator.start()
        with Client(server.address) as client:
            played = rehearse(Rehearsal(plan=Plan(address=server.address), rounds=9, data=data, specs={"pi": 1.0}))
            operator.join()
            federation = fetch_federation(client)
            model = fetch_model(client, federation.facts)
    assert federation.facts.n_items == 40
    assert played.tally.counts["catalogue has grown"] == 1
    assert played.tally.rounds >= 9
    assert np.abs(model.vectors[30:]).max() > 0, "people who have the new items were heard"
