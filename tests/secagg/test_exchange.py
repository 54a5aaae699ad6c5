"""A round of sums on bytes: what adds up, what each server holds, and the attacks that parts and seals stop."""

import numpy as np
import pytest
from tests.secagg.worlds import LENGTH, bytes_from, messages, offer, sealed_with, uploads

from federank.errors import BadMessage
from federank.secagg.exchange import check_set, draw_noise, set_digest, standing, sum_of_masks, with_noise
from federank.secagg.keys import new_private_key
from federank.secagg.ring import C_INT, centred, mask
from federank.secagg.upload import (
    PLAIN,
    context_of,
    decode_upload,
    encode_upload,
    helper_part,
    leader_part,
    make_upload,
    new_secrets,
    report_of,
    seal_info,
    upload_bytes,
)


@pytest.fixture(scope="module")
def played():
    """A round of seven people, as both servers see it."""
    terms, key = offer()
    whole = messages(7)
    sent = uploads(terms, whole)
    return terms, key, whole, sent, [report_of(terms.digest(), upload) for upload in sent]


def test_shares_and_masks_add_up_to_the_messages(played):
    terms, key, whole, sent, reports = played
    assert standing(key, terms.digest(), reports) == [True] * 7
    shares = np.sum([upload.share for upload in sent], axis=0, dtype=np.uint32)
    masks = sum_of_masks(key, terms.digest(), LENGTH, reports)
    np.testing.assert_array_equal(centred(shares + masks), whole.sum(axis=0))


def test_noise_of_both_servers_is_on_the_sum_and_none_when_it_is_off(played):
    terms, key, _, _, reports = played
    masks = sum_of_masks(key, terms.digest(), LENGTH, reports)
    noise = draw_noise(4096, LENGTH, bytes_from(3))
    assert 500 < np.abs(noise).mean() < 10_000
    np.testing.assert_array_equal(centred(with_noise(masks, noise) - masks), noise)
    np.testing.assert_array_equal(draw_noise(0, LENGTH, bytes_from(3)), 0)


def test_an_upload_is_read_as_it_was_written_and_has_one_length(played):
    _, _, _, sent, _ = played
    for upload in sent:
        content = encode_upload(upload)
        assert len(content) == upload_bytes(LENGTH) == PLAIN.header_bytes + 4 * LENGTH
        read = decode_upload(content, LENGTH)
        assert read[:4] == upload[:4]
        np.testing.assert_array_equal(read.share, upload.share)
    assert (PLAIN.header_bytes, PLAIN.sealed_bytes) == (220, 145)


def test_an_upload_of_another_form_is_refused(played):
    content = encode_upload(played[3][0])
    for spoilt in (content[:-1], content + b"\0", b"", b"X" + content[1:], content[:219] + b"\1" + content[220:]):
        with pytest.raises(BadMessage):
            decode_upload(spoilt, LENGTH)


def test_a_message_longer_than_the_bound_does_not_leave():
    terms, _ = offer()
    secrets = new_secrets(bytes_from(4))
    edge = np.zeros(LENGTH, dtype=np.int32)
    edge[3] = -C_INT
    make_upload(terms, edge, secrets)
    for spoilt in (edge + np.eye(1, LENGTH, 4, dtype=np.int32)[0], np.full(LENGTH, 2**31 - 1, dtype=np.int32)):
        with pytest.raises(BadMessage, match="norm"):
            make_upload(terms, spoilt, secrets)
    with pytest.raises(BadMessage, match="numbers"):
        make_upload(terms, edge[:-1], secrets)


def test_what_each_server_holds_is_the_same_for_two_histories_up_to_uniform_words(played):
    """Whatever the message is, one seed gives any share: what the leader holds has the same distribution for all."""
    terms, *_ = played
    one, other = messages(2, seed=9)
    secrets = new_secrets(bytes_from(5))
    context = context_of(terms.digest(), secrets.id)
    for message in (one, other):
        share = make_upload(terms, message, secrets).share
        np.testing.assert_array_equal(share + mask(secrets.seed, context, LENGTH), message.astype(np.uint32))
    # Words of shares look uniform though the messages are small: every bit is set about half the time.
    many = np.concatenate([upload.share for upload in uploads(terms, messages(200, seed=10))])
    shares_of_ones = [(many >> np.uint32(bit) & np.uint32(1)).mean() for bit in range(32)]
    assert max(abs(share - 0.5) for share in shares_of_ones) < 5 * 0.5 / np.sqrt(len(many))


