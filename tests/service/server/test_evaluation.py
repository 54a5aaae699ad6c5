"""Federated evaluation: randomised answers by version, and a way back by itself when they get worse."""

from tests.service.federations import PATIENT, in_a_loop, same_bits, serving, some_update, stored

from federank.service.server.store import evaluation as hits
from federank.service.server.store.database import Database
from federank.service.server.store.evaluation import Judged, fallen, judged_versions, keep_hit, pooled, told

ONE = {"target": 1} | PATIENT


def answers(connection, version, count, yes):
    with connection.transaction():
        for number in range(count):
            keep_hit(connection, version, b"%d-%d" % (version, number), number < yes)


@in_a_loop
async def test_a_device_answers_once_about_a_version_that_there_is(store):
    async with serving(store, ONE) as running:
        device = await running.device()

        async def tell(**told):
            answer = await running.client.post("/api/v1/hits", json=told, headers=device.headers)
            return answer.status_code

        assert await tell(version=0, hit=True) == 201
        assert await tell(version=0, hit=False) == 200, "the first answer stands"
        for wrong in (
            {"version": 1, "hit": True},
            {"version": 0, "hit": 1},
            {"version": True, "hit": True},
            {},
            {"version": 0, "hit": True, "measure": "squared"},
        ):
            assert await tell(**wrong) == 422
        assert (await running.client.post("/api/v1/hits", json={"version": 0, "hit": True})).status_code == 401
        told = (await running.admin.get("/admin/api/v1/overview", headers=running.operator)).json()["evaluation"]
        assert [(entry["version"], entry["answers"]) for entry in told] == [(0, 1)]
        assert told[0]["low"] < told[0]["share"] < told[0]["high"]
    [[reporter]] = stored(store, "SELECT reporter FROM hits")
    assert device.name.encode() not in bytes(reporter)


@in_a_loop
async def test_a_fall_is_told_from_chance_and_undone_once(sqlite_store, monkeypatch):
    monkeypatch.setattr(hits, "WINDOW", 100)
    async with serving(sqlite_store, ONE, {"roll_back_when_worse": True, "keep_updates": True}) as running:
        device = await running.device()
        for number in range(3):
            await device.take_part(some_update(number))
            await running.version(number + 1)
        good = running.service.latest.models.get(2) or running.service.latest.model
        database = Database(sqlite_store)
        with database.connection() as connection:
            answers(connection, 2, 120, 60)
            answers(connection, 3, 120, 55)
            assert fallen(connection) is None, "within what chance explains"
            connection.run("DELETE FROM hits WHERE version = 3")
            answers(connection, 3, 120, 25)
            assert fallen(connection).last_good == 2
            assert [entry.version for entry in judged_versions(connection, 5)] == [3, 2]
        await device.take_part(some_update(9))  # the next fold looks
        await running.version(5)
        assert same_bits(running.service.latest.model.vectors, good.vectors)
        with database.connection() as connection:
            assert fallen(connection) is None, "the comparison begins again"
        database.close()
        await device.take_part(some_update(10))
        await running.version(6)
        log = (await running.admin.get("/admin/api/v1/log", headers=running.operator)).json()
        rollbacks = [line for line in log["actions"] if line["action"] == "rollback"]
        assert [(line["to"], line["by"]) for line in rollbacks] == [(2, "evaluation")]
        assert log["unbroken"]


def test_a_trend_takes_versions_together_until_they_have_enough_answers():
    judged = [Judged(9, 30, 20), Judged(8, 25, 15), Judged(7, 60, 50), Judged(5, 10, 1)]
    assert pooled(judged, 50) == [Judged(9, 55, 35), Judged(7, 60, 50)], "the oldest ten answers are too few"
    assert pooled(judged, 200) == []


def test_where_ratings_are_judged_an_interval_is_told_in_stars():
    found = told(Judged(3, 100, 60), span=4.0)
    assert found["mae_low"] < found["mae"] < found["mae_high"]
    assert found["mae"] == round(4 * (1 - found["share"]), 4)
    assert "mae" not in told(Judged(3, 100, 60))
