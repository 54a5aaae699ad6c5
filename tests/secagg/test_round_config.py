"""Statements, signatures, federation configs and offers: one spelling, one purpose, and whole sentences for all
else.
"""

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as some
from tests.secagg.worlds import HELPER, LEADER, MODEL, offer, secagg_config

from federank.errors import BadMessage, SettingError
from federank.secagg.canonical import canonical, digest, read_canonical
from federank.secagg.config import config_from, fields_of_check
from federank.secagg.exchange import AGGREGATED, RoundRecord, read_record, same_round, sign_record
from federank.secagg.keys import (
    fingerprint,
    new_private_key,
    public_key_of,
    sign,
    sign_successor,
    verify,
    verify_successor,
)
from federank.secagg.proof.parameters import Parameters
from federank.secagg.round_config import CLOCKS_APART, check_offer, read_offer, sign_offer

TEXTS = some.text(some.characters(min_codepoint=32, max_codepoint=126), max_size=9)
VALUES = some.recursive(
    some.none() | some.booleans() | some.integers(-(2**53) + 1, 2**53 - 1) | TEXTS,
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@given(some.dictionaries(TEXTS, VALUES, max_size=4))
def test_a_statement_is_read_as_it_was_written(statement):
    assert read_canonical(canonical(statement), "It") == statement


@pytest.mark.parametrize(
    "content",
    [
        b'{"b":1,"a":2}',
        b'{"a": 1}',
        b'{"a":1,"a":1}',
        b'{"a":1.0}',
        b'{"a":NaN}',
        b'{"a":9007199254740992}',
        '{"a":"é"}'.encode(),
        b'{"a":"\\u0001"}',
        b'{"a":"\\u0041"}',
        b"[1]",
        b'{"a":1}\n',
        b"{",
        b"\xff",
        b"[" * 50_000,
    ],
)
def test_another_spelling_is_refused(content):
    with pytest.raises(BadMessage, match="canonical"):
        read_canonical(content, "It")


def test_what_is_too_long_is_not_read():
    with pytest.raises(BadMessage, match="10"):
        read_canonical(b'{"a":"123456"}', "It", most=10)


def test_digests_tell_purposes_and_parts_apart():
    found = [digest("a", b"bc"), digest("ab", b"c"), digest("a", b"b", b"c"), digest("a", b"", b"bc"), digest("a")]
    assert len(set(found)) == len(found)


def test_a_digest_is_sha_256_of_parts_with_their_lengths():
    written = (21).to_bytes(8, "big") + b"federank sums 1 offer" + (1).to_bytes(8, "big") + b"1" + bytes(8)
    assert digest("offer", b"1", b"") == hashlib.sha256(written).digest()


def test_a_signature_holds_for_its_key_its_purpose_and_its_content_alone():
    public, signature = public_key_of(HELPER), sign(HELPER, "offer", b"content")
    verify(public, "offer", b"content", signature)
    others = [
        (public_key_of(LEADER), "offer", b"content", signature),
        (public, "record", b"content", signature),
        (public, "offer", b"Content", signature),
        (public, "offer", b"content", signature[:-1]),
        (public, "offer", b"content", bytes(64)),
        (public, "offer", b"content", b"\xff" * 64),
    ]
    for case in others:
        with pytest.raises(BadMessage, match="signature"):
            verify(*case)


def test_a_new_key_needs_the_word_of_the_old_one():
    old, new, stranger = HELPER, new_private_key(), new_private_key()
    word = sign_successor(old, public_key_of(new))
    verify_successor(public_key_of(old), public_key_of(new), word)
    with pytest.raises(BadMessage):
        verify_successor(public_key_of(old), public_key_of(stranger), word)
    with pytest.raises(BadMessage):
        verify_successor(public_key_of(old), public_key_of(new), sign_successor(stranger, public_key_of(new)))


def test_fingerprints_are_short_and_tell_keys_apart():
    one, other = fingerprint(public_key_of(HELPER)), fingerprint(public_key_of(LEADER))
    assert one != other
    assert [len(group) for group in one.split(" ")] == [4] * 8


@pytest.mark.parametrize("private", [b"", bytes(32), b"\xff" * 32, b"1" * 31])
def test_what_is_no_private_key_is_refused_without_being_shown(private):
    with pytest.raises(BadMessage) as told:
        sign(private, "offer", b"")
    assert repr(private) not in str(told.value)


def test_a_config_is_read_as_it_was_written_and_every_field_changes_its_digest():
    mine = secagg_config()
    assert config_from(mine.to_bytes()) == mine
    changes = {
        "federation_id": "0" * 32,
        "catalogue": "0" * 64,
        "settings": "0" * 64,
        "items": 9,
        "columns": 4,
        "clip": "2.0",
        "noises": (65, 64, 80),
        "power": "0.2",
        "delta": "1e-05",
        "recipe": "spectral",
        "least_cohort": 4,
        "largest_cohort": 99,
        "helper_origin": "https://other.example",
        "helper_key": public_key_of(LEADER).hex(),
        "leader_key": public_key_of(HELPER).hex(),
    }
    assert secagg_config(messages=4, noise=64).digest() != secagg_config(messages=3, noise=64).digest()
    digests = {secagg_config(**{name: value}).digest() for name, value in changes.items()} | {mine.digest()}
    assert len(digests) == len(changes) + 1


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"least_cohort": 1}, "at least 2 clients"),
        ({"least_cohort": 101}, "at most the largest"),
        ({"largest_cohort": 2**31 // 4096}, "could wrap"),
        ({"noises": (2**22,) * 3, "largest_cohort": 2**31 // 4096 - 18_636}, "could wrap"),
        ({"noises": (64, 63, 64)}, "noise of a server"),
        ({"noises": (-1, -1, -1)}, "noise of a server"),
        ({"noises": (2**22 + 1,) * 3}, "noise of a server"),
        ({"noises": (64, 0, 64)}, "noise of a server"),
        ({"noises": (64, 64)}, "a noise for each"),
        ({"recipe": "none"}, "recipe"),
        ({"power": "1.5"}, "power"),
        ({"delta": "0.0"}, "delta"),
        ({"messages": 0}, "messages"),
        ({"bound": 8192}, "bound"),
        ({"ring": 64}, "ring"),
        ({"suite": "none"}, "suite"),
        ({"clip": "0"}, "clip"),
        ({"clip": "nan"}, "clip"),
        ({"clip": "inf"}, "clip"),
        ({"clip": "2.50"}, "clip"),
    ],
)
def test_a_config_that_guarantees_nothing_is_refused(changes, sentence):
    with pytest.raises(SettingError, match=sentence):
        secagg_config(**changes)
    told = json.loads(secagg_config().to_bytes()) | changes
    with pytest.raises(BadMessage, match=sentence):
        config_from(canonical(told))


def test_a_config_with_other_fields_or_keys_is_refused():
    told = json.loads(secagg_config().to_bytes())
    for changed in (
        told | {"more": 1},
        {name: value for name, value in told.items() if name != "noises"},
        told | {"noises": ["64", "64", "64"]},
        told | {"noises": [True, True, True]},
        told | {"noises": 64},
        told | {"helper_key": "00" * 65},
        told | {"helper_key": told["helper_key"].upper()},
        told | {"catalogue": "abc"},
    ):
        with pytest.raises(BadMessage):
            config_from(canonical(changed))


def test_an_offer_is_taken_if_it_is_about_what_the_client_holds():
    terms, _ = offer()
    read = read_offer(sign_offer(HELPER, terms), public_key_of(HELPER))
    assert read == terms
    check_offer(read, secagg_config(), MODEL, now=terms.expires + CLOCKS_APART)


def test_an_offer_of_anything_else_is_refused():
    terms, _ = offer()
    with pytest.raises(BadMessage, match="another federation config"):
        check_offer(terms, secagg_config(noise=128), MODEL, 0)
    with pytest.raises(BadMessage, match="another model"):
        check_offer(terms, secagg_config(), bytes(32), 0)
    with pytest.raises(BadMessage, match="another length"):
        check_offer(offer(length=terms.length - 3)[0], secagg_config(), MODEL, 0)
    for change in ({"noise": 65}, {"stage": 2}, {"stage": 9}, {"columns": 2}, {"clip": "3.0"}, {"scale": 8192}):
        with pytest.raises(BadMessage):
            check_offer(offer(**change)[0], secagg_config(), MODEL, 0)
    with pytest.raises(BadMessage, match="expired"):
        check_offer(terms, secagg_config(), MODEL, terms.expires + CLOCKS_APART + 1)
    with pytest.raises(BadMessage, match="signature"):
        read_offer(sign_offer(LEADER, terms), public_key_of(HELPER))


def test_an_offer_whose_terms_were_changed_on_the_way_is_refused():
    told = json.loads(sign_offer(HELPER, offer()[0]))
    stranger = public_key_of(new_private_key()).hex()
    for change in ({"key": stranger}, {"round": 7}, {"model": "0" * 64}, {"expires": 2_000_000_001}):
        with pytest.raises(BadMessage, match="signature"):
            read_offer(canonical(told | {"offer": told["offer"] | change}), public_key_of(HELPER))


@pytest.mark.parametrize("changes", [{"length": 0}, {"round": -1}, {"key": "00" * 65}, {"model": "xyz"}])
def test_an_offer_that_makes_no_sense_is_refused_though_it_be_signed(changes):
    with pytest.raises(BadMessage):
        read_offer(sign_offer(HELPER, offer(**changes)[0]), public_key_of(HELPER))


def test_records_are_read_if_their_server_signed_them_and_tell_of_one_round():
    told = {"config": "a" * 64, "offer": "b" * 64, "round": 3, "state": AGGREGATED, "messages": 5, "set": "c" * 64}
    leader, helper = RoundRecord(**told, sum="d" * 64, model="e" * 64), RoundRecord(**told, sum="f" * 64)
    assert read_record(sign_record(LEADER, leader), public_key_of(LEADER)) == leader
    same_round(leader, helper)
    with pytest.raises(BadMessage, match="signature"):
        read_record(sign_record(LEADER, leader), public_key_of(HELPER))
    with pytest.raises(BadMessage, match="differ"):
        same_round(leader, RoundRecord(**(told | {"messages": 6}), sum="f" * 64))
    with pytest.raises(BadMessage):
        read_record(sign_record(LEADER, RoundRecord(**(told | {"state": "lost"}), sum="")), public_key_of(LEADER))


def test_a_config_without_a_norm_check_survives_its_bytes():
    found = config_from(secagg_config().to_bytes())
    assert (found, found.norm_check()) == (secagg_config(), None)


@pytest.mark.parametrize("projections", [64, 128])
def test_a_config_names_its_norm_check_and_no_other_bound_of_it(projections):
    fields = fields_of_check(projections)
    found = config_from(secagg_config(**fields).to_bytes())
    assert (found.projections, found.norm_check()) == (projections, Parameters(projections))
    for change in ({"limit": fields["limit"] + 1}, {"proof_bytes": 0}, {"projections": 0}):
        with pytest.raises(SettingError):
            secagg_config(**(fields | change))
