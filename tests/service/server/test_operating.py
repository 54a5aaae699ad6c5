"""What an operator does to a running federation: a way back, bans, a new token, a log that only grows, an export."""

import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner
from safetensors.numpy import load
from tests.service.federations import (
    FPL_SERVER,
    ITEMS,
    KEEP,
    PATIENT,
    Served,
    establish_small,
    opened,
    same_bits,
    serving,
    small_world,
    some_update,
    stored,
)

from federank.cli import federank
from federank.errors import BadFile
from federank.federation.server import lowest_rows
from federank.methods.fpl.method import FPL
from federank.methods.model_folder import load_model
from federank.service.server.model_versions import first_model
from federank.service.server.store import versions as store_versions
from federank.service.server.store.queries import close_round, open_round
from federank.service.server.store.versions import kept_versions, model_at, model_to_fold, publish, roll_back
from federank.service.server.store.writer import all_actions, is_unbroken, note_action

ADMIN = "/admin/api/v1"
ONE = {"target": 1} | PATIENT


async def ask(running, method, path, **values):
    answer = await running.admin.request(method, f"{ADMIN}{path}", headers=running.operator, **values)
    return answer.status_code, answer.json()


async def play(running, rounds, seed=0):
    device = await running.device()
    for number in range(rounds):
        before = running.service.latest.model.version
        assert (await device.take_part(some_update(seed + number))).status_code == 201
        await running.version(before + 1)
    return device


async def test_an_earlier_version_is_published_as_a_new_one_and_clients_follow(store):
    async with serving(store, ONE, KEEP) as running:
        await play(running, 2)
        earlier = running.service.latest.model
        await play(running, 2, seed=10)
        later = running.service.latest.model
        number = running.service.latest.round.number
        status, done = await ask(running, "POST", "/rollback", json={"version": 2})
        assert (status, done) == (200, {"version": 5, "content_of": 2})
        await running.version(5)
        now = running.service.latest.model
        assert same_bits(now.vectors, earlier.vectors)
        assert same_bits(now.content.tables["biases"], earlier.content.tables["biases"])
        differing = np.flatnonzero((later.vectors != earlier.vectors).any(axis=1))
        assert set(now.rows_since(4)) == set(differing), "who has the newest is sent what differs from it"
        await running.until(lambda view: view.round.number > number and view.round.state == "open")
        await play(running, 1, seed=20)
        learnt = running.service.latest.model
        assert learnt.version == 6
        assert not same_bits(learnt.vectors, earlier.vectors), "rounds go on from the version gone back to"
        await running.until(lambda view: view.folded == 5)


async def test_what_was_under_way_is_given_up_by_a_rollback(store):
    async with serving(store, {"target": 2} | PATIENT) as running:
        device = await running.device()
        ticket = await device.ticket()
        assert (await device.send(ticket, some_update(1))).status_code == 201
        assert (await ask(running, "POST", "/rollback", json={"version": 0}))[0] == 200
        await running.until(lambda view: view.round.number == 1 and view.round.state == "open")
        assert stored(store, "SELECT state, reports FROM rounds WHERE number = 0") == [("abandoned", 1)]
        assert [bytes(body) for (body,) in stored(store, "SELECT body FROM uploads")] == [b""]
        assert stored(store, "SELECT abandoned FROM tallies") == [(1,)]
        assert (await device.send(await device.ticket(), some_update(2))).status_code == 201


async def test_a_version_that_is_not_kept_cannot_be_gone_back_to(sqlite_store):
    async with serving(sqlite_store, ONE) as running:
        for wanted, expected in ((7, 404), ("0", 422), (True, 422), (None, 422)):
            assert (await ask(running, "POST", "/rollback", json={"version": wanted}))[0] == expected
        assert [entry["version"] for entry in (await ask(running, "GET", "/versions"))[1]["versions"]] == [0]
        assert running.service.latest.model.version == 0


def fold(connection, number, version_of):
    open_round(connection, number, version_of.version)
    close_round(connection, number, 0)
    rows = {name: table + 1 for name, table in version_of.content.tables.items()}
    model = version_of.followed_by(version_of.content._replace(tables=rows))
    publish(connection, number, model, {"drift": 0.0, "seconds": 0.0}, False)
    return model


