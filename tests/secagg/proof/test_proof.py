"""The norm check on bytes: what passes, what does not, and what each server gets to see."""

import json

import numpy as np
import pytest
from tests.secagg.proof.uploads import accepted, liars_upload, no_lie
from tests.secagg.proof.vectors import FILE, vectors
from tests.secagg.worlds import LENGTH, bytes_from, messages, offer

from federank.errors import BadMessage, SettingError
from federank.secagg.exchange import standing, sum_of_masks
from federank.secagg.keys import new_private_key
from federank.secagg.proof import proof as proving
from federank.secagg.proof import proof as querying
from federank.secagg.proof.circuit import Parts, drawn_coefficients, project
from federank.secagg.proof.field import MODULUS, sums
from federank.secagg.proof.parameters import FULL, LIGHT, RANGE_BITS, Parameters
from federank.secagg.proof.preparing import accepts, decode_looks, encode_looks, look_bytes, prepare
from federank.secagg.proof.proof import helper_look, leader_look, point_of
from federank.secagg.ring import C_INT, KeyStream, centred, in_ring, mask
from federank.secagg.upload import (
    CHECKED,
    context_of,
    decode_upload,
    encode_upload,
    make_checked_upload,
    new_secrets,
    report_of,
    send,
    upload_bytes,
)

SIZES = [LIGHT, FULL]


@pytest.fixture(scope="module")
def round_of_six():
    """Six honest uploads of a small round, and what the helper says of them."""
    terms, key = offer()
    sent = [send(LIGHT, terms, message, bytes_from(n)) for n, message in enumerate(messages(6))]
    reports = [report_of(terms.digest(), upload, LIGHT) for upload in sent]
    looks = [prepare(LIGHT, key, terms.digest(), LENGTH, report) for report in reports]
    return terms, key, sent, reports, looks


def shapes(length):
    rng = np.random.default_rng(5)
    sparse, last = np.zeros(length, dtype=np.int32), np.zeros(length, dtype=np.int32)
    sparse[0], last[-1] = C_INT, -C_INT
    normal = rng.normal(size=length)
    yield "zero", np.zeros(length, dtype=np.int32)
    yield "one number", sparse
    yield "the last number", last
    yield "all equal", np.full(length, int(C_INT / np.sqrt(length)), dtype=np.int32)
    yield "all equal, negative", np.full(length, -int(C_INT / np.sqrt(length)), dtype=np.int32)
    yield "normal", (normal * (C_INT - 30) / np.linalg.norm(normal)).astype(np.int32)
    yield "ones", np.ones(length, dtype=np.int32)


@pytest.mark.parametrize("parameters", SIZES)
@pytest.mark.parametrize("length", [1, 7, 8, 9, 1000, 32769])
def test_honest_messages_of_every_shape_pass(parameters, length):
    terms, key = offer(length=length)
    for name, message in shapes(length):
        upload = send(parameters, terms, message, bytes_from(length))
        assert accepted(parameters, terms, key, upload), name


def test_what_passes_adds_up_to_the_messages(round_of_six):
    terms, key, sent, reports, looks = round_of_six
    assert all(accepts(LIGHT, terms.digest(), *seen) for seen in zip(sent, reports, looks, strict=True))
    assert standing(key, terms.digest(), reports) == [True] * 6
    shares = np.sum([upload.share for upload in sent], axis=0, dtype=np.uint32)
    total = shares + sum_of_masks(key, terms.digest(), LENGTH, reports)
    np.testing.assert_array_equal(centred(total), messages(6).sum(axis=0))


