"""What an operator does to a running federation: a way back, bans, a new token, a log that only grows, an export."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner
from safetensors.numpy import load
from tests.service.federations import (
    FPL_SERVER,
    ITEMS,
    KEEP,
    ONE,
    PATIENT,
    Served,
    establish_small,
    opened,
    refusal,
    same_bits,
    serving,
    small_world,
    some_update,
    stored,
)

from federank.cli import federank
from federank.data.splits import split_random
from federank.errors import BadFile
from federank.evaluation.evaluate import evaluate
from federank.federation.server import lowest_rows
from federank.methods.fpl.method import FPL
from federank.methods.model_folder import load_model
from federank.service.operator import recommender_of
from federank.service.server.model_versions import first_model
from federank.service.server.store import versions as store_versions
from federank.service.server.store.queries import close_round, open_round
from federank.service.server.store.versions import kept_versions, model_at, model_with_state, publish, roll_back
from federank.service.server.store.writer import all_actions, is_unbroken, note_action


async def test_rollback_publishes_an_earlier_version_as_a_new_one(store):
    async with serving(store, ONE, KEEP) as running:
        await running.play(2)
        earlier = running.service.latest.model
        await running.play(2, seed=10)
        later, number = running.service.latest.model, running.service.latest.round.number
        assert await running.ask("POST", "rollback", json={"version": 2}) == (200, {"version": 5, "content_of": 2})
        await running.version(5)
        now = running.service.latest.model
        assert same_bits(now.vectors, earlier.vectors)
        assert same_bits(now.content.tables["biases"], earlier.content.tables["biases"])
        differing = np.flatnonzero((later.vectors != earlier.vectors).any(axis=1))
        assert set(now.rows_since(4)) == set(differing), "who has the newest is sent what differs from it"
        await running.until(lambda view: view.round.number > number and view.round.state == "open")
        await running.play(1, seed=20)
        learnt = running.service.latest.model
        assert learnt.version == 6
        assert not same_bits(learnt.vectors, earlier.vectors), "rounds go on from the version gone back to"
        await running.until(lambda view: view.aggregated == 5)


async def test_rollback_discards_the_open_round(store):
    async with serving(store, {"target": 2} | PATIENT) as running:
        device = await running.device()
        await device.upload(some_update(1))
        assert (await running.ask("POST", "rollback", json={"version": 0}))[0] == 200
        await running.until(lambda view: view.round.number == 1 and view.round.state == "open")
        assert stored(store, "SELECT state, reports FROM rounds WHERE number = 0") == [("abandoned", 1)]
        assert [bytes(body) for (body,) in stored(store, "SELECT body FROM uploads")] == [b""]
        assert stored(store, "SELECT abandoned FROM tallies") == [(1,)]
        await device.upload(some_update(2))


async def test_rollback_needs_a_version_that_is_kept(sqlite_store):
    async with serving(sqlite_store, ONE) as running:
        for wanted, expected in ((7, 404), ("0", 422), (True, 422), (None, 422)):
            assert (await running.ask("POST", "rollback", json={"version": wanted}))[0] == expected
        assert [entry["version"] for entry in (await running.ask("GET", "versions"))[1]["versions"]] == [0]
        assert running.service.latest.model.version == 0


def fold(connection, number, version_of):
    open_round(connection, number, version_of.version)
    close_round(connection, number, 0)
    rows = {name: table + 1 for name, table in version_of.content.tables.items()}
    model = version_of.followed_by(version_of.content._replace(tables=rows))
    publish(connection, number, model, {"drift": 0.0, "seconds": 0.0}, False)
    return model


def test_versions_that_are_kept_can_be_recomputed(sqlite_store, monkeypatch):
    monkeypatch.setattr(store_versions, "FULL_MODEL_EVERY", 4)
    monkeypatch.setattr(store_versions, "KEPT_FULL", 3)
    monkeypatch.setattr(store_versions, "KEPT_EVERY", 16)
    establish_small(sqlite_store)
    with opened(sqlite_store) as connection:
        first = model = model_with_state(connection)
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


async def test_leaving_withdraws_an_upload_of_the_open_round(store):
    async with serving(store, {"target": 2} | PATIENT, KEEP) as running:
        leaving = await running.device()
        before = running.service.latest.model
        await leaving.upload(some_update(1))
        assert (await leaving.leave()).status_code == 204
        assert stored(store, "SELECT COUNT(*) FROM uploads") == [(0,)]
        await running.upload(some_update(2), some_update(3))
        await running.version(1)
        rate, sums = np.float32(0.5), np.zeros_like(before.vectors)
        for seed in (2, 3):
            update = some_update(seed)
            sums[update.items] += update.vectors
        assert np.allclose(running.service.latest.model.vectors, before.vectors + rate * sums, atol=1e-6)


async def test_ban_refuses_a_client_and_withdraws_its_upload(store):
    async with serving(store, {"target": 2} | PATIENT) as running:
        banned, other = await running.devices(2)
        ticket = await banned.ticket()
        assert (await banned.send(ticket, some_update(1))).status_code == 201
        status, done = await running.ask("POST", "ban", json={"client": banned.name})
        assert (status, done["was_banned"]) == (200, False)
        assert stored(store, "SELECT COUNT(*) FROM uploads") == [(0,)]
        assert refusal(await banned.send(ticket, some_update(1))) == (403, "banned")
        await running.until(lambda view: view.departures == 1)
        assert refusal(await banned.work(wait=0)) == (403, "banned")
        assert refusal(await banned.leave()) == (403, "banned")
        await other.upload(some_update(2))
        assert (await running.ask("POST", "ban", json={"client": banned.name}))[1]["was_banned"] is True
        assert (await running.ask("POST", "ban", json={"client": "nobody"}))[0] == 404
        assert stored(store, "SELECT clients FROM tallies") == [(1,)]


async def test_new_token_replaces_the_old_one(sqlite_store):
    async with serving(sqlite_store, ONE) as running:
        status, done = await running.ask("POST", "token")
        assert (status, (await running.ask("GET", "log"))[0]) == (200, 401), "the old token is no longer accepted"
        running.operator = {"Authorization": f"Bearer {done['token']}"}
        assert (await running.ask("GET", "log"))[0] == 200
        assert done["token"] not in json.dumps(stored(sqlite_store, "SELECT action, detail FROM actions"))


async def test_log_has_every_action_and_shows_changes(store):
    async with serving(store, ONE) as running:
        device = await running.play()
        for paused in (True, False):
            await running.ask("POST", "rounds", json={"paused": paused})
        await running.ask("POST", "accuracy", json={"precision@10": 0.5})
        await running.ask("POST", "rollback", json={"version": 0})
        await running.ask("POST", "ban", json={"client": device.name})
        log = await running.log()
        actions = [line["action"] for line in log["actions"]]
        assert actions == ["established", "pause", "go on", "accuracy", "rollback", "ban"]
        assert log["unbroken"] is True
    with opened(store) as connection:
        for damage in ("DELETE FROM actions WHERE number = 2", "UPDATE actions SET detail = '{}' WHERE number = 4"):
            connection.raw.execute("BEGIN")
            connection.run(damage)
            assert not is_unbroken(all_actions(connection)), damage
            connection.raw.execute("ROLLBACK")
        with connection.transaction():
            note_action(connection, "another")
        assert is_unbroken(all_actions(connection))


def test_items_unknown_to_the_trained_model_start_low():
    """Drawn biases beside learnt ones, which are mostly lower, would lead every list."""
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
def test_admin_commands(tmp_path):
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


async def test_exported_model_starts_a_federation_and_is_evaluated(sqlite_store, tmp_path):
    async with serving(sqlite_store, ONE) as running:
        await running.play(3)
        answer = await running.admin.get("/admin/api/v1/export?version=2", headers=running.operator)
        about, (_, catalogue) = json.loads(answer.headers["X-Export"]), await running.ask("GET", "catalogue")
        model = recommender_of(about, load(answer.content), catalogue["items"])
        assert about["version"] == 2
        model.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert loaded.user_ids.tolist() == []
    content = FPL_SERVER.first_content(FPL_SERVER.settle(FPL(triples=2), small_world(), loaded), small_world(), loaded)
    assert same_bits(content.tables["vectors"], model.item_vectors)
    split = split_random(small_world(), 0.3, seed=1)
    assert evaluate(loaded, split, at=3).means["user_coverage"] == 1.0


async def test_overview_names_the_items_that_moved_most(sqlite_store):
    async with serving(sqlite_store, ONE) as running:
        await running.play()
        overview = await running.overview()
        titles = {item["title"] for item in json.loads(running.service.config.catalogue.content)["items"]}
        moves = [entry["move"] for entry in overview["moved_most"]]
        assert {entry["item"] for entry in overview["moved_most"]} <= titles
        assert moves == sorted(moves, reverse=True)
        assert overview["largest_move"] == moves[0] > 0
        assert (overview["held_rows"], overview["capped_rows"]) == (0, 0), "a small catalogue is left alone"
        assert overview["busiest_range_reports"] == 1
        assert "federank_busiest_range_reports 1.0" in await running.metrics()
        _, kept = await running.ask("GET", "versions")
        figures = {entry["version"]: (entry["reports"], entry["drift"]) for entry in kept["versions"]}
        assert (figures[0], figures[1][0]) == ((None, None), 1), "version 0 has no round"


async def test_overview_has_ends_of_rounds_devices_and_departures(store):
    async with serving(store, ONE) as running:
        staying = await running.device()
        await running.play()
        await (await running.device()).leave()
        await staying.upload(some_update(5))
        await running.version(2)
        await running.open_round(2)
        assert (await running.ask("POST", "rollback", json={"version": 1}))[0] == 200
        await running.version(3)
        overview = await running.overview()
        rounds = {entry["number"]: entry for entry in overview["rounds"]}
        assert [(rounds[n]["clients"], rounds[n]["departures"]) for n in (0, 1)] == [(2, 0), (2, 1)]
        ends = [entry["ended"] for _, entry in sorted(rounds.items()) if entry["state"] in ("aggregated", "abandoned")]
        assert ends == sorted(ends)
        assert rounds[2]["state"] == "abandoned", "a rollback discards the open round"
        assert all(entry["ended"] is None for entry in overview["rounds"] if entry["state"] == "open")
        assert overview["limits"] == {"minimum": 1, "enough": 1, "deadline": running.service.latest.rounds.deadline}


async def test_an_invitation_enrols_one_client(store):
    async with serving(store, PATIENT, {"invited_only": True}) as running:
        first, second = await running.invitations(2)
        bodies = ({}, *({"invitation": code} for code in ("guessed", first, first, 7)))
        answers = [await running.client.post("/api/v1/clients", json=body) for body in bodies]
        assert [answer.status_code for answer in answers] == [403, 403, 201, 403, 403]
        assert refusal(answers[-1]) == (403, "not-invited")
        assert (await running.client.post("/api/v1/clients", json={"invitation": second})).status_code == 201
        assert stored(store, "SELECT COUNT(*) FROM invites") == [(0,)]
        log = (await running.log())["actions"]
        assert (log[-1]["action"], log[-1]["count"]) == ("invite", 2)
        assert first not in str(log)
        for count in (0, 10_001, "3", True):
            assert (await running.ask("POST", "invitations", json={"count": count}))[0] == 422
