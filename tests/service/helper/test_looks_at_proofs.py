"""Where messages carry proofs: the helper looks at each in one place only, whoever asks, however often."""

import shutil

import numpy as np
from tests.secagg.worlds import LENGTH, bytes_from, messages
from tests.service.federations import refusal
from tests.service.helper.helpers import Leader, Played, helping

from federank.secagg.config import fields_of_check
from federank.secagg.exchange import decode_answer
from federank.secagg.proof.parameters import LIGHT
from federank.secagg.proof.preparing import accepts, decode_looks
from federank.secagg.ring import centred
from federank.secagg.upload import report_of, send


class Checked:
    """The messages, uploads and reports of a round's people, with proofs."""

    def __init__(self, offered, people=4):
        self.name, self.messages, random = offered.digest(), messages(people), bytes_from(8)
        self.uploads = [send(LIGHT, offered, message, random) for message in self.messages]
        self.reports = [report_of(self.name, upload, LIGHT) for upload in self.uploads]


def leading(client):
    return Leader.of(client, noise=0, **fields_of_check(64))


async def test_looks_show_that_proofs_hold(sqlite_store, tmp_path):
    async with helping(sqlite_store, tmp_path) as (service, client):
        leader = await leading(client)
        played = Checked(await leader.offer(0))
        spoilt = played.reports[3]._replace(part_wires=bytes(32))
        answer = await leader.prepare(0, [*played.reports[:3], spoilt])
        assert answer.status_code == 200
        looks = decode_looks(LIGHT, answer.content, 4)
        assert looks[3] is None
        for upload, report, look in zip(played.uploads[:3], played.reports, looks, strict=False):
            assert accepts(LIGHT, played.name, upload, report, look)
        told = await leader.answer(0, played.reports[:3])
        assert told.status_code == 200
        _, masks = decode_answer(told.content, LENGTH)
        shares = np.sum([upload.share for upload in played.uploads[:3]], axis=0, dtype=np.uint32)
        np.testing.assert_array_equal(centred(shares + masks), played.messages[:3].sum(axis=0))
        assert b'federank_helper_reports_total{outcome="does not stand"} 1.0' in service.metrics.text({})


async def test_attack_asking_for_looks_in_two_places(sqlite_store, tmp_path):
    """Asked again, asked after a crash, asked of a store that came back from a backup: the same look or none."""
    kept, backup = tmp_path / "federation.sqlite", tmp_path / "backup"
    async with helping(sqlite_store, tmp_path) as (_, client):
        leader = await leading(client)
        played = Checked(await leader.offer(0))
        first = await leader.prepare(0, played.reports)
        mixed = await leader.prepare(0, [report._replace(part_leader=bytes(32)) for report in played.reports])
        assert decode_looks(LIGHT, mixed.content, 4) == [None] * 4
    shutil.copy(kept, backup)
    async with helping(sqlite_store, tmp_path) as (_, client):
        leader.client = client
        assert (await leader.prepare(0, played.reports)).content == first.content
        assert (await leader.prepare(0, played.reports[::-1][:1])).content == first.content[-len(first.content) // 4 :]
        assert (await leader.answer(0, played.reports)).status_code == 200
        assert (await leader.prepare(0, played.reports)).status_code == 409
    for beside in tmp_path.glob("federation.sqlite*"):
        beside.unlink()
    shutil.copy(backup, kept)
    async with helping(sqlite_store, tmp_path) as (_, client):
        leader.client = client
        assert (await leader.prepare(0, played.reports)).status_code == 409  # the key is gone, and so is the point


async def test_reports_need_a_proof(sqlite_store, tmp_path):
    async with helping(sqlite_store, tmp_path) as (_, client):
        leader = await leading(client)
        plain = Played(await leader.offer(0))
        assert refusal(await leader.prepare(0, plain.reports)) == (422, "malformed")