def test_projections_are_sums_and_differences_by_the_bits_of_the_stream():
    rng = np.random.default_rng(2)
    vector = rng.integers(0, 2**32, 21, dtype=np.uint32)
    stream = np.frombuffer(KeyStream(b"k" * 32, b"c" * 32, "projections").next(3 * 2 * 64), dtype=np.uint8)
    bits = np.unpackbits(stream.reshape(3, 2, 64, 1), axis=3, bitorder="little").astype(np.int64)
    coefficients = (bits[:, 0] - bits[:, 1]).transpose(1, 0, 2).reshape(64, 24)[:, :21]
    assert set(coefficients.ravel()) == {-1, 0, 1}
    expected = in_ring(coefficients @ vector.astype(np.int64))
    np.testing.assert_array_equal(project(b"k" * 32, b"c" * 32, 64, vector)[0], expected)


@pytest.mark.parametrize("parameters", SIZES)
def test_an_upload_has_one_length_and_is_read_as_it_was_written(parameters):
    terms, _ = offer()
    upload = send(parameters, terms, messages(1)[0], bytes_from(3))
    content = encode_upload(upload)
    assert (
        len(content) == upload_bytes(LENGTH, parameters) == CHECKED.header_bytes + 4 * LENGTH + parameters.proof_bytes
    )
    read = decode_upload(content, LENGTH, parameters)
    assert read[:4] == upload[:4]
    np.testing.assert_array_equal(read.share, upload.share)
    np.testing.assert_array_equal(read.proof, upload.proof)
    assert (CHECKED.header_bytes, CHECKED.sealed_bytes) == (252, 177)
    assert [size.proof_bytes for size in SIZES] == [10_080, 19_288]
    for spoilt in (content[:-1], content + b"\0", b"X" + content[1:], content[:-8] + b"\xff" * 8):
        with pytest.raises(BadMessage):
            decode_upload(spoilt, LENGTH, parameters)


def test_an_upload_with_any_byte_flipped_is_rejected(round_of_six):
    terms, key, sent, _, _ = round_of_six
    content = encode_upload(sent[0])
    proof = CHECKED.header_bytes + 4 * LENGTH
    rng = np.random.default_rng(7)
    places = [*range(proof), *rng.choice(np.arange(proof, len(content)), 150, replace=False).tolist()]
    for place in places:
        flipped = bytearray(content)
        flipped[place] ^= 1 << int(rng.integers(8))
        try:
            upload = decode_upload(bytes(flipped), LENGTH, LIGHT)
        except BadMessage:
            continue
        assert not accepted(LIGHT, terms, key, upload), place


def test_a_look_with_any_byte_flipped_is_rejected(round_of_six):
    terms, _, sent, reports, looks = round_of_six
    assert {len(look) for look in looks} == {look_bytes(LIGHT)}
    for place in range(look_bytes(LIGHT)):
        flipped = bytearray(looks[0])
        flipped[place] ^= 1 << (place % 8)
        try:
            assert not accepts(LIGHT, terms.digest(), sent[0], reports[0], bytes(flipped)), place
        except BadMessage:
            continue
    for spoilt in (looks[0][:-8], (1).to_bytes(8, "little") + looks[0][8:], looks[0][:-8] + b"\xff" * 8):
        with pytest.raises(BadMessage):
            accepts(LIGHT, terms.digest(), sent[0], reports[0], spoilt)


def test_looks_travel_together_and_no_others_are_read(round_of_six):
    looks = [round_of_six[4][0], None, round_of_six[4][1], None]
    content = encode_looks(looks)
    assert decode_looks(LIGHT, content, 4) == looks
    for spoilt in (content[:-1], content + b"\0", b"\2" + content[1:], content[:-1] + b"\1", b""):
        with pytest.raises(BadMessage, match="report"):
            decode_looks(LIGHT, spoilt, 4)


def test_a_look_at_another_report_or_by_another_key_does_not_help(round_of_six):
    terms, _, sent, reports, looks = round_of_six
    assert not accepts(LIGHT, terms.digest(), sent[0], reports[0], looks[1])
    assert prepare(LIGHT, new_private_key(), terms.digest(), LENGTH, reports[0]) is None
    assert prepare(LIGHT, round_of_six[1], bytes(32), LENGTH, reports[0]) is None