def test_versions_are_kept_by_the_stated_rule_and_each_of_them_can_be_worked_out(sqlite_store, monkeypatch):
    monkeypatch.setattr(store_versions, "FULL_MODEL_EVERY", 4)
    monkeypatch.setattr(store_versions, "KEPT_FULL", 3)
    monkeypatch.setattr(store_versions, "KEPT_EVERY", 16)
    establish_small(sqlite_store)
    with opened(sqlite_store) as connection:
        first = model = model_to_fold(connection)
        for number in range(42):
            model = fold(connection, number, model)
        kept = [entry["version"] for entry in kept_versions(connection)]
        whole = [0, 16, 32, 36, 40]
        assert kept == sorted({*whole, *range(36, 43)}, reverse=True)
        for version in kept:
            found = model_at(connection, version)
            assert np.allclose(found.vectors, first.vectors + version, atol=1e-4), version
        assert model_at(connection, 20) is None
        assert roll_back(connection, 20, lowest_rows) is None


async def test_an_update_that_is_not_folded_is_withdrawn_when_its_client_leaves(store):
    async with serving(store, {"target": 2} | PATIENT, KEEP) as running:
        leaving, staying, other = [await running.device() for _ in range(3)]
        before = running.service.latest.model
        assert (await leaving.take_part(some_update(1))).status_code == 201
        answer = await running.client.delete("/api/v1/devices/me", headers=leaving.headers)
        assert answer.status_code == 204
        assert stored(store, "SELECT COUNT(*) FROM uploads") == [(0,)]
        for seed, device in ((2, staying), (3, other)):
            assert (await device.take_part(some_update(seed))).status_code == 201
        await running.version(1)
        rate, sums = np.float32(0.5), np.zeros_like(before.vectors)
        for seed in (2, 3):
            update = some_update(seed)
            sums[update.items] += update.vectors
        assert np.allclose(running.service.latest.model.vectors, before.vectors + rate * sums, atol=1e-6)


async def test_a_banned_client_is_refused_and_its_update_withdrawn(store):
    async with serving(store, {"target": 2} | PATIENT) as running:
        banned, other = [await running.device() for _ in range(2)]
        ticket = await banned.ticket()
        assert (await banned.send(ticket, some_update(1))).status_code == 201
        status, done = await ask(running, "POST", "/ban", json={"device": banned.name})
        assert (status, done["was_banned"]) == (200, False)
        assert stored(store, "SELECT COUNT(*) FROM uploads") == [(0,)]
        answer = await banned.send(ticket, some_update(1))
        assert (answer.status_code, answer.json()["error"]) == (403, "banned")
        await running.until(lambda view: view.departures == 1)
        answer = await banned.work(wait=0)
        assert (answer.status_code, answer.json()["error"]) == (403, "banned")
        assert (await running.client.delete("/api/v1/devices/me", headers=banned.headers)).status_code == 403
        assert (await other.take_part(some_update(2))).status_code == 201
        assert (await ask(running, "POST", "/ban", json={"device": banned.name}))[1]["was_banned"] is True
        assert (await ask(running, "POST", "/ban", json={"device": "nobody"}))[0] == 404
        assert stored(store, "SELECT devices FROM tallies") == [(1,)]


async def test_a_new_token_takes_the_old_one_s_place_at_every_worker(sqlite_store):
    async with serving(sqlite_store, ONE) as running:
        status, done = await ask(running, "POST", "/token")
        assert status == 200
        assert (await ask(running, "GET", "/log"))[0] == 401, "the old token has died"
        running.operator = {"Authorization": f"Bearer {done['token']}"}
        assert (await ask(running, "GET", "/log"))[0] == 200
        assert done["token"] not in json.dumps(stored(sqlite_store, "SELECT action, detail FROM actions"))


async def test_every_action_is_a_line_of_the_log_and_none_can_be_taken_out_unseen(store):
    async with serving(store, ONE) as running:
        device = await play(running, 1)
        await ask(running, "POST", "/rounds", json={"paused": True})
        await ask(running, "POST", "/rounds", json={"paused": False})
        await ask(running, "POST", "/accuracy", json={"precision@10": 0.5})
        await ask(running, "POST", "/rollback", json={"version": 0})
        await ask(running, "POST", "/ban", json={"device": device.name})
        _, found = await ask(running, "GET", "/log")
        actions = [line["action"] for line in found["actions"]]
        assert actions == ["established", "pause", "go on", "accuracy", "rollback", "ban"]
        assert found["unbroken"] is True
    with opened(store) as connection:
        for damage in ("DELETE FROM actions WHERE number = 2", "UPDATE actions SET detail = '{}' WHERE number = 4"):
            connection.raw.execute("BEGIN")
            connection.run(damage)
            assert not is_unbroken(all_actions(connection)), damage
            connection.raw.execute("ROLLBACK")
        with connection.transaction():
            note_action(connection, "another")
        assert is_unbroken(all_actions(connection))


