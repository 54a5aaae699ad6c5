"""A helper answers one set per round; every attack on it that is not a limit is carried out here."""

import io
import json

import numpy as np
import pytest
from tests.secagg.worlds import LENGTH
from tests.service.helper.helpers import ORIGIN, Leader, Played, helping, in_round, terms

from federank.secagg.canonical import canonical
from federank.secagg.exchange import (
    SIGNATURE_HEADER,
    decode_answer,
    encode_reports,
    read_record,
    set_digest,
    sign_request,
    sum_digest,
)
from federank.secagg.keys import fingerprint, follow, new_private_key, public_key_of
from federank.secagg.ring import centred
from federank.secagg.round_config import read_offer
from federank.service.helper.rounds import HelperSettings
from federank.service.helper.service import open_helper
from federank.service.helper.store import count_rounds
from federank.service.server.logs import Log


async def test_a_round_is_offered_prepared_and_answered(store, tmp_path):
    async with helping(store, tmp_path) as (_, client):
        leader = await Leader.of(client, noise=0)
        offered = await leader.offer(0)
        played = Played(offered)
        stands = await leader.prepare(0, played.reports)
        assert stands.json() == {"stands": "11111"}
        answer = await leader.answer(0, played.reports)
        record, masks = decode_answer(answer.content, LENGTH)
        np.testing.assert_array_equal(centred(played.shares + masks), played.messages.sum(axis=0))
        told = read_record(record, leader.key)
        assert (told.messages, told.round, told.sum) == (5, 0, sum_digest(masks).hex())
        assert told.set == set_digest([report.id for report in played.reports]).hex()
        # What it publishes is the same, for anyone.
        assert (await leader.get(0, "record")).content == record
        assert (await leader.get(0, "sum")).status_code == 403  # but a sum without noise
        assert (await leader.get(0, "set")).content == b"".join(sorted(report.id for report in played.reports))
        assert read_offer((await leader.get(0, "offer")).content, leader.key) == offered
        listed = await client.get(f"/federations/{leader.config.digest().hex()}/rounds")
        assert listed.json() == {"rounds": [{"round": 0, "state": "answered"}], "successor": ""}


async def test_answer_has_the_noise_of_the_config(sqlite_store, tmp_path):
    async with in_round(sqlite_store, tmp_path, noise=4096) as (leader, played):
        _, masks = decode_answer((await leader.answer(0, played.reports)).content, LENGTH)
        noise = centred(played.shares + masks) - played.messages.sum(axis=0)
        assert 500 < np.abs(noise).mean() < 15_000
        assert (await leader.get(0, "sum")).content == masks.tobytes()  # anyone may fetch it


async def test_attack_asking_again_and_again_for_fresh_noise(sqlite_store, tmp_path):
    async with in_round(sqlite_store, tmp_path, noise=4096) as (leader, played):
        first = await leader.answer(0, played.reports)
        again = [await leader.answer(0, played.reports[::-1]) for _ in range(3)]
        assert {answer.content for answer in again} == {first.content}


async def test_attack_a_set_and_then_the_set_without_one(store, tmp_path):
    async with in_round(store, tmp_path) as (leader, played):
        assert (await leader.answer(0, played.reports)).status_code == 200
        for other in (played.reports[:-1], played.reports[1:], Played(await leader.offer(0), seed=7).reports):
            assert (await leader.answer(0, other)).status_code == 409
        assert (await leader.abandon(0)).status_code == 409
        assert (await leader.prepare(0, played.reports)).status_code == 409


async def test_attack_a_cohort_that_is_too_small_or_filled_up_with_repeats(sqlite_store, tmp_path):
    async with in_round(sqlite_store, tmp_path, least_cohort=5, largest_cohort=6) as (leader, played):
        few, first = played.reports[:4], played.reports[0]
        for reports in (few, [*few, first], [], played.reports + played.reports):
            assert (await leader.answer(0, reports)).status_code in (413, 422)
        # One user's seal under another id, so that the ids are distinct: it does not stand, and nothing is given.
        assert (await leader.answer(0, [*few, first._replace(id=b"x" * 16)])).status_code == 422
        assert (await leader.answer(0, played.reports)).status_code == 200


async def test_invalid_reports_are_named_without_a_reason(sqlite_store, tmp_path):
    async with helping(sqlite_store, tmp_path) as (service, client):
        leader = await Leader.of(client)
        played = Played(await leader.offer(0))
        one, other = played.reports[:2]
        spoilt = [one._replace(part_leader=other.part_leader), one._replace(sealed=other.sealed), one, one]
        answers = [(await leader.prepare(0, [report])).json() for report in spoilt]
        assert answers == [{"stands": digit} for digit in "0011"]
        assert b'federank_helper_reports_total{outcome="does not stand"} 2.0' in service.metrics.text({})


