"""The browser's protocol against Python's: the same seed, profile and Broadcast give the same pairs and Updates.

Both are asked the same questions at run time (questions.py); JavaScript runs under node here, and in a browser in
test_browser.py.
"""

import numpy as np
import pytest
from tests.service.web.questions import (
    CLOSE,
    ITEMS,
    POLICIES,
    assert_same_rounds,
    question_of_home,
    question_of_ledger,
    question_of_outward,
    question_of_rounds,
)
from tests.worlds import rows_message

from federank.errors import BadMessage
from federank.federation.rng import USER_FACTORS, absent_item, below, normal_rows, words, words_wrap_around
from federank.federation.wire import decode_rows, encode
from federank.methods.fpl.method import FPL, FPLModel, FPLUpdate, slope


def test_the_generator_gives_the_same_words(ask):
    rng = np.random.default_rng(5)
    names = [[int(part) for part in rng.integers(0, 2**32, 5)] for _ in range(200)]
    names += [[0] * 5, [2**32 - 1] * 5]
    with words_wrap_around():
        expected = [[int(word) for word in words(*name)] for name in names]
    assert ask({"kind": "words", "of": names}) == [expected]


def test_numbers_below_a_count_are_the_same(ask):
    rng = np.random.default_rng(6)
    pairs = [[int(rng.integers(0, 2**32)), int(rng.integers(1, 2**31))] for _ in range(500)]
    pairs += [[2**32 - 1, 2**31 - 1], [0, 1], [2**32 - 1, 1], [2**31, 3]]
    expected = [int(below(np.uint32(word), count)) for word, count in pairs]
    assert ask({"kind": "below", "of": pairs}) == [expected]


def test_missing_items_are_found_by_their_rank(ask):
    profile = [0, 1, 4, 9, 10, 19]
    ranks = list(range(20 - len(profile)))
    expected = [int(absent_item(np.array(profile), 0, len(profile), rank)) for rank in ranks]
    assert ask({"kind": "absent", "profile": profile, "ranks": ranks}) == [expected]


def test_a_client_draws_the_same_first_vector(ask):
    [found] = ask({"kind": "normal", "factors": 21, "seed": 7, "user": 3_000_000_000, "scale": 0.1})
    expected = normal_rows(1, 21, seed=7, purpose=USER_FACTORS, scale=0.1, first_row=3_000_000_000)[0]
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


def test_the_slope_saturates_and_agrees(ask):
    values = [*np.linspace(-90, 90, 181).tolist(), 1e30, -1e30]
    expected = [float(slope(np.float32(value))) for value in values]
    [found] = ask({"kind": "slope", "of": values})
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-30)


def an_update(rows=5, factors=3, seed=0):
    rng = np.random.default_rng(seed)
    items = np.sort(rng.choice(40, rows, replace=False)).astype(np.int32)
    vectors = rng.normal(size=(rows, factors)).astype(np.float32)
    return FPLUpdate(items, vectors, rng.normal(size=rows).astype(np.float32))


@pytest.mark.parametrize("rows", [1, 2, 17])
def test_an_update_is_written_in_pythons_bytes(ask, rows):
    update = an_update(rows)
    question = {"items": update.items.tolist(), "vectors": update.vectors.ravel().tolist()}
    [written] = ask({"kind": "encoded", **question, "biases": update.biases.tolist()})
    assert bytes(written) == encode(update)


def test_a_broadcast_is_read_as_python_wrote_it(ask):
    update = an_update(7)
    body = rows_message(12, 5, update.items, update.vectors, update.biases)
    [read] = ask({"kind": "decoded", "body": list(body), "factors": 3, "items": 40})
    assert (read["round"], read["version"]) == (12, 5)
    assert read["items"] == update.items.tolist()
    np.testing.assert_array_equal(np.float32(read["vectors"]), update.vectors.ravel())
    np.testing.assert_array_equal(np.float32(read["biases"]), update.biases)


