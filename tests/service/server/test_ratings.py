"""A federation of ratings on the server: how it begins, what it takes, and how its iterations pass."""

import numpy as np
import pytest
from tests.rated_worlds import two_opinions
from tests.service.federations import NO_LIMITS, PATIENT, Device, in_a_loop

import federank as fr
from federank.errors import DataError, ModelError, SettingError
from federank.protocol.ratings.codec import decode_rating_rows
from federank.protocol.ratings.federations import RatingFederationSettings
from federank.protocol.ratings.messages import RatingUpdate, encode_rating_message
from federank.service.server.families.ratings import PMF, SVDPP, first_content, iteration_of, judge, settle, summand
from federank.service.server.federation.establishing import establish
from federank.service.server.federation.opening import Demand, open_store
from federank.service.server.federation.published import first_model
from federank.service.server.http.app import public_app
from federank.service.server.logs import Log
from federank.service.server.service import open_service
from federank.service.server.settings import RoundSettings, TrustSettings
from federank.service.server.store.database import Database
from federank.service.server.store.hits import Judged, judged_versions
from federank.service.server.store.schema import migrate

FACTORS, ITEMS = 3, 24


def update(seed=0, items=(1, 4, 9), length=1.0):
    rng = np.random.default_rng(seed)
    chosen, person = np.array(items, np.int32), rng.normal(size=FACTORS)
    vectors = np.outer(rng.normal(size=len(chosen)), person / np.linalg.norm(person) * length).astype(np.float32)
    none = np.zeros(0, np.int32), np.zeros((0, FACTORS), np.float32)
    return RatingUpdate(chosen, vectors, *none)


def settings(**more):
    return RatingFederationSettings(factors=FACTORS, regulariser=0.0, **more)


def published(**more):
    data = two_opinions()
    return first_model(first_content(settle(settings(**more), data, None), data, None))


def test_the_scale_is_found_in_the_data_and_ratings_off_the_range_are_refused():
    data = two_opinions()
    assert settle(settings(), data, None).step == 1.0
    assert settle(settings(step=0.5), data, None).step == 0.5
    assert settle(settings(), data, None).learning_rate == 0.8
    with pytest.raises(DataError, match="outside the declared range"):
        settle(settings(highest=4.0), data, None)


def test_an_iteration_passes_with_as_many_reports_as_there_are_devices():
    model, recipe = published(), PMF.recipe(settings(), ITEMS, 4)
    for _ in range(3):
        model = model.followed_by(PMF.fold(recipe, model, 0, [update(), update(1)]))
    assert iteration_of(model) == 1, "six reports of four devices"
    model = model.followed_by(PMF.fold(recipe, model, 0, [update(), update(1)]))
    assert iteration_of(model) == 2
    assert np.flatnonzero(model.content.tables["heard"]).tolist() == [1, 4, 9]


def test_an_item_steps_by_the_mean_of_its_reports_at_the_rate_of_the_iteration():
    model, recipe = published(), PMF.recipe(settings(), ITEMS, 2)
    one, other = update(), update(1, items=(4, 7))
    after = model.followed_by(PMF.fold(recipe, model, 0, [one, other]))
    moves = model.vectors - after.vectors
    np.testing.assert_allclose(moves[4], 0.8 * (one.vectors[1] + other.vectors[0]) / 2, atol=1e-6)
    np.testing.assert_allclose(moves[7], 0.8 * other.vectors[1], atol=1e-6)
    again = after.followed_by(PMF.fold(recipe, after, 1, [one, other]))
    np.testing.assert_allclose((after.vectors - again.vectors)[7], 0.72 * other.vectors[1], atol=1e-6)


def test_rows_that_are_too_long_are_counted_and_shortened():
    form = PMF.form(settings(), ITEMS, 2.0)
    body = encode_rating_message(update(length=50.0))
    assert judge(body, form) > 0
    lengths = np.linalg.norm(summand(body, form).vectors, axis=1)
    assert lengths.max() == pytest.approx(2.0, rel=1e-5)


def test_a_federation_goes_on_from_a_trained_model_of_its_own_method():
    data = two_opinions()
    trained = fr.PMF(style="batch", factors=FACTORS, iterations=7).fit(data)
    content = first_content(settle(settings(), data, trained), data, trained)
    np.testing.assert_array_equal(content.tables["vectors"], trained.item_vectors)
    assert (content.overall["iteration"][0], content.tables["heard"].min()) == (7, 1)
    with pytest.raises(ModelError, match="of its own method"):
        settle(SVDPP.settings(factors=FACTORS), data, trained)


def test_what_a_federation_of_ratings_cannot_be_is_refused_in_a_sentence(tmp_path):
    store = f"sqlite:///{tmp_path / 'f.sqlite'}"
    for demand, match in (
        ({"rounds": {"mode": "buffered"}}, "belong to one version"),
        ({"settings": {"triples": 4}}, "has no --triples"),
        ({"suggested_policy": {"sharing": "deniable"}}, "suggest-sharing is deniable"),
    ):
        with pytest.raises(SettingError, match=match):
            open_store(store, Demand(data=two_opinions, source="two", method="pmf", accepts_few=True, **demand))
    assert not (tmp_path / "f.sqlite").exists()


@in_a_loop
async def test_devices_are_told_the_scale_the_suggestion_and_the_iteration(sqlite_store):
    import httpx

    database = Database(sqlite_store)
    with database.connection() as connection:
        migrate(connection)
        rounds = RoundSettings(target=2, over_selection=1.0, **PATIENT)
        establish(connection, settings(rho=1.5), two_opinions(), rounds, family=PMF)
    database.release()
    service = open_service(sqlite_store, TrustSettings(**NO_LIMITS | {"refuse_implausible": True}), Log(None))
    await service.start()
    transport = httpx.ASGITransport(public_app(service))
    try:
        async with httpx.AsyncClient(transport=transport, base_url="http://test", timeout=60) as client:
            told = (await client.get("/api/v1/federation")).json()
            assert (told["method"], told["recipe"]["step"], told["recipe"]["highest"]) == ("pmf", 1.0, 5.0)
            assert told["suggested_policy"]["rho"] == 1.5
            assert told["suggested_policy"]["sampling"] == "fixed"
            liar = await Device.enrolled(client)
            made_up = update()._replace(vectors=np.eye(FACTORS, dtype=np.float32))
            answer = await liar.take_part(encode_rating_message(made_up))
            assert (answer.status_code, answer.json()["error"]) == (422, "implausible")
            for seed in range(2):
                person = liar if seed == 0 else await Device.enrolled(client)
                answer = await person.take_part(encode_rating_message(update(seed)))
                assert answer.status_code == 201, answer.text
            for _ in range(500):
                rows = decode_rating_rows((await client.get("/api/v1/model")).content, FACTORS, ITEMS, implicit=False)
                if rows.version == 1:
                    break
            assert (rows.version, rows.iteration, int(rows.heard.sum())) == (1, 1, 3)
            for person, measure in ((liar, "squared"), (await Device.enrolled(client), "absolute")):
                said = {"version": 0, "hit": True, "measure": measure}
                assert (await client.post("/api/v1/hits", json=said, headers=person.headers)).status_code == 201
            wrong = {"version": 1, "hit": True, "measure": "cubed"}
            assert (await client.post("/api/v1/hits", json=wrong, headers=liar.headers)).status_code == 422
            [judged] = await service.read(lambda connection: judged_versions(connection, 5))
            assert judged == Judged(0, answers=1, yes=1, squared_answers=1, squared_yes=1)
    finally:
        await service.stop()
