"""What a leader and a helper had in their hands in a real round: alone it tells no one's history from another's."""

import numpy as np
import pytest
from tests.service.server.secure.federations import federation, take_part
from tests.service.server.secure.records import records_of_both, records_of_helper, records_of_leader, tell_apart

from federank.secagg.config import config_from
from federank.secagg.proof.parameters import FULL
from federank.secagg.round_config import read_offer
from federank.service.helper import rounds as helper_rounds
from federank.service.server import secure_rounds as leader_rounds

pytestmark = pytest.mark.slow

PEOPLE = 16
HISTORIES = ([0, 1, 2, 3], [8, 9, 10, 11])
FAR = 6.0  # deviations that chance does not give in the life of this test


@pytest.fixture
def recorded(monkeypatch):
    """Everything that either server is handed of a message, while they play."""
    uploads, reports, keys = [], {}, set()

    def note_upload(content, length, check, read=leader_rounds.decode_upload):
        uploads.append(bytes(content))
        return read(content, length, check)

    def note_reports(private, terms, told, judge=helper_rounds.standing):
        keys.add(private)
        reports.update({report.id: report for report in told})
        return judge(private, terms, told)

    def note_report(check, private, terms, length, report, look=helper_rounds.look_at):
        keys.add(private)
        reports[report.id] = report
        return look(check, private, terms, length, report)

    monkeypatch.setattr(leader_rounds, "decode_upload", note_upload)
    monkeypatch.setattr(helper_rounds, "standing", note_reports)
    monkeypatch.setattr(helper_rounds, "look_at", note_report)
    return uploads, reports, keys


@pytest.mark.parametrize("projections", [0, FULL.projections])
async def test_one_servers_records_disclose_nothing_and_both_all(recorded, sqlite_store, tmp_path, projections):
    rounds = {"target": PEOPLE, "minimum": PEOPLE}
    async with federation(tmp_path, sqlite_store, rounds, projections=projections) as (_, running):
        config = config_from((await running.client.get("/api/v1/sums/config")).content)
        people = await running.devices(PEOPLE)
        sent = []
        for number, device in enumerate(people):
            sent.append(await take_part(device, HISTORIES[number % 2]))
            if number == 0:
                signed = (await running.client.get("/api/v1/sums/offer")).content
        await running.version(1)
    uploads, reports, keys = recorded
    offer, (key,) = read_offer(signed, config.helper_public()), keys
    leader = records_of_leader(config.norm_check(), offer, uploads)
    helper = records_of_helper(key, offer, list(reports.values()))
    both = records_of_both(leader, helper)
    assert len(leader) == len(helper) == len(both) == PEOPLE
    messages = [np.array(sent[history], dtype=np.int64) for history in (0, 1)]
    second = {name for name, whole in both.items() if nearer_to_second(whole, messages)}
    for alone in (leader, helper):
        told = tell_apart(alone, messages, second)
        assert np.abs(told.leanings).max() < FAR
        assert abs(told.leanings.mean()) * np.sqrt(PEOPLE) < FAR
        assert told.unevenness < FAR
    together = tell_apart(both, messages, second)
    assert together.right == 1
    assert together.unevenness > 100  # a message is small numbers, which no one would take for random
    opened = sorted(tuple(whole.astype(np.int32)) for whole in both.values())
    assert opened == sorted(tuple(whole) for whole in sent)


def nearer_to_second(whole, messages):
    first, other = (np.linalg.norm(whole.astype(np.int32) - message) for message in messages)
    return other < first