def test_a_leader_cannot_have_a_report_looked_at_in_two_ways(round_of_six):
    """All that the look depends on was sealed by the device: asked again it is the same, asked otherwise none."""
    terms, key, _, reports, looks = round_of_six
    assert prepare(LIGHT, key, terms.digest(), LENGTH, reports[0]) == looks[0]
    for changed in (
        reports[0]._replace(part_wires=reports[1].part_wires),
        reports[0]._replace(part_leader=reports[1].part_leader),
        reports[0]._replace(part_wires=b""),
        reports[0]._replace(part_leader=reports[0].part_leader + reports[0].part_wires, part_wires=b""),
        reports[0]._replace(id=reports[1].id),
    ):
        assert prepare(LIGHT, key, terms.digest(), LENGTH, changed) is None


def test_points_differ_between_reports_and_rounds_and_are_no_roots_of_unity(round_of_six):
    _, key, _, _, looks = round_of_six
    assert len({look[:8] for look in looks}) == 6
    context = bytes(32)
    assert point_of(LIGHT, key, context) == point_of(LIGHT, key, context) != point_of(LIGHT, new_private_key(), context)
    for look in looks:
        assert pow(int.from_bytes(look[:8], "little"), LIGHT.points, MODULUS) != 1


def totals(leader, helper):
    """What both servers' projections add up to, with the leader's moved up."""
    return [int(one) + int(other) for one, other in zip(leader + np.uint32(2**31), helper, strict=True)]


