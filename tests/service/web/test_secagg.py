"""Secure aggregation in JavaScript against Python: the same bytes from the same inputs, and those of RFC 9180."""

import json
import subprocess
from dataclasses import asdict, replace

import numpy as np
import pytest
from tests.secagg.worlds import (
    HELPER,
    LEADER,
    LENGTH,
    MODEL,
    RFC_9180,
    bytes_from,
    messages,
    offer,
    sealed_with,
    secagg_config,
)
from tests.service.web.conftest import PAGE

from federank.errors import BadMessage
from federank.federation.secure import model_digest
from federank.methods.frugal.private_messages import directions_of, one_message
from federank.privacy.accountant import epsilon_of_mu, mu_of_noise
from federank.secagg.canonical import canonical, digest, read_canonical
from federank.secagg.config import check_follows, check_signed, config_from, fields_of_check, sign_config
from federank.secagg.exchange import ABANDONED, RoundRecord, read_record, sign_record, standing, sum_of_masks
from federank.secagg.keys import (
    fingerprint,
    new_private_key,
    open_with,
    private_key,
    public_key_of,
    sign,
    sign_successor,
    verify,
)
from federank.secagg.ring import C_INT, centred, mask, round_message
from federank.secagg.round_config import (
    CLOCKS_APART,
    check_offer,
    read_offer,
    sign_offer,
)
from federank.secagg.upload import decode_upload, encode_upload, make_upload, new_secrets, report_of


@pytest.fixture
def ask(ask_secagg):
    return ask_secagg


def pair(private):
    return {"privateKey": private.hex(), "publicKey": public_key_of(private).hex()}


def test_statements_and_digests_are_the_same_bytes(ask):
    statements = [{}, {"b": [1, None, True, ""], "a": {"z": -1, "A": 2**53 - 1}}, {'q"\\': "~ /"}]
    parts = [[], [b""], [b"a", bytes(70)]]
    found = ask(
        *({"kind": "canonical", "statement": statement} for statement in statements),
        *({"kind": "digest", "label": "x", "parts": [part.hex() for part in told]} for told in parts),
    )
    assert found[:3] == [canonical(statement).decode() for statement in statements]
    assert found[3:] == [digest("x", *told).hex() for told in parts]


def test_other_spellings_are_refused_in_both_languages(ask):
    spellings = [
        b'{"b":1,"a":2}',
        b'{"a": 1}',
        b'{"a":1,"a":1}',
        b'{"a":1.0}',
        b'{"a":1e2}',
        b'{"a":-0}',
        b'{"a":9007199254740992}',
        '{"a":"é"}'.encode(),
        b'{"a":"\\u0041"}',
        b"\xef\xbb\xbf{}",
        b"[1]",
        b'{"a":1}\n',
        b"{",
        b"\xff",
        b'{"a":"' + b"x" * 100_000 + b'"}',
    ]
    found = ask(*({"kind": "read", "content": content.hex()} for content in spellings))
    for content, answer in zip(spellings, found, strict=True):
        assert "refused" in answer, content[:40]
        with pytest.raises(BadMessage):
            read_canonical(content, "It")


def test_signatures_are_verified_and_others_are_refused(ask):
    signature, key = sign(HELPER, "offer", b"content"), public_key_of(HELPER)
    told = {"kind": "verify", "key": key.hex(), "purpose": "offer", "content": b"content".hex()}
    told["signature"] = signature.hex()
    others = [
        {"key": public_key_of(LEADER).hex()},
        {"purpose": "record"},
        {"content": "00"},
        {"signature": signature.hex()[:-2]},
        {"signature": "00" * 64},
        {"key": "04" + "00" * 64},
    ]
    found = ask(told, *(told | other for other in others), {"kind": "fingerprint", "key": key.hex()})
    assert found[0] == "verified"
    assert all("refused" in answer for answer in found[1:-1])
    assert found[-1] == fingerprint(key)
    for other in others:
        case = told | other
        content, signature = (bytes.fromhex(case[name]) for name in ("content", "signature"))
        with pytest.raises(BadMessage):
            verify(bytes.fromhex(case["key"]), case["purpose"], content, signature)