async def test_attack_another_offer_for_one_user(sqlite_store, tmp_path):
    """A round has one offer: another model, version, stage or time for the same number is refused."""
    async with helping(sqlite_store, tmp_path) as (_, client):
        leader = await Leader.of(client)
        first = await leader.ask_offer(3)
        assert (await leader.ask_offer(3)).content == first.content
        for change in ({"model": "0" * 64}, {"version": 5}, {"stage": 2}, {"seconds": 9}):
            assert (await leader.ask_offer(3, **change)).status_code == 409
        assert (await leader.ask_offer(4)).json()["error"] == "under-way"
        assert (await leader.abandon(3)).status_code == 200
        assert (await leader.ask_offer(2)).json()["error"] == "older"
        fresh = await leader.offer(4)
        assert fresh.key != read_offer(first.content, leader.key).key


async def test_abandoned_round_answers_nothing(store, tmp_path):
    async with helping(store, tmp_path) as (service, client):
        leader = await Leader.of(client)
        played = Played(await leader.offer(0))
        ended = await leader.abandon(0)
        assert read_record(ended.content, leader.key).state == "abandoned"
        assert (await leader.abandon(0)).content == ended.content
        assert (await leader.prepare(0, played.reports)).status_code == 409
        assert (await leader.answer(0, played.reports)).status_code == 409
        assert (await leader.get(0, "sum")).content == b""
        assert not list((tmp_path / "keys").iterdir())
        assert (await leader.abandon(9)).status_code == 404
        assert service.metrics.text({}).count(b'reason="ended"') > 0


async def test_requests_need_the_leaders_signature(sqlite_store, tmp_path):
    async with helping(sqlite_store, tmp_path) as (_, client):
        leader = await Leader.of(client)
        played = Played(await leader.offer(0))
        stranger = new_private_key()
        for act in ("offer", "prepare", "answer", "abandon"):
            assert (await leader.post(leader.path(1, act), b"", private=stranger)).status_code == 401
            assert (await client.post(leader.path(1, act), content=b"")).status_code == 401
        # A signature of one request does not serve for another, nor for another body.
        path = leader.path(1, "abandon")
        headers = {SIGNATURE_HEADER: sign_request(leader.private, path, b"")}
        assert (await client.post(leader.path(0, "abandon"), headers=headers)).status_code == 401
        assert (await client.post(path, content=b"1", headers=headers)).status_code in (401, 413)
        assert (await leader.answer(0, played.reports)).status_code == 200


async def test_unsigned_bodies_are_not_read(sqlite_store, tmp_path):
    """A set may have 22 MB: a hundred connections of a stranger would fill the helper's memory."""
    async with helping(sqlite_store, tmp_path) as (_, client):
        leader, read = await Leader.of(client), []

        async def body():
            for piece in range(4):
                read.append(piece)
                yield bytes(1000)

        stranger = {SIGNATURE_HEADER: sign_request(new_private_key(), leader.path(0, "answer"), b"")}
        for headers in ({}, stranger):
            answer = await client.post(leader.path(0, "answer"), content=body(), headers=headers)
            assert (answer.status_code, read) == (401, [])


async def test_federations_are_separate_and_bounded(sqlite_store, tmp_path):
    async with helping(sqlite_store, tmp_path, most_federations=2) as (_, client):
        one, other = await Leader.of(client), await Leader.of(client, federation_id="0" * 32, private=new_private_key())
        first = Played(await one.offer(0))
        await other.offer(0)
        # Reports of one federation's round do not stand in the other's, though both are round 0.
        assert (await other.prepare(0, first.reports)).json() == {"stands": "00000"}
        assert (await one.prepare(0, first.reports)).json() == {"stands": "11111"}
        with pytest.raises(AssertionError, match="as many federations"):
            await Leader.of(client, federation_id="1" * 32)
        await Leader.of(client)  # one that is served already may ask again


async def test_config_of_another_helper_is_refused(sqlite_store, tmp_path):
    async with helping(sqlite_store, tmp_path) as (_, client):
        other_key = public_key_of(new_private_key()).hex()
        for change in ({"helper_key": other_key}, {"helper_origin": "https://else.example"}):
            with pytest.raises(AssertionError, match="config"):
                await Leader.of(client, **change)