def test_a_seed_gives_another_mask_in_another_report_or_round(played):
    terms, *_ = played
    seed = bytes(32)
    contexts = [context_of(terms.digest(), bytes(16)), context_of(terms.digest(), b"1" * 16)]
    contexts.append(context_of(offer(round=7)[0].digest(), bytes(16)))
    assert len({mask(seed, context, LENGTH).tobytes() for context in contexts}) == 3


def test_attack_one_users_sealed_seed_repeated_in_a_set(played):
    terms, key, _, _, reports = played
    twice = [reports[0], reports[0]._replace(id=reports[1].id), *reports[2:]]
    assert standing(key, terms.digest(), twice)[:2] == [True, False]
    with pytest.raises(BadMessage, match="twice"):
        check_set([report.id for report in (reports[0], *reports)], 3, 100)
    with pytest.raises(BadMessage):
        sum_of_masks(key, terms.digest(), LENGTH, twice)


def test_attack_the_same_seed_in_another_round(played):
    _, key, _, _, reports = played
    later, _ = offer(key, round=7)
    assert not any(standing(key, later.digest(), reports))
    fresh, another_key = offer(round=7)
    assert not any(standing(another_key, fresh.digest(), reports))


def test_attack_parts_mixed_and_matched(played):
    terms, key, _, _, reports = played
    one, other = reports[:2]
    for mixed in (
        one._replace(part_leader=other.part_leader),
        one._replace(part_helper=other.part_helper),
        one._replace(sealed=other.sealed),
        one._replace(id=other.id),
        one._replace(sealed=other.sealed, part_leader=other.part_leader, part_helper=other.part_helper),
    ):
        assert standing(key, terms.digest(), [mixed]) == [False]


def test_attack_the_leader_probes_the_helper_with_another_share(played):
    """The leader changes the share, or guesses at one: part_L inside the seal does not follow."""
    terms, key, _, sent, _ = played
    probe = sent[0]._replace(share=sent[0].share + np.uint32(1))
    assert standing(key, terms.digest(), [report_of(terms.digest(), probe)]) == [False]


def test_attack_the_helper_tests_guesses_of_a_message(played):
    """The helper knows seed and part_L; the right message gives part_L only together with the leader's blind."""
    terms, _, whole, _, _ = played
    secrets = new_secrets(bytes_from(6))
    upload = make_upload(terms, whole[0], secrets)
    context = context_of(terms.digest(), secrets.id)
    guess = whole[0].astype(np.uint32) - mask(secrets.seed, context, LENGTH)
    known = report_of(terms.digest(), upload).part_leader
    assert leader_part(context, secrets.blind, guess) == known
    assert leader_part(context, bytes(16), guess) != known


def test_a_client_that_seals_something_else_does_not_stand(played):
    terms, key, whole, _, _ = played
    secrets = new_secrets(bytes_from(7))
    upload = make_upload(terms, whole[0], secrets)
    info = seal_info(terms.digest(), secrets.id)
    context = context_of(terms.digest(), secrets.id)
    part = leader_part(context, secrets.blind, upload.share)
    for inside in (b"", bytes(64), secrets.seed, secrets.seed + part + b"\0", bytes(32) + part):
        sealed, _ = sealed_with(new_private_key(), terms.public(), info, inside)
        assert standing(key, terms.digest(), [report_of(terms.digest(), upload._replace(sealed=sealed))]) == [False]
    wrong_part = upload._replace(part_helper=helper_part(context, bytes(32)))
    assert standing(key, terms.digest(), [report_of(terms.digest(), wrong_part)]) == [False]


def test_a_set_is_named_by_its_members_and_bounded():
    ids = [bytes([number]) * 16 for number in range(5)]
    assert set_digest(ids) == set_digest(ids[::-1])
    assert set_digest(ids) != set_digest(ids[1:])
    check_set(ids, 5, 5)
    for least, largest in ((6, 9), (2, 4)):
        with pytest.raises(BadMessage, match="5"):
            check_set(ids, least, largest)
    with pytest.raises(BadMessage, match="16 bytes"):
        check_set([b"short"], 1, 5)