def test_items_that_a_trained_model_lacks_start_low():
    """They led every list: their drawn biases stood beside those that were learnt, which are mostly lower."""
    from types import SimpleNamespace

    data = small_world()
    known = np.arange(ITEMS - 2)
    trained = SimpleNamespace(
        name="fpl",
        training=SimpleNamespace(item_ids=data.item_ids[known]),
        method=FPL(n_items=len(known), factors=3, triples=2),
    )
    trained.state = replace(trained.method.initial_state(), biases=np.linspace(-6, -2, len(known)).astype(np.float32))
    settings = FPL(factors=3, triples=2)
    model = first_model(FPL_SERVER.first_content(settings, data, trained))
    biases = model.content.tables["biases"]
    assert same_bits(biases[known], trained.state.biases)
    assert (biases[ITEMS - 2 :] < np.median(trained.state.biases)).all()
    assert (model.vectors[ITEMS - 2 :] == 0).all()


@pytest.mark.slow
def test_the_commands_of_an_operator_work_on_a_running_federation(tmp_path):
    store = f"sqlite:///{tmp_path / 'federation.sqlite'}"
    token = establish_small(store, ONE)
    with Served(store, "--quiet", folder=tmp_path) as server:
        server.until_ready()

        def admin(*words, given=token):
            command = ["admin", "--server", server.admin_address, "--token", given, *words]
            return CliRunner().invoke(federank, command)

        def versions():
            return json.loads(admin("versions", "--json").output)["versions"]

        assert [entry["version"] for entry in versions()] == [0]
        assert admin("rollback", "0").exit_code == 0
        assert [entry["version"] for entry in versions()] == [1, 0]
        items = [f"item-{number:02d},A place,Museum" for number in range(1, 12)] + ["new,A new place,Museum|Park"]
        (tmp_path / "next.csv").write_text("item_id,title,categories\n" + "\n".join(items))
        begun = json.loads(admin("season", "new", "--catalogue", str(tmp_path / "next.csv"), "--json").output)
        assert (begun["number"], begun["version"], begun["starts_from"]) == (2, 2, 1)
        (tmp_path / "twice.csv").write_text("item_id,title\nnew,One\nnew,Two\n")
        twice = admin("season", "new", "--catalogue", str(tmp_path / "twice.csv"))
        assert "'new'" in str(twice.exception)
        (tmp_path / "bare.csv").write_text("name\nOne\n")
        bare = admin("season", "new", "--catalogue", str(tmp_path / "bare.csv"))
        assert isinstance(bare.exception, BadFile)
        missing = admin("season", "new", "--catalogue", str(tmp_path / "nowhere.csv"))
        assert isinstance(missing.exception, BadFile)
        assert "99" in str(admin("season", "restart-from", "99").exception)
        listed = json.loads(admin("season", "list", "--json").output)
        assert [season["number"] for season in listed["seasons"]] == [1, 2], "nothing else was begun"
        done = admin("export", str(tmp_path / "model"))
        assert "12 items" in done.output, done.output
        exported = load_model(tmp_path / "model").item_ids.tolist()
        assert (exported[0], exported[-1]) == ("item-01", "new"), "without the item that has ended"
        assert "11 items" in admin("export", str(tmp_path / "earlier"), "--version", "1").output
        listed = CliRunner().invoke(federank, ["recommend", str(tmp_path / "model"), "--like", "item-01", "--json"])
        assert len(json.loads(listed.output)) == 10
        new = admin("rotate-token").output.split()[2]
        lines = json.loads(admin("log", "--json", given=new).output)["actions"]
        told = ["established", "rollback", "season", "export", "export", "rotate-token"]
        assert [line["action"] for line in lines] == told
        refused = admin("versions")
        assert "operator's token" in str(refused.exception)


