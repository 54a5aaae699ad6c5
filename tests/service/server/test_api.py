"""The HTTP interface: what each address answers, to whom, and in which words it refuses."""

import asyncio
import gzip
import io
import json

import numpy as np
import pytest
from safetensors.numpy import save
from tests.service.federations import (
    ITEMS,
    PATIENT,
    WAITS,
    rows_sent,
    serving,
    small_world,
    some_update,
    stored,
)

from federank.federation.method import configuration
from federank.federation.wire import encode
from federank.methods.fpl.method import FPL, FPLUpdate
from federank.service.server.http.app import admin_app, public_app
from federank.service.server.http.routes import ADMIN_ROUTES, PUBLIC_ROUTES, openapi_document
from federank.service.server.logs import Log


async def test_a_federation_says_what_it_is(sqlite_store):
    async with serving(sqlite_store, {"target": 7, "minimum": 2, "deadline": 9.0}) as running:
        told = (await running.client.get("/api/v1/federation")).json()
    assert told["api"] == 1
    assert (told["name"], told["method"], told["items"], told["version"]) == ("Testville", "fpl", ITEMS, 0)
    expected = configuration(FPL(n_items=ITEMS, factors=3, triples=4, learning_rate=0.5))
    assert told["recipe"] == {name: value for name, value in expected.items() if name != "pi"}
    assert told["rounds"] == {
        "target": 7,
        "minimum": 2,
        "over_selection": 1.3,
        "deadline_seconds": 9.0,
    }
    assert told["limits"]["most_rows"] == 8
    assert told["suggested_policy"] is None
    assert told["noun"] is None
    assert told["trained"] is False, "no one has been learnt from yet"


async def test_a_federation_started_again_is_distinguished_from_the_old_one_by_all_that_a_client_asks(
    sqlite_store, tmp_path
):
    told = []
    for store in (sqlite_store, sqlite_store, f"sqlite:///{tmp_path / 'anew.sqlite'}"):
        async with serving(store) as running:
            federation, status = [
                (await running.client.get(f"/api/v1/{path}")).json() for path in ("federation", "status")
            ]
            model = await running.client.get("/api/v1/model")
        assert federation["federation_id"] == status["federation_id"] == model.headers["X-Federation-Id"]
        told.append((federation["federation_id"], model.headers["ETag"]))
    assert told[0] == told[1] != told[2]
    assert told[0][0] != told[2][0]


async def test_the_catalogue_comes_in_the_order_of_item_numbers_once(sqlite_store):
    async with serving(sqlite_store) as running:
        answer = await running.client.get("/api/v1/catalogue", headers={"Accept-Encoding": "identity"})
        items = answer.json()["items"]
        assert [item["id"] for item in items] == small_world().item_ids.tolist()
        assert items[1] == {"id": "item-01", "title": "Place item-01", "categories": ["Museum"]}
        known = {"If-None-Match": answer.headers["ETag"]}
        again = await running.client.get("/api/v1/catalogue", headers=known)
        assert (again.status_code, again.content) == (304, b"")
        small = await running.client.get("/api/v1/catalogue", headers={"Accept-Encoding": "gzip"})
        assert small.headers["Content-Encoding"] == "gzip"
        assert small.json() == answer.json()


async def test_the_page_comes_compressed_to_who_can_unpack_it_and_once(sqlite_store):
    async with serving(sqlite_store) as running:
        plain = await running.client.get("/app.js", headers={"Accept-Encoding": "identity"})
        small = await running.client.get("/app.js", headers={"Accept-Encoding": "gzip, br"})
        assert "Content-Encoding" not in plain.headers
        assert small.headers["Content-Encoding"] == "gzip"
        assert int(small.headers["Content-Length"]) < int(plain.headers["Content-Length"])
        assert small.content == plain.content
        assert small.headers["Content-Type"].startswith("text/javascript")
        again = await running.client.get("/app.js", headers={"If-None-Match": small.headers["ETag"]})
        assert (again.status_code, again.content) == (304, b"")
        assert (await running.client.get("/")).content == (await running.client.get("/index.html")).content
        assert (await running.client.post("/app.js")).status_code == 405
        assert [(await running.client.get(path)).status_code for path in ("/admin.html", "/admin", "/device")] == [
            404
        ] * 3
        assert (await running.admin.get("/admin")).headers["Content-Type"].startswith("text/html")