def values_out_of_range(parameters, leader, helper):
    """The right values, in 'bits' of which the last is any number."""
    wires, values = [], []
    for total in totals(leader, helper):
        values.append(total % 2**32 - 2**31)
        last = (values[-1] + 2**15) * pow(2**15, -1, MODULUS) % MODULUS
        wires += [0] * (RANGE_BITS - 1) + [last, total // 2**32]
    return wires + slack(parameters, values)


def slack(parameters, values):
    left = parameters.limit - sum(value * value for value in values)
    if 0 <= left < 2**parameters.slack_bits:
        return [left >> place & 1 for place in range(parameters.slack_bits)]
    return [left % MODULUS] + [0] * (parameters.slack_bits - 1)


def written(values, wraps):
    """Honest bits of these values, with wrap wires beside them."""
    rows = [[(v + 2**15) >> place & 1 for place in range(RANGE_BITS)] + [w] for v, w in zip(values, wraps, strict=True)]
    return [bit for row in rows for bit in row]


def wraps_that_are_no_bits(parameters, leader, helper):
    """All values zero, explained by wraps that are any numbers of the field."""
    wraps = [(total - 2**31) * pow(2**32, -1, MODULUS) % MODULUS for total in totals(leader, helper)]
    zeros = [0] * parameters.projections
    return written(zeros, wraps) + slack(parameters, zeros)


def values_of_nothing(parameters, leader, helper):
    """All values zero, which is not what was projected."""
    zeros = [0] * parameters.projections
    return written(zeros, [total // 2**32 for total in totals(leader, helper)]) + slack(parameters, zeros)


def negative_slack(parameters, leader, helper):
    """The right values, with a slack that is below zero."""
    values = [total % 2**32 - 2**31 for total in totals(leader, helper)]
    return written(values, [total // 2**32 for total in totals(leader, helper)]) + slack(parameters, values)


def no_slack(parameters, leader, helper):
    """The right values, as though they filled T up."""
    return [*negative_slack(parameters, leader, helper)[: -parameters.slack_bits], *[0] * parameters.slack_bits]


POISONING_ATTACKS = {  # how, the norm of the message, and the coefficients of the one demand that is broken
    "values out of range": (values_out_of_range, 40 * C_INT, "rho"),
    "wraps that are no bits": (wraps_that_are_no_bits, 40 * C_INT, "rho"),
    "a negative slack": (negative_slack, 6 * C_INT, "rho"),
    "values of nothing": (values_of_nothing, 40 * C_INT, "sigma"),
    "no slack": (no_slack, 6 * C_INT, "kappa"),
}


def loud(norm):
    message = np.zeros(LENGTH, dtype=np.int64)
    message[3] = norm
    return message


@pytest.mark.parametrize("parameters", SIZES)
@pytest.mark.parametrize("poisoning_attack", POISONING_ATTACKS)
def test_a_proof_of_something_untrue_is_rejected(parameters, poisoning_attack):
    terms, key = offer()
    how, norm, _ = POISONING_ATTACKS[poisoning_attack]
    for seed in range(5):
        assert not accepted(parameters, terms, key, liars_upload(parameters, terms, loud(norm), how, seed)), seed
    assert accepted(parameters, terms, key, liars_upload(parameters, terms, loud(C_INT), no_lie))


@pytest.mark.parametrize("poisoning_attack", POISONING_ATTACKS)
def test_every_demand_of_the_circuit_is_needed(poisoning_attack, monkeypatch):
    """Each lie breaks one demand alone: where that one is not made, it passes."""
    terms, key = offer()
    how, norm, demand = POISONING_ATTACKS[poisoning_attack]

    def without(*asked):
        drawn = drawn_coefficients(*asked)
        return drawn._replace(**{demand: np.zeros_like(getattr(drawn, demand))})

    for module in (proving, querying):
        monkeypatch.setattr(module, "drawn_coefficients", without)
    assert accepted(LIGHT, terms, key, liars_upload(LIGHT, terms, loud(norm), how))


def test_a_message_longer_than_the_bound_gets_no_proof_and_is_not_sent():
    terms, _ = offer()
    message = np.zeros(LENGTH, dtype=np.int32)
    message[0] = C_INT + 1
    with pytest.raises(BadMessage, match="norm"):
        send(LIGHT, terms, message, bytes_from(1))
    with pytest.raises(SettingError, match="64 or 128"):
        Parameters(65)


def test_both_looks_together_are_random_values_and_zero():
    """The same message and secrets with other random values of the proof: the leader sees another look."""
    terms, key = offer()
    random = bytes_from(8)
    secrets, message = new_secrets(random), messages(1)[0]
    context = context_of(terms.digest(), secrets.id)
    point, hidden = point_of(LIGHT, key, context), mask(secrets.seed, context, LENGTH)
    seen = []
    for _ in range(60):
        upload = make_checked_upload(LIGHT, terms, message, secrets, random(32))
        report = report_of(terms.digest(), upload, LIGHT)
        parts = Parts(context, report.part_leader, report.part_helper)
        mine = leader_look(LIGHT, parts, report.part_wires, point, upload.share, upload.proof)
        theirs = helper_look(LIGHT, parts, report.part_wires, point, secrets.seed, hidden)
        assert (mine.circuit + theirs.circuit) % MODULUS == 0
        seen.append(sums(mine.inputs, theirs.inputs))
    high = (np.array(seen) >> np.uint64(63)).mean(axis=0)
    assert len(np.unique(seen)) == len(seen) * 2 * LIGHT.columns
    assert high.min() > 0.2
    assert high.max() < 0.8


def test_the_leaders_share_looks_uniform_whatever_the_message_is():
    terms, _ = offer()
    for message in (loud(0), loud(C_INT)):
        shares = [send(LIGHT, terms, message.astype(np.int32), bytes_from(n)).proof for n in range(40)]
        content = np.unpackbits(np.concatenate(shares).astype("<u8").view(np.uint8))
        assert abs(content.mean() - 0.5) < 0.002
        assert len(np.unique(shares)) == 40 * LIGHT.elements


def test_the_vectors_of_the_norm_check_are_as_they_were():
    kept = json.loads(FILE.read_text())
    assert vectors() == kept
    assert all(vector["accepted"] for vector in kept)