def test_a_new_key_needs_the_word_of_the_old_one(ask):
    new = new_private_key()
    word = sign_successor(HELPER, public_key_of(new)).hex()
    keys = {"old": public_key_of(HELPER).hex(), "successor": public_key_of(new).hex()}
    told = {"kind": "successor", "signature": word} | keys
    found = ask(told, told | {"successor": public_key_of(LEADER).hex()})
    assert found[0] == "verified"
    assert "refused" in found[1]


def test_sealing_gives_the_published_bytes_of_rfc_9180(ask):
    vector = RFC_9180
    own = {"privateKey": vector["ephemeral"], "publicKey": vector["enc"]}
    told = {"key": vector["public"], "info": vector["info"], "content": vector["content"], "aad": vector["aad"]}
    [sealed] = ask({"kind": "seal", "ephemeral": own, **told})
    assert sealed == vector["enc"] + vector["ciphertext"]


def test_what_the_page_seals_python_opens(ask):
    key, content = new_private_key(), bytes(range(64))
    told = {"kind": "seal", "key": public_key_of(key).hex(), "info": "aa", "content": content.hex(), "aad": ""}
    one, other = ask(told, told)
    assert one != other
    opened = [open_with(private_key(key), b"\xaa", bytes.fromhex(sealed)) for sealed in (one, other)]
    assert opened == [content, content]


@pytest.mark.parametrize("length", [1, 3, 4, 5, 4097])
def test_masks_are_the_same_words(ask, length):
    seed, context = bytes(range(32)), bytes(range(32, 64))
    [found] = ask({"kind": "mask", "seed": seed.hex(), "context": context.hex(), "length": length})
    assert found == mask(seed, context, length).tobytes().hex()


def test_messages_are_rounded_to_the_same_integers(ask):
    rng = np.random.default_rng(4)
    cases = [
        (rng.normal(0, scale, size), clip, rng.integers(0, 2**16, size).astype(np.uint16))
        for size, scale, clip in ((1, 1, 1.0), (300, 0.001, 5.0), (300, 10, 0.25), (20_000, 0.3, 2.5), (0, 1, 1.0))
    ]
    questions = [
        {"kind": "round", "values": values.tolist(), "clip": clip, "chances": chances.tolist()}
        for values, clip, chances in cases
    ]
    for (values, clip, chances), found in zip(cases, ask(*questions), strict=True):
        np.testing.assert_array_equal(found, round_message(values, clip, chances))


def test_messages_under_a_guarantee_are_the_same_integers(ask):
    """Sums in the same order, nothing fused: not one of thousands of numbers differs."""
    rng = np.random.default_rng(11)
    questions, mine = [], []
    for items, factors, size in ((9, 3, 2), (400, 12, 30), (1500, 21, 90), (50, 2, 1)):
        vectors, weights = rng.normal(size=(items, factors)).astype(np.float32), rng.uniform(0.1, 1, items)
        weights = weights.astype(np.float32)
        profile = np.sort(rng.choice(items, size, replace=False)).astype(np.int32)
        for stage, columns in ((0, 1), (1, factors - 1)):
            chances = rng.integers(0, 2**16, items * columns).astype(np.uint16)
            known = directions_of(vectors, weights) if stage else None
            mine.append(one_message(stage, items, profile, known, chances).tolist())
            told = {"stage": stage, "items": items, "profile": profile.tolist(), "chances": chances.tolist()}
            model = {"vectors": vectors.ravel().tolist(), "weights": weights.tolist()}
            questions.append({"kind": "private", **told, **model})
    assert ask(*questions) == mine


