"""Simulated clients go on while the operator begins another season, and its new items are learnt."""

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
@pytest.mark.parametrize("method", ["fpl", "frugal", "fedmf"])
def test_simulated_clients_go_on_in_a_new_season(tmp_path, method):
    data = fr.city(30, 40, 300, seed=1)
    known = data.item_ids.tolist()[:30]  # ten begin while clients take part, and the first ends
    lines = [
        f"{user},{item}"
        for user, item in zip(data.user_ids[data.users], data.item_ids[data.items], strict=True)
        if item in known
    ]
    (tmp_path / "data.csv").write_text("user,item\n" + "\n".join(lines) + "\n")
    flags = ("--data", "data.csv", "--method", method, "--target", "10", "--rehearsal", "--quiet", "--factors", "4")
    flags += ("--min-support", "1") if method == "frugal" else ()
    store = f"sqlite:///{tmp_path / 'federation.sqlite'}"
    with Served(store, *flags, folder=tmp_path) as server:
        items = [{"id": str(item)} for item in data.item_ids.tolist()[1:]]

        def operate():
            headers = {"Authorization": f"Bearer {server.token}"}
            with httpx.Client(base_url=f"{server.admin_address}/admin/api/v1", headers=headers) as operator:
                while operator.get("/versions").json()["version"] < 2:
                    time.sleep(0.05)
                answer = operator.post("/seasons", json={"items": items})
                assert answer.status_code == 201, answer.text

        operator = threading.Thread(target=operate)
        operator.start()
        with Client(server.address) as client:
            played = rehearse(Rehearsal(plan=Plan(address=server.address), rounds=9, data=data, specs={"pi": 1.0}))
            operator.join()
            federation = fetch_federation(client)
            model = fetch_model(client, federation.info)
    assert (federation.info.season, federation.info.n_items) == (2, 40)
    assert (federation.ids[0], federation.ids[1]) == ("", str(known[1]))
    assert played.tally.counts["season"] == 1
    assert played.tally.rounds >= 9
    assert np.abs(model.vectors[30:]).max() > 0, "clients who have the new items were heard"
