"""The HTTP interface: what each address answers, to whom, and with which codes it refuses."""

import gzip
import io
import json

import numpy as np
import pytest
from openapi_spec_validator import validate
from safetensors.numpy import save
from tests.service.federations import (
    ITEMS,
    ONE,
    PATIENT,
    eventually,
    refusal,
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
from federank.service.server.store.database import StoreAway

ALL = list(range(ITEMS))


async def test_federation_describes_itself(sqlite_store):
    async with serving(sqlite_store, {"target": 7, "minimum": 2, "deadline": 9.0}) as running:
        info = await running.get("federation")
    assert info["api"] == 1
    assert (info["name"], info["method"], info["items"], info["version"]) == ("Testville", "fpl", ITEMS, 0)
    expected = configuration(FPL(n_items=ITEMS, factors=3, triples=4, learning_rate=0.5))
    assert info["recipe"] == {name: value for name, value in expected.items() if name != "pi"}
    assert info["rounds"] == {"target": 7, "minimum": 2, "over_selection": 1.3, "deadline_seconds": 9.0}
    assert info["limits"]["most_rows"] == 8
    assert (info["suggested_policy"], info["noun"], info["trained"]) == (None, None, False)


async def test_new_federation_has_another_id_and_etag(sqlite_store, tmp_path):
    seen = []
    for store in (sqlite_store, sqlite_store, f"sqlite:///{tmp_path / 'another.sqlite'}"):
        async with serving(store) as running:
            ids = [(await running.get(path))["federation_id"] for path in ("federation", "status")]
            headers = (await running.client.get("/api/v1/model")).headers
        assert {*ids} == {headers["X-Federation-Id"]}
        seen.append((ids[0], headers["ETag"]))
    assert seen[0] == seen[1] != seen[2]
    assert seen[0][0] != seen[2][0]


async def test_catalogue_is_in_item_order_and_cached(sqlite_store):
    async with serving(sqlite_store) as running:
        answer = await running.client.get("/api/v1/catalogue", headers={"Accept-Encoding": "identity"})
        items = answer.json()["items"]
        assert [item["id"] for item in items] == small_world().item_ids.tolist()
        assert items[1] == {"id": "item-01", "title": "Place item-01", "categories": ["Museum"]}
        again = await running.client.get("/api/v1/catalogue", headers={"If-None-Match": answer.headers["ETag"]})
        assert (again.status_code, again.content) == (304, b"")
        small = await running.client.get("/api/v1/catalogue", headers={"Accept-Encoding": "gzip"})
        assert small.headers["Content-Encoding"] == "gzip"
        assert small.json() == answer.json()


async def test_page_is_compressed_and_cached(sqlite_store):
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
        for path in ("/admin.html", "/admin", "/device"):
            assert (await running.client.get(path)).status_code == 404
        assert (await running.admin.get("/admin")).headers["Content-Type"].startswith("text/html")


async def test_model_is_complete_or_the_rows_changed_since_a_version(sqlite_store):
    update = some_update(3)
    async with serving(sqlite_store, ONE) as running:
        first = await running.client.get("/api/v1/model")
        assert first.headers["ETag"].endswith('-v0"')
        assert rows_sent(first.content) == ALL
        await running.upload(update)
        await running.version(1)
        for since, rows in (("0", update.items.tolist()), ("1", []), ("7", ALL), ("-1", ALL)):
            answer = await running.client.get(f"/api/v1/model?since={since}")
            assert rows_sent(answer.content) == rows, since
            assert answer.headers["X-Model-Version"] == "1"
        same = await running.client.get("/api/v1/model", headers={"If-None-Match": answer.headers["ETag"]})
        assert same.status_code == 304


async def test_client_that_left_is_unknown(store):
    async with serving(store, {"target": 2} | PATIENT) as running:
        device, other = await running.devices(2)
        ticket = await device.ticket()
        assert (await device.leave()).status_code == 204
        for answer in (await device.work(0), await device.send(ticket, some_update(1)), await device.task(ticket)):
            assert refusal(answer) == (401, "unknown-client")
        assert stored(store, "SELECT client FROM clients") == [(other.name,)]


async def test_store_has_no_token_and_no_user(sqlite_store, tmp_path):
    async with serving(sqlite_store) as running:
        tokens = (await running.device()).token, running.token
    content = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"item-03" in content, "the catalogue is there"
    for secret in (*tokens, "somebody-one", "somebody-two"):
        assert secret.encode() not in content


async def test_status_has_versions_rounds_and_devices(sqlite_store):
    async with serving(sqlite_store, ONE) as running:
        await running.upload(some_update(1))
        await running.until(lambda view: view.clients == 1 and view.round.number == 1)
        status = await running.get("status")
    assert len(status.pop("federation_id")) == 32
    assert status == {
        "version": 1,
        "round": 1,
        "open": True,
        "reports": 0,
        "items": ITEMS,
        "season": 1,
        "clients": 1,
        "rounds_aggregated": 1,
        "rounds_abandoned": 0,
        "aggregates_rejected": 0,
        "accuracy": None,
        "health": {"state": "ok", "reasons": []},
        "simulated": None,
    }


async def test_clients_need_a_token(sqlite_store):
    wrong = ({}, {"Authorization": "Bearer " + "x" * 43}, {"Authorization": "Basic eDp5"})
    places = (("GET", "work"), ("GET", "tasks/x"), ("POST", "tasks/x/update"), ("DELETE", "clients/me"))
    async with serving(sqlite_store) as running:
        for method, path in places:
            for headers in wrong:
                answer = await running.client.request(method, f"/api/v1/{path}", headers=headers)
                assert refusal(answer) == (401, "unknown-client"), path


async def test_unknown_paths_and_methods_are_refused(sqlite_store):
    async with serving(sqlite_store) as running:
        for method, path, status in (("GET", "/api/v1/nothing", 404), ("PUT", "/api/v1/status", 405)):
            assert (await running.client.request(method, path)).status_code == status


BAD, VECTORS, BIASES = np.array([1, 2], np.int32), np.zeros((2, 3), np.float32), np.zeros(2, np.float32)
GOOD = encode(FPLUpdate(BAD, VECTORS, BIASES))
MALFORMED = {
    "empty": b"",
    "noise": b"\x07" * 300,
    "header longer than the body": (10**9).to_bytes(8, "little") + b"{}",
    "cut": GOOD[:-3],
    "bytes left over": GOOD + b"xx",
    "not finite": encode(FPLUpdate(BAD, np.full((2, 3), np.nan, np.float32), BIASES)),
    "descending": encode(FPLUpdate(BAD[::-1].copy(), VECTORS, BIASES)),
    "repeated": encode(FPLUpdate(np.array([1, 1], np.int32), VECTORS, BIASES)),
    "negative": encode(FPLUpdate(np.array([-1, 1], np.int32), VECTORS, BIASES)),
    "foreign item": encode(FPLUpdate(np.array([1, ITEMS], np.int32), VECTORS, BIASES)),
    "other factors": encode(FPLUpdate(BAD, np.zeros((2, 4), np.float32), BIASES)),
    "doubles": save({"items": BAD, "vectors": VECTORS.astype(np.float64), "biases": BIASES}),
    "another part": save({"items": BAD, "vectors": VECTORS, "biases": BIASES, "user": BAD}),
    "a part too few": save({"items": BAD, "vectors": VECTORS}),
    "too many rows": encode(some_update(1, rows=9)),
}


async def test_malformed_uploads_are_refused_and_counted(store):
    async with serving(store, {"target": 5} | PATIENT) as running:
        device = await running.device()
        ticket = await device.ticket()
        for what, body in MALFORMED.items():
            assert refusal(await device.send(ticket, body)) == (422, "malformed"), what
        bomb = gzip.compress(bytes(10**7))
        assert refusal(await device.send(ticket, GOOD + bytes(10_000))) == (413, "too-large")
        assert refusal(await device.send(ticket, bomb, **{"Content-Encoding": "gzip"})) == (415, "encoding")
        assert refusal(await device.send(ticket, GOOD, **{"Content-Type": "text/plain"})) == (415, "type")
        assert (await device.send(ticket, GOOD)).status_code == 201, "the ticket is still good"
        expected = {"malformed": len(MALFORMED), "too-large": 1, "encoding": 1, "type": 1}
        await eventually(lambda: dict(stored(store, "SELECT reason, count FROM refusals")) == expected)


async def test_overview_and_actions_are_the_operators(sqlite_store):
    async with serving(sqlite_store, {"target": 1, "over_selection": 2.0} | PATIENT) as running:
        await (await running.device()).ticket()
        await running.upload(some_update(1))
        await running.version(1)
        device = (await running.device()).headers
        for headers in ({}, device, {"Authorization": "Bearer nonsense"}):
            answer = await running.admin.get("/admin/api/v1/overview", headers=headers)
            assert refusal(answer) == (401, "not-the-operator")
            for entry in ADMIN_ROUTES:
                if entry.method == "POST":
                    answer = await running.admin.post(entry.path, headers=headers, json={})
                    assert refusal(answer) == (401, "not-the-operator"), entry.path
        public = await running.client.get("/admin/api/v1/overview", headers=running.operator)
        assert public.status_code == 404, "the clients' address has no operator's pages"
        overview = await running.overview()
    [first] = [entry for entry in overview["rounds"] if entry["number"] == 0]
    assert (first["state"], first["granted"], first["reports"], first["dropouts"]) == ("aggregated", 2, 1, 1)
    assert first["bytes"] == len(encode(some_update(1)))
    assert first["drift"] > 0


async def test_operator_publishes_accuracy(sqlite_store):
    async with serving(sqlite_store) as running:
        for bad in ({}, {"precision@10": "high"}, {"precision@10": float("nan")}, {"x": True}, {"x": 10**400}):
            assert (await running.ask("POST", "accuracy", content=json.dumps(bad)))[0] == 422, bad
        for no_json in ("[", rb'{"precision\ud800": 0.5}'):
            status, told = await running.ask("POST", "accuracy", content=no_json)
            assert (status, told["error"]) == (400, "not-json")
        await running.ask("POST", "accuracy", json={"precision@10": 0.25})
        await running.until(lambda view: view.accuracy)
        assert (await running.get("status"))["accuracy"] == {"precision@10": 0.25, "version": 0}


async def test_health_readiness_and_metrics(sqlite_store):
    async with serving(sqlite_store, ONE) as running:
        await running.play()
        for client in (running.client, running.admin):
            assert (await client.get("/health")).json() == {"alive": True}
            assert (await client.get("/ready")).json()["ready"] is True
        metrics = await running.metrics()
        assert 'federank_uploads_total{outcome="stored"} 1.0' in metrics
        assert "federank_version 1.0" in metrics
        assert (await running.client.get("/metrics")).status_code == 404


async def test_security_headers(sqlite_store):
    async with serving(sqlite_store) as running:
        for path in ("/api/v1/status", "/api/v1/nothing", "/", "/api/v1/work"):
            headers = (await running.client.get(path)).headers
            assert "default-src 'none'" in headers["Content-Security-Policy"]
            assert "unsafe" not in headers["Content-Security-Policy"]
            assert headers["X-Content-Type-Options"] == "nosniff"
            assert headers["Referrer-Policy"] == "no-referrer"


async def test_logs_name_no_client(sqlite_store):
    lines = io.StringIO()
    async with serving(sqlite_store, ONE, log=Log(lines)) as running:
        device = await running.device()
        ticket = await device.ticket()
        await device.send(ticket, b"nonsense")
        await device.send(ticket, some_update(1))
        await running.version(1)
    assert "round aggregated" in [json.loads(line)["event"] for line in lines.getvalue().splitlines()]
    for private in (device.name, device.token, ticket, "127.0.0.1"):
        assert private not in lines.getvalue()


def test_log_line_has_a_level_and_a_worker():
    lines = io.StringIO()
    log = Log(lines, worker=3)
    log.say("leads")
    log.fault("rounds", ValueError("secret"))
    log.store_away(StoreAway("locked"))
    found = [json.loads(line) for line in lines.getvalue().splitlines()]
    assert [(line["level"], line["worker"]) for line in found] == [("info", 3), ("error", 3), ("warning", 3)]
    assert "secret" not in lines.getvalue()


async def test_internal_fault_is_500_without_a_stack_trace(sqlite_store, monkeypatch):
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
async def test_openapi_document_describes_every_route(sqlite_store, entries, make):
    document = openapi_document(entries, "A federation")
    validate(document)
    described = {(path, method.upper()) for path, methods in document["paths"].items() for method in methods}
    async with serving(sqlite_store) as running:
        client = running.client if make is public_app else running.admin
        assert (await client.get("/api/v1/openapi.json")).json()["paths"] == document["paths"]
        for path, method in described:
            answer = await client.request(method, path.replace("{ticket}", "x"))
            assert answer.status_code not in (404, 405, 500), (method, path)
        routes = make(running.service).routes
    assert {(path, method) for path, methods in routes.items() for method in methods} == described