def test_the_privacy_loss_of_a_lifetime_is_the_same_number(ask):
    mine = secagg_config()
    [found] = ask({"kind": "mostTold", "config": json.loads(mine.to_bytes())})
    assert found == pytest.approx(mine.mu() ** 2, rel=1e-12)


@pytest.mark.parametrize("wrong", ["NaN", "Infinity", "-Infinity", "1e200"])
def test_nonfinite_numbers_are_refused_in_both_languages(ask, wrong):
    [found] = ask({"kind": "round", "values": ["1", wrong], "clip": 1.0, "chances": [0, 0]})
    assert found == {"refused": "upload.finite"}
    with pytest.raises(BadMessage, match="not finite"), np.errstate(over="ignore"):
        round_message(np.array([1.0, float(wrong)]), 1.0, np.zeros(2, dtype=np.uint16))


def test_seasons_are_checked_alike(ask):
    servers = [new_private_key() for _ in range(3)]
    leader, helper, later = map(public_key_of, servers)
    before = secagg_config(leader_key=leader.hex(), helper_key=helper.hex())
    now = replace(before, season=2, before=before.digest().hex(), messages=2, noises=(64, 64), until="2999-12-31")
    wrong = [
        replace(now, season=3),
        replace(now, before="ab" * 32),
        replace(now, federation_id="another"),
        replace(now, items=before.items - 1),
        replace(now, helper_origin="https://elsewhere.example"),
    ]
    cases = [(now, [helper], servers[:2]), (now, [helper, later], [servers[0], servers[2]])]
    cases += [(now, [helper], [servers[0], servers[2]]), (now, [helper], [servers[1], servers[1]])]
    cases += [(config, [helper], servers[:2]) for config in wrong]
    mine, questions = [], []
    for config, keys, signers in cases:
        signatures = [sign_config(private, config) for private in signers]
        try:
            check_follows(before, config)
            check_signed(config, *signatures, keys)
            mine.append("follows")
        except BadMessage:
            mine.append("refused")
        question = {"before": before.to_bytes().hex(), "now": config.to_bytes().hex()}
        question |= {"signatures": [one.hex() for one in signatures], "helperKeys": [key.hex() for key in keys]}
        questions.append({"kind": "follows"} | question)
    found = ["refused" if isinstance(answer, dict) else answer for answer in ask(*questions)]
    assert found == mine == ["follows"] * 2 + ["refused"] * 7


