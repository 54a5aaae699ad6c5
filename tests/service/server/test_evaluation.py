"""Federated evaluation: randomised answers by version, and an automatic rollback when they get worse."""

from tests.service.federations import ONE, opened, same_bits, serving, some_update, stored

from federank.privacy.accountant import MOST_ANSWERS
from federank.service.server.store import evaluation as hits
from federank.service.server.store.evaluation import Judged, fallen, judged_versions, keep_hit, pooled, report_of


def answers(connection, version, count, yes):
    with connection.transaction():
        for number in range(count):
            keep_hit(connection, version, b"%d-%d" % (version, number), number < yes)


async def report(running, device, **hit):
    answer = await running.client.post("/api/v1/hits", json=hit, headers=device.headers)
    return answer.status_code, answer.json().get("error")


async def test_client_answers_once_per_model_it_was_sent(store):
    async with serving(store, ONE) as running:
        device, other = await running.devices(2)
        ticket = await device.ticket()
        assert await report(running, device, ticket=ticket, hit=True) == (201, None)
        assert await report(running, device, ticket=ticket, hit=False) == (200, None), "the first answer stands"
        for wrong in (
            {"version": 0, "hit": True},
            {"ticket": ticket, "hit": 1},
            {"ticket": 7, "hit": True},
            {},
            {"ticket": ticket, "hit": True, "measure": "squared"},
        ):
            assert (await report(running, device, **wrong))[0] == 422
        assert await report(running, other, ticket=ticket, hit=True) == (404, "foreign")
        assert (await running.client.post("/api/v1/hits", json={"ticket": ticket, "hit": True})).status_code == 401
        [entry] = (await running.overview())["evaluation"]
        assert (entry["version"], entry["answers"]) == (0, 1)
        assert 0 <= entry["low"] <= entry["share"] <= entry["high"] <= 1
    [[reporter]] = stored(store, "SELECT reporter FROM hits")
    assert device.name.encode() not in bytes(reporter)


async def test_one_client_cannot_roll_a_federation_back(store):
    """400 invented answers of one client, about versions that it never got and about those that it got: 5 count."""
    async with serving(store, ONE, {"roll_back_when_worse": True, "keep_updates": True}) as running:
        device = await running.device()
        for number in range(7):
            ticket = await device.ticket()
            expected = (201, None) if number < MOST_ANSWERS else (409, "answered")
            assert await report(running, device, ticket=ticket, hit=False) == expected
            await device.send(ticket, some_update(number))
            await running.version(number + 1)
        for number in range(40):
            assert (await report(running, device, ticket=ticket[:-1] + "AB"[number % 2], hit=False))[0] in (
                200,
                404,
                409,
            )
        assert stored(store, "SELECT COUNT(*) FROM hits") == [(MOST_ANSWERS,)]
        assert "rollback" not in [line["action"] for line in (await running.log())["actions"]]


async def test_significant_fall_is_rolled_back_once(sqlite_store, monkeypatch):
    monkeypatch.setattr(hits, "WINDOW", 100)
    async with serving(sqlite_store, ONE, {"roll_back_when_worse": True, "keep_updates": True}) as running:
        device = await running.play(3)
        good = running.service.latest.models.get(2) or running.service.latest.model
        with opened(sqlite_store) as connection:
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
        with opened(sqlite_store) as connection:
            assert fallen(connection) is None, "the comparison begins again"
        await device.take_part(some_update(10))
        await running.version(6)
        log = await running.log()
        rollbacks = [line for line in log["actions"] if line["action"] == "rollback"]
        assert [(line["to"], line["by"]) for line in rollbacks] == [(2, "evaluation")]
        assert log["unbroken"]


def test_trend_pools_versions_with_few_answers():
    judged = [Judged(9, 30, 20), Judged(8, 25, 15), Judged(7, 60, 50), Judged(5, 10, 1)]
    assert pooled(judged, 50) == [Judged(9, 55, 35), Judged(7, 60, 50)], "the oldest ten answers are too few"
    assert pooled(judged, 200) == []


def test_intervals_stay_within_bounds():
    for yes in (0, 1):
        entry = report_of(Judged(3, 1, yes, 1, yes), span=4.0)
        assert all(0 <= entry[name] <= 1 for name in ("share", "low", "high"))
        assert 0 <= entry["mae_low"] <= entry["mae"] <= entry["mae_high"] <= 4


def test_ratings_have_intervals_in_stars():
    found = report_of(Judged(3, 100, 60), span=4.0)
    assert found["mae_low"] < found["mae"] < found["mae_high"]
    assert found["mae"] == round(4 * (1 - found["share"]), 4)
    assert "mae" not in report_of(Judged(3, 100, 60))