def spoilt_requests(leader, played):
    """Requests that are not of the protocol, with what is answered."""
    reports, good = encode_reports(played.reports), json.loads(terms().to_bytes())
    return {
        "reports cut": ("prepare", reports[:-1], 422),
        "a set cut": ("answer", reports[:-1], 422),
        "too many reports": ("prepare", reports * 300, 413),
        "too large a set": ("answer", reports * 30, 413),
        "terms that are no JSON": ("offer", b"terms", 422),
        "terms with spaces": ("offer", json.dumps(good).encode(), 422),
        "terms without a model": ("offer", canonical({name: good[name] for name in good if name != "model"}), 422),
        "a length of none": ("offer", canonical(good | {"length": 0}), 422),
        "a length beyond the catalogue": ("offer", canonical(good | {"length": 10_000}), 422),
        "no time": ("offer", canonical(good | {"seconds": 0}), 422),
        "a year": ("offer", canonical(good | {"seconds": 366 * 86400}), 422),
        "a number as text": ("offer", canonical(good | {"version": "4"}), 422),
        "too many bytes": ("offer", b" " * 3000, 413),
    }


async def test_malformed_requests_are_refused_and_counted(sqlite_store, tmp_path):
    log = io.StringIO()
    async with helping(sqlite_store, tmp_path, log=Log(log)) as (service, client):
        leader = await Leader.of(client)
        played = Played(await leader.offer(0))
        cases = spoilt_requests(leader, played)
        for name, (act, body, status) in cases.items():
            answer = await leader.post(leader.path(1 if act == "offer" else 0, act), body)
            assert answer.status_code == status, (name, answer.text)
        for path in ("/federations/zz/rounds", f"/federations/{'0' * 64}/rounds", "/nothing", "/identity/"):
            assert (await client.get(path)).status_code == 404
        assert (await client.get(leader.path("1e3", "record"))).status_code == 404
        assert (await client.delete("/identity")).status_code == 405
        assert (await leader.get(0, "record")).status_code == 404
        assert (await leader.answer(0, played.reports)).status_code == 200
        counted = service.metrics.text(await service.ask(count_rounds)).decode()
        assert 'federank_helper_refusals_total{reason="malformed"}' in counted
        assert 'federank_helper_rounds{state="answered"} 1.0' in counted
    # Nothing that opens or names anything is in the log.
    for report in played.reports:
        assert report.id.hex() not in log.getvalue()
    shown = log.getvalue() + repr(service.helper) + repr(service.helper.identities)
    assert service.helper.identity.private.hex() not in shown


async def test_identity_and_health_are_public(sqlite_store, tmp_path):
    async with helping(sqlite_store, tmp_path) as (service, client):
        answer = await client.get("/identity")
        key = service.helper.identity.public
        shown = {"key": key.hex(), "fingerprint": fingerprint(key), "origin": ORIGIN, "successions": []}
        assert answer.json() == shown
        assert answer.headers["access-control-allow-origin"] == "*"
        assert (await client.get("/health")).json() == {"alive": True}
        assert (await client.get("/ready")).json() == {"ready": True}
        assert service.helper.identity.private.hex() not in answer.text


async def test_new_identity_is_signed_by_the_old_one(sqlite_store, tmp_path):
    async with helping(sqlite_store, tmp_path) as (_, client):
        leader = await Leader.of(client, noise=0)
        first = await leader.offer(0)
        played = Played(first)
    renewed = open_helper(sqlite_store, ORIGIN, tmp_path / "keys", HelperSettings(), Log(None), new_identity=True)
    renewed.stop()
    async with helping(sqlite_store, tmp_path) as (_, client):
        told = (await client.get("/identity")).json()
        steps = [[bytes.fromhex(step[part]) for part in ("old", "new", "signature")] for step in told["successions"]]
        now = follow(leader.key, steps)
        assert now == bytes.fromhex(told["key"]) != leader.key
        leader.client = client
        again = await leader.ask_offer(0)  # a leader that never got it asks again, and knows the new key alone
        assert read_offer(again.content, now).digest() == first.digest()
        answer = await leader.answer(0, played.reports)
        record, _ = decode_answer(answer.content, LENGTH)
        assert read_record(record, now).messages == 5


async def test_requests_of_one_address_are_limited(sqlite_store, tmp_path):
    async with helping(sqlite_store, tmp_path, address_rate=0.1) as (_, client):
        codes = [(await client.get("/identity")).status_code for _ in range(8)]
        assert (codes[0], codes[-1]) == (200, 429)


async def test_offers_follow_the_config(sqlite_store, tmp_path):
    async with helping(sqlite_store, tmp_path) as (_, client):
        leader = await Leader.of(client)
        lengths = [{"length": length} for length in (LENGTH - 1, 8 * 3 + 3)]
        for change in ({"stage": 3}, {"stage": -1}, *lengths, {"stage": 0, "length": 9}):
            assert (await leader.ask_offer(3, **change)).status_code == 422, change
        offer = read_offer((await leader.ask_offer(3, stage=0, length=8)).content, leader.key)
        assert (offer.stage, offer.columns, offer.clip, offer.scale, offer.noise) == (0, 1, "2.5", 4096, 96)