def test_configs_are_read_and_refused_alike(ask):
    mine = secagg_config()
    told = json.loads(mine.to_bytes())
    wrong = [
        *({"least_cohort": value} for value in (1, 101)),
        *({"noises": [64, *rest]} for rest in ([63, 64], [64, 2**22 + 1], [0, 64], [64])),
        *({"noises": value} for value in ([0, -1, 0], ["64", "64", "64"], 64)),
        *({"power": value} for value in ("1.5", "x")),
        *({"delta": value} for value in ("0.0", "1")),
        *({"clip": value} for value in ("0", "nan", "Infinity", "", "0x10")),
        *({"largest_cohort": 2**31 // 4096}, {"recipe": "another"}, {"messages": 0}, {"bound": 8192}),
        *({"suite": "none"}, {"helper_key": "00" * 65}, {"catalogue": "abc"}, {"more": 1}, {"proof_bytes": 8}),
        *({**fields_of_check(64), name: value} for name, value in (("limit", 1), ("proof_bytes", 0))),
        *({**fields_of_check(128), "projections": value} for value in (0, 64, 100, -128, "128")),
        {"limit": 1},
        {"projections": 128},
    ]
    contents = [mine.to_bytes(), *(canonical(told | change) for change in wrong)]
    found = ask(*({"kind": "config", "content": content.hex()} for content in contents))
    of_ratings = canonical(told | {"recipe": "gradients"})
    [read] = ask({"kind": "config", "content": of_ratings.hex()})
    assert (read["config"]["recipe"], config_from(of_ratings).recipe) == ("gradients", "gradients")
    assert found[0] == {"config": told, "digest": mine.digest().hex()}
    for content, answer, change in zip(contents[1:], found[1:], wrong, strict=True):
        assert "refused" in answer, change
        with pytest.raises(BadMessage):
            config_from(content)


@pytest.mark.parametrize("projections", [64, 128])
def test_configs_with_a_norm_check_are_read_alike(ask, projections):
    mine = secagg_config(**fields_of_check(projections))
    [found] = ask({"kind": "config", "content": mine.to_bytes().hex()})
    assert found == {"config": json.loads(mine.to_bytes()), "digest": mine.digest().hex()}
    assert config_from(mine.to_bytes()) == mine
    assert mine.digest() != secagg_config().digest()


def test_offers_are_read_and_refused_alike(ask):
    terms, _ = offer()
    good = {
        "kind": "offer",
        "content": sign_offer(HELPER, terms).hex(),
        "helper": public_key_of(HELPER).hex(),
        "config": secagg_config().to_bytes().hex(),
        "model": MODEL.hex(),
        "now": terms.expires + CLOCKS_APART,
    }
    changed = json.loads(sign_offer(HELPER, terms))
    changed["offer"]["key"] = public_key_of(new_private_key()).hex()
    wrong = {
        "by another key": {"content": sign_offer(LEADER, terms).hex()},
        "changed on the way": {"content": canonical(changed).hex()},
        "another federation config": {"config": secagg_config(noise=128).to_bytes().hex()},
        "another model": {"model": "00" * 32},
        "another length": {"content": sign_offer(HELPER, offer(length=terms.length - 3)[0]).hex()},
        **{
            f"{name} {value}": {"content": sign_offer(HELPER, offer(**{name: value})[0]).hex()}
            for name, value in (
                ("noise", 65),
                ("stage", 2),
                ("stage", 7),
                ("columns", 2),
                ("clip", "3.0"),
                ("scale", 1),
            )
        },
        "too late": {"now": terms.expires + CLOCKS_APART + 1},
        "no length": {"content": sign_offer(HELPER, offer(length=0)[0]).hex()},
        "no key": {"content": sign_offer(HELPER, offer(key=b"\1" * 32, model="xyz")[0]).hex()},
    }
    found = ask(good, *(good | change for change in wrong.values()))
    assert found[0] == {"offer": json.loads(terms.to_bytes()), "digest": terms.digest().hex()}
    for (name, change), answer in zip(wrong.items(), found[1:], strict=True):
        assert "refused" in answer, name
        case = good | change
        content, helper, config, model = (bytes.fromhex(case[n]) for n in ("content", "helper", "config", "model"))
        with pytest.raises(BadMessage):
            check_offer(read_offer(content, helper), config_from(config), model, case["now"])


def test_records_are_read_and_refused_alike(ask):
    told = {"config": "aa", "offer": "bb", "round": 3, "messages": 0, "set": "", "sum": ""}
    record = RoundRecord(**told, state=ABANDONED)
    good = sign_record(HELPER, record)
    wrong = [
        sign_record(LEADER, record),
        good.replace(b'"round":3', b'"round":4'),
        sign_record(HELPER, RoundRecord(**told, state="open")),
        canonical(json.loads(good) | {"more": 1}),
        good + b" ",
        b"",
    ]
    helper = public_key_of(HELPER)
    found = ask(*({"kind": "record", "content": content.hex(), "server": helper.hex()} for content in (good, *wrong)))
    assert found[0] == asdict(record) == asdict(read_record(good, helper))
    for content, answer in zip(wrong, found[1:], strict=True):
        assert "refused" in answer, content
        with pytest.raises(BadMessage):
            read_record(content, helper)


def test_models_have_the_same_digest(ask):
    reported = np.array([1, 0, 1, 1], np.int8)
    vectors = np.random.default_rng(6).normal(size=(4, 3)).astype(np.float32)
    named = []
    for iteration in (7, 8):
        values = {"version": 12, "iteration": iteration, "reported": reported.tolist()}
        named += ask({"kind": "model", "regulariser": 0.1, **values, "vectors": vectors.ravel().tolist()})
        parts = {"vectors": vectors, "reported": reported, "iteration": np.array([iteration], np.int32)}
        parts["regulariser"] = np.array([0.1])
        assert named[-1] == model_digest(12, parts).hex()
    assert len(set(named)) == 2


def test_an_upload_is_pythons_byte_for_byte(ask):
    """With the sender's key handed in, which is the one thing that neither library lets one choose."""
    terms, _ = offer()
    questions, mine = [], []
    for number, message in enumerate(messages(4)):
        secrets, own = new_secrets(bytes_from(number)), new_private_key()

        def sealing(*told, own=own):
            return sealed_with(own, *told)[0]

        mine.append(encode_upload(make_upload(terms, message, secrets, sealing)).hex())
        told = {"id": secrets.id.hex(), "seed": secrets.seed.hex(), "blind": secrets.blind.hex()}
        question = {"offer": json.loads(terms.to_bytes()), "message": message.tolist(), "secrets": told}
        questions.append({"kind": "upload", "ephemeral": pair(own), **question})
    assert ask(*questions) == mine


def test_uploads_of_both_languages_add_up_in_one_round(ask):
    terms, key = offer()
    whole = messages(6, seed=3)
    told = json.loads(terms.to_bytes())
    theirs = ask(*({"kind": "upload", "offer": told, "message": message.tolist()} for message in whole[:3]))
    uploads = [decode_upload(bytes.fromhex(content), LENGTH) for content in theirs]
    uploads += [make_upload(terms, message, new_secrets(bytes_from(9 + n))) for n, message in enumerate(whole[3:])]
    assert len({upload.id for upload in uploads}) == 6
    reports = [report_of(terms.digest(), upload) for upload in uploads]
    assert all(standing(key, terms.digest(), reports))
    shares = np.sum([upload.share for upload in uploads], axis=0, dtype=np.uint32)
    total = shares + sum_of_masks(key, terms.digest(), LENGTH, reports)
    np.testing.assert_array_equal(centred(total), whole.sum(axis=0))


def test_long_message_does_not_leave_the_page(ask):
    terms, _ = offer()
    told = {"kind": "upload", "offer": json.loads(terms.to_bytes())}
    edge = [C_INT] + [0] * (LENGTH - 1)
    found = ask(told | {"message": edge}, told | {"message": [*edge[:-1], 1]}, told | {"message": edge[:-1]})
    assert isinstance(found[0], str)
    assert found[1:] == [{"refused": "upload.norm"}, {"refused": "upload.length"}]


def test_chances_of_large_messages_are_drawn_entirely(ask):
    [found] = ask({"kind": "chances", "length": 100_000})
    assert len(found) == 100_000
    assert abs(np.mean(found[-20_000:]) / 2**16 - 0.5) < 0.02


def test_the_page_counts_as_the_accountant_does(node):
    cases = [(mu, delta) for mu in (0.05, 0.3, 1, 2.5, 6) for delta in (1e-3, 1e-6, 1e-9)]
    script = (
        f"import {{ epsilonOfMu, muOfNoise }} from '{(PAGE / 'privacy' / 'accountant.js').as_uri()}';"
        f"console.log(JSON.stringify([muOfNoise([2, 4, 8]), ...{json.dumps(cases)}.map((one) => epsilonOfMu(...one))]))"
    )
    done = subprocess.run([node, "--input-type=module", "-e", script], capture_output=True, text=True, check=True)
    mu, *found = json.loads(done.stdout)
    assert mu == pytest.approx(mu_of_noise([2, 4, 8]))
    assert found == pytest.approx([epsilon_of_mu(*case) for case in cases], rel=1e-9, abs=1e-12)