async def test_the_model_comes_complete_or_as_the_rows_changed_since_a_version(sqlite_store):
    async with serving(sqlite_store, {"target": 1} | PATIENT) as running:
        first = await running.client.get("/api/v1/model")
        assert first.headers["ETag"].endswith('-v0"')
        assert rows_sent(first.content) == list(range(ITEMS))
        update = some_update(3)
        await (await running.device()).take_part(update)
        await running.version(1)
        for since, rows in (
            ("0", update.items.tolist()),
            ("1", []),
            ("7", list(range(ITEMS))),
            ("-1", list(range(ITEMS))),
        ):
            answer = await running.client.get(f"/api/v1/model?since={since}")
            assert rows_sent(answer.content) == rows, since
            assert answer.headers["X-Model-Version"] == "1"
        same = await running.client.get("/api/v1/model", headers={"If-None-Match": answer.headers["ETag"]})
        assert same.status_code == 304


async def test_a_left_client_is_forgotten_and_its_token_dies(store):
    async with serving(store, {"target": 2} | PATIENT) as running:
        device, other = await running.device(), await running.device()
        ticket = await device.ticket()
        assert (await running.client.delete("/api/v1/devices/me", headers=device.headers)).status_code == 204
        for answer in (await device.work(0), await device.send(ticket, some_update(1)), await device.task(ticket)):
            assert (answer.status_code, answer.json()["error"]) == (401, "unknown-device")
        assert stored(store, "SELECT device FROM devices") == [(other.name,)]


async def test_the_store_holds_no_token_and_no_history(sqlite_store, tmp_path):
    async with serving(sqlite_store) as running:
        device = await running.device()
        token = device.headers["Authorization"].removeprefix("Bearer ")
        admin = running.token
    content = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"item-03" in content, "the catalogue is there"
    for secret in (token, admin, "somebody-one", "somebody-two"):
        assert secret.encode() not in content


async def test_status_counts_what_has_happened(sqlite_store):
    async with serving(sqlite_store, {"target": 1} | PATIENT) as running:
        await (await running.device()).take_part(some_update(1))
        await running.version(1)
        await running.until(lambda view: view.devices == 1 and view.round.number == 1)
        told = (await running.client.get("/api/v1/status")).json()
    assert len(told.pop("federation_id")) == 32
    assert told == {
        "version": 1,
        "round": 1,
        "open": True,
        "reports": 0,
        "items": ITEMS,
        "season": 1,
        "devices": 1,
        "rounds_folded": 1,
        "rounds_abandoned": 0,
        "aggregates_rejected": 0,
        "accuracy": None,
        "health": {"state": "ok", "reasons": []},
        "simulated": None,
    }


@pytest.mark.parametrize("path", ["/api/v1/work", "/api/v1/tasks/x", "/api/v1/tasks/x/update", "/api/v1/devices/me"])
async def test_no_client_takes_part_without_a_token(sqlite_store, path):
    method = {"update": "POST", "me": "DELETE"}.get(path.rsplit("/", 1)[-1], "GET")
    async with serving(sqlite_store) as running:
        for headers in ({}, {"Authorization": "Bearer " + "x" * 43}, {"Authorization": "Basic eDp5"}):
            answer = await running.client.request(method, path, headers=headers)
            assert (answer.status_code, answer.json()["error"]) == (401, "unknown-device")


async def test_unknown_places_and_methods_are_refused(sqlite_store):
    async with serving(sqlite_store) as running:
        for method, path, status in (("GET", "/api/v1/nothing", 404), ("PUT", "/api/v1/status", 405)):
            answer = await running.client.request(method, path)
            assert answer.status_code == status
            assert answer.json()["message"].endswith(".")