async def test_an_exported_model_starts_a_new_federation_and_is_judged_as_clients_would_be(sqlite_store, tmp_path):
    from federank.data.splits import split_random
    from federank.evaluation.evaluate import evaluate
    from federank.service.operator import recommender_of

    async with serving(sqlite_store, ONE) as running:
        await play(running, 3)
        answer = await running.admin.get(f"{ADMIN}/export?version=2", headers=running.operator)
        about = json.loads(answer.headers["X-Export"])
        catalogue = (await running.admin.get(f"{ADMIN}/catalogue")).json()
        model = recommender_of(about, load(answer.content), catalogue["items"])
        assert about["version"] == 2
        model.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert loaded.user_ids.tolist() == []
    content = FPL_SERVER.first_content(FPL_SERVER.settle(FPL(triples=2), small_world(), loaded), small_world(), loaded)
    assert same_bits(content.tables["vectors"], model.item_vectors)
    split = split_random(small_world(), 0.3, seed=1)
    assert evaluate(loaded, split, at=3).means["user_coverage"] == 1.0


async def test_the_overview_names_what_a_fold_moved_most_and_where_reports_came_from(sqlite_store):
    async with serving(sqlite_store, ONE) as running:
        device = await running.device()
        assert (await device.take_part(some_update(1))).status_code == 201
        await running.version(1)
        told = (await running.admin.get("/admin/api/v1/overview", headers=running.operator)).json()
        titles = [item["title"] for item in json.loads(running.service.config.catalogue.content)["items"]]
        moves = [entry["move"] for entry in told["moved_most"]]
        assert {entry["item"] for entry in told["moved_most"]} <= set(titles)
        assert moves == sorted(moves, reverse=True)
        assert told["largest_move"] == moves[0] > 0
        assert (told["held_rows"], told["capped_rows"]) == (0, 0), "a small catalogue is left alone"
        assert told["busiest_range_reports"] == 1
        assert b"federank_busiest_range_reports 1.0" in (await running.admin.get("/metrics")).content


async def test_the_overview_tells_when_rounds_ended_and_how_many_clients_there_were(store):
    async with serving(store, ONE) as running:
        staying = await running.device()
        await play(running, 1)
        leaving = await running.device()
        assert (await running.client.delete("/api/v1/devices/me", headers=leaving.headers)).status_code == 204
        assert (await staying.take_part(some_update(5))).status_code == 201
        await running.version(2)
        await running.open_round(2)
        assert (await ask(running, "POST", "/rollback", json={"version": 1}))[0] == 200
        await running.version(3)
        _, told = await ask(running, "GET", "/overview")
        rounds = {entry["number"]: entry for entry in told["rounds"]}
        assert [(rounds[n]["devices"], rounds[n]["departures"]) for n in (0, 1)] == [(2, 0), (2, 1)]
        ends = [entry["ended"] for _, entry in sorted(rounds.items()) if entry["state"] in ("folded", "abandoned")]
        assert ends == sorted(ends)
        assert rounds[2]["state"] == "abandoned", "going back gives up what was open"
        assert all(entry["ended"] is None for entry in told["rounds"] if entry["state"] == "open")
        assert told["limits"] == {"minimum": 1, "enough": 1, "deadline": running.service.latest.rounds.deadline}


def test_addresses_are_counted_by_what_one_network_gives_out():
    from federank.service.server.http.limits import Ranges, range_of

    assert range_of("203.0.113.7") == range_of("203.0.113.250") != range_of("203.0.114.7")
    assert range_of("2001:db8:1:2::3") == range_of("2001:db8:1:ff::1") != range_of("2001:db8:2::1")
    assert range_of("unix") == "unix"
    ranges = Ranges(remembered=3)
    for address in ("203.0.113.7", "203.0.113.8", "198.51.100.1", "203.0.113.9"):
        ranges.note(address)
    assert ranges.busiest() == 2, "only the latest count"


async def test_version_0_has_no_round_s_figures(sqlite_store):
    async with serving(sqlite_store, {"target": 1} | PATIENT) as running:
        device = await running.device()
        await device.take_part(some_update(1))
        await running.version(1)
        answer = await running.admin.get("/admin/api/v1/versions", headers=running.operator)
        figures = {entry["version"]: (entry["reports"], entry["drift"]) for entry in answer.json()["versions"]}
        assert figures[0] == (None, None)
        assert figures[1][0] == 1