def spoilt():
    """Broadcasts of 7 rows of 3 factors, out of a catalogue of 40, each with one thing wrong, and the code of that."""
    update = an_update(7)
    items, vectors, biases = update.items, update.vectors, update.biases
    body = rows_message(12, 5, items, vectors, biases)
    header = int.from_bytes(body[:8], "little")

    def renamed(old, new):
        assert old in body
        return body.replace(old, new, 1)

    def with_value(array, value):
        changed = array.copy()
        changed.flat[-1] = value
        return changed

    return {
        "nothing at all": (b"", "wire.short"),
        "cut in the header": (body[: header // 2], "wire.header"),
        "cut in the data": (body[:-4], "wire.outside"),
        "bytes left over": (body + bytes(4), "wire.overlap"),
        "a giant header": ((2**60).to_bytes(8, "little") + body[8:], "wire.header"),
        "a header that is no JSON": (body[:8] + b"!" + body[9:], "wire.header-json"),
        "a header that is a list": ((8).to_bytes(8, "little") + b"[1,2,3] ", "wire.header-table"),
        "a missing tensor": (renamed(b'"biases"', b'"blases"'), "wire.parts"),
        "another type": (renamed(b'"dtype":"I32"', b'"dtype":"F32"'), "wire.type"),
        "another shape": (renamed(b"[7,3]", b"[3,7]"), "wire.shape"),
        "offsets outside": (renamed(b"[28,112]", b"[28,912]"), "wire.outside"),
        "offsets that overlap": (renamed(b"[28,112]", b"[0 , 84]"), "wire.overlap"),
        "a round that is no number": (renamed(b"0000000012", b"00000000xy"), "wire.integer"),
        "no version": (renamed(b'"version"', b'"vershun"'), "wire.integer"),
        "too many factors": (rows_message(1, 1, items, np.zeros((7, 4), np.float32), biases), "wire.shape"),
        "an item beyond the catalogue": (rows_message(1, 1, with_value(items, 40), vectors, biases), "wire.items"),
        "items that do not ascend": (rows_message(1, 1, items[::-1].copy(), vectors, biases), "wire.items"),
        "a negative item": (rows_message(1, 1, np.sort(with_value(items, -1)), vectors, biases), "wire.items"),
        "not a number in a vector": (rows_message(1, 1, items, with_value(vectors, np.nan), biases), "wire.finite"),
        "infinity in a bias": (rows_message(1, 1, items, vectors, with_value(biases, np.inf)), "wire.finite"),
    }


def test_malformed_broadcasts_are_refused_in_both_languages(ask):
    cases = spoilt()
    asked = [{"kind": "decoded", "body": list(body), "factors": 3, "items": 40} for body, _ in cases.values()]
    for (name, (body, code)), read in zip(cases.items(), ask(*asked), strict=True):
        assert read == {"refused": code}, name
        with pytest.raises(BadMessage):
            decode_rows(FPLModel, FPL(n_items=40, factors=3), body)


def test_policies_give_the_same_shared_profiles(ask):
    # Sent before and still there; sent, and removed or forbidden since; more than may leave.
    before = ((), (8, 55), (1, 8, 59), (3, 5, 8), (0, 1, 4, 6, 7, 9), (-2, -1, 34), tuple(range(ITEMS)))
    asked = [question_of_outward(policy, sent) for policy in POLICIES.values() for sent in before]
    for (question, expected), found in zip(asked, ask(*(question for question, _ in asked)), strict=True):
        assert found == expected, question["policy"]


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, {"order": "as-printed", "mask": "as-printed"}, {"triples": 1, "factors": 3}])
def test_rounds_give_the_same_pairs_and_updates(ask, settings):
    asked = [question_of_rounds(policy, **settings) for policy in POLICIES.values()]
    for answer, (_, expected) in zip(ask(*(question for question, _ in asked)), asked, strict=True):
        assert_same_rounds(answer, expected)


def test_ledgers_hold_the_same(ask):
    asked = [question_of_ledger(policy) for policy in POLICIES.values()]
    for found, (_, expected) in zip(ask(*(question for question, _ in asked)), asked, strict=True):
        assert found == expected


def test_home_vectors_and_what_they_recommend_are_the_same(ask):
    question, (vector, best) = question_of_home()
    [found] = ask(question)
    np.testing.assert_allclose(found["vector"], vector, **CLOSE)
    assert found["best"] == best