async def test_updates_that_break_the_protocol_are_refused_and_counted(store):
    bad = np.array([1, 2], dtype=np.int32)
    vectors, biases = np.zeros((2, 3), dtype=np.float32), np.zeros(2, dtype=np.float32)
    whole = encode(FPLUpdate(bad, vectors, biases))
    hostile = {
        "empty": b"",
        "noise": b"\x07" * 300,
        "header longer than the body": (10**9).to_bytes(8, "little") + b"{}",
        "cut": whole[:-3],
        "more than it says": whole + b"xx",
        "not finite": encode(FPLUpdate(bad, np.full((2, 3), np.nan, dtype=np.float32), biases)),
        "descending": encode(FPLUpdate(bad[::-1].copy(), vectors, biases)),
        "repeated": encode(FPLUpdate(np.array([1, 1], dtype=np.int32), vectors, biases)),
        "negative": encode(FPLUpdate(np.array([-1, 1], dtype=np.int32), vectors, biases)),
        "foreign item": encode(FPLUpdate(np.array([1, ITEMS], dtype=np.int32), vectors, biases)),
        "other factors": encode(FPLUpdate(bad, np.zeros((2, 4), dtype=np.float32), biases)),
        "doubles": save({"items": bad, "vectors": vectors.astype(np.float64), "biases": biases}),
        "another part": save({"items": bad, "vectors": vectors, "biases": biases, "user": bad}),
        "a part too few": save({"items": bad, "vectors": vectors}),
        "too many rows": encode(some_update(1, rows=9)),
    }
    async with serving(store, {"target": 5} | PATIENT) as running:
        device = await running.device()
        ticket = await device.ticket()
        for what, body in hostile.items():
            answer = await device.send(ticket, body)
            assert (answer.status_code, answer.json()["error"]) == (422, "malformed"), what
            assert answer.json()["message"].endswith("."), what
        huge = await device.send(ticket, whole + bytes(10_000))
        assert (huge.status_code, huge.json()["error"]) == (413, "too-large")
        bomb = await device.send(ticket, gzip.compress(bytes(10**7)), **{"Content-Encoding": "gzip"})
        assert (bomb.status_code, bomb.json()["error"]) == (415, "encoding")
        text = await device.send(ticket, whole, **{"Content-Type": "text/plain"})
        assert (text.status_code, text.json()["error"]) == (415, "type")
        assert (await device.send(ticket, whole)).status_code == 201, "the ticket is still good"
        for _ in range(WAITS):
            counts = dict(stored(store, "SELECT reason, count FROM refusals"))
            if sum(counts.values()) == len(hostile) + 3:
                break
            await asyncio.sleep(0.01)
        assert counts == {"malformed": len(hostile), "too-large": 1, "encoding": 1, "type": 1}


async def test_only_the_operator_sees_the_overview(sqlite_store):
    async with serving(sqlite_store, {"target": 1, "over_selection": 2.0} | PATIENT) as running:
        away = await running.device()
        await away.ticket()
        await (await running.device()).take_part(some_update(1))
        await running.version(1)
        device = (await running.device()).headers
        for headers in ({}, device, {"Authorization": "Bearer nonsense"}):
            answer = await running.admin.get("/admin/api/v1/overview", headers=headers)
            assert (answer.status_code, answer.json()["error"]) == (401, "not-the-operator")
        told = (await running.admin.get("/admin/api/v1/overview", headers=running.operator)).json()
        public = await running.client.get("/admin/api/v1/overview", headers=running.operator)
        assert public.status_code == 404, "the devices' address knows no operator"
    folded = next(entry for entry in told["rounds"] if entry["number"] == 0)
    assert (folded["state"], folded["granted"], folded["reports"], folded["dropouts"]) == ("folded", 2, 1, 1)
    assert folded["bytes"] == len(encode(some_update(1)))
    assert folded["drift"] > 0


@pytest.mark.slow
async def test_the_operator_publishes_accuracy_for_every_client_to_see(sqlite_store):
    async with serving(sqlite_store) as running:
        place = "/admin/api/v1/accuracy"
        for bad in ({}, {"precision@10": "high"}, {"precision@10": float("nan")}, {"x": True}, {"x": 10**400}):
            content = json.dumps(bad)
            answer = await running.admin.post(place, content=content, headers=running.operator)
            assert answer.status_code == 422, bad
        assert (await running.admin.post(place, content="[", headers=running.operator)).status_code == 400
        await running.admin.post(place, json={"precision@10": 0.25}, headers=running.operator)
        await running.until(lambda view: view.accuracy)
        told = (await running.client.get("/api/v1/status")).json()
    assert told["accuracy"] == {"precision@10": 0.25, "version": 0}


async def test_health_readiness_and_metrics_answer(sqlite_store):
    async with serving(sqlite_store, {"target": 1} | PATIENT) as running:
        await (await running.device()).take_part(some_update(1))
        await running.version(1)
        for client in (running.client, running.admin):
            assert (await client.get("/health")).json() == {"alive": True}
            assert (await client.get("/ready")).json()["ready"] is True
        text = (await running.admin.get("/metrics")).text
        assert 'federank_uploads_total{outcome="stored"} 1.0' in text
        assert "federank_version 1.0" in text
        assert (await running.client.get("/metrics")).status_code == 404


async def test_every_answer_keeps_a_browser_safe(sqlite_store):
    async with serving(sqlite_store) as running:
        for path in ("/api/v1/status", "/api/v1/nothing", "/", "/api/v1/work"):
            headers = (await running.client.get(path)).headers
            assert "default-src 'none'" in headers["Content-Security-Policy"]
            assert "unsafe" not in headers["Content-Security-Policy"]
            assert headers["X-Content-Type-Options"] == "nosniff"
            assert headers["Referrer-Policy"] == "no-referrer"


async def test_logs_tell_what_happened_and_nothing_about_anyone(sqlite_store):
    lines = io.StringIO()
    async with serving(sqlite_store, {"target": 1} | PATIENT, log=Log(lines)) as running:
        device = await running.device()
        ticket = await device.ticket()
        await device.send(ticket, b"nonsense")
        await device.send(ticket, some_update(1))
        await running.version(1)
        token = device.headers["Authorization"].removeprefix("Bearer ")
    events = [json.loads(line)["event"] for line in lines.getvalue().splitlines()]
    assert "round folded" in events
    for private in (device.name, token, ticket, "127.0.0.1"):
        assert private not in lines.getvalue()


async def test_a_fault_of_ours_is_an_error_and_no_stack_trace(sqlite_store, monkeypatch):
    lines = io.StringIO()
    async with serving(sqlite_store, log=Log(lines)) as running:
        device = await running.device()
        monkeypatch.setattr(running.service.encoded, "since", None)  # not callable: a TypeError inside the request
        answer = await device.task(await device.ticket())
    assert answer.status_code == 500
    assert set(answer.json()) == {"error", "message"}
    assert "Traceback" not in answer.text
    assert "TypeError" not in answer.text
    assert any(json.loads(line)["event"] == "fault" for line in lines.getvalue().splitlines())


@pytest.mark.parametrize(("entries", "make"), [(PUBLIC_ROUTES, public_app), (ADMIN_ROUTES, admin_app)])
async def test_the_openapi_document_is_valid_and_describes_every_route(sqlite_store, entries, make):
    from openapi_spec_validator import validate

    document = openapi_document(entries, "A federation")
    validate(document)
    described = {(path, method.upper()) for path, methods in document["paths"].items() for method in methods}
    async with serving(sqlite_store) as running:
        table = make(running.service).table
        client = running.client if make is public_app else running.admin
        assert (await client.get("/api/v1/openapi.json")).json()["paths"] == document["paths"]
        for path, methods in document["paths"].items():
            for method in methods:
                answer = await client.request(method.upper(), path.replace("{ticket}", "x"))
                assert answer.status_code not in (404, 405, 500), (method, path)
    assert {(path, method) for path, methods in table.routes.items() for method in methods} == described


@pytest.mark.parametrize("entry", [entry for entry in ADMIN_ROUTES if entry.method == "POST"], ids=lambda one: one.path)
async def test_every_action_is_the_operators(sqlite_store, entry):
    async with serving(sqlite_store) as running:
        answer = await running.admin.post(entry.path, headers={"Authorization": f"Bearer {'x' * 43}"}, json={})
        assert (answer.status_code, answer.json()["error"]) == (401, "not-the-operator")
