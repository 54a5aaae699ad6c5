"""Draws: the published generator, and choices that are what they claim to be."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from federank._numerics.compiling import compiled
from federank.federation.rng import SERVER, TRIPLE, absent_item, below, happens, threefry, words, words_wrap_around

ONES = 0xFFFFFFFF
WORDS = st.integers(0, ONES)


@compiled
def compiled_words(seed, user, round_number, counter):
    return words(seed, user, TRIPLE, round_number, counter)


@pytest.mark.parametrize(
    ("key", "counter", "answer"),
    [
        ([0] * 4, [0] * 4, [0x9C6CA96A, 0xE17EAE66, 0xFC10ECD4, 0x5256A7D8]),
        ([ONES] * 4, [ONES] * 4, [0x2A881696, 0x57012287, 0xF6C7446E, 0xA16A6732]),
        (
            [0xA4093822, 0x299F31D0, 0x082EFA98, 0xEC4E6C89],
            [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
            [0x59CD1DBB, 0xB8879579, 0x86B5D00C, 0xAC8B6D84],
        ),
    ],
)
def test_the_generator_gives_the_known_answers_of_its_publication(key, counter, answer):
    given_words = [np.array([word], dtype=np.uint32) for word in (*key, *counter)]
    assert [int(word[0]) for word in threefry(*given_words)] == answer


@given(seed=WORDS, user=WORDS, round_number=WORDS, counter=WORDS)
def test_interpreted_and_compiled_draws_are_the_same(seed, user, round_number, counter):
    with words_wrap_around():
        interpreted = words(seed, user, TRIPLE, round_number, counter)
    assert tuple(map(int, interpreted)) == tuple(map(int, compiled_words(seed, user, round_number, counter)))


def test_each_part_of_a_choices_name_matters():
    names = [(1, 2, 3, 4), (2, 2, 3, 4), (1, 3, 3, 4), (1, 2, 4, 4), (1, 2, 3, 5), (1, SERVER, 3, 4)]
    assert len({compiled_words(*name) for name in names}) == len(names)


@given(word=WORDS, count=st.integers(1, 2**31 - 1))
def test_a_number_below_a_count_is_below_it(word, count):
    assert 0 <= below(np.uint32(word), count) < count


@given(word=WORDS)
def test_what_has_probability_zero_never_happens_and_one_always(word):
    assert not happens(np.uint32(word), 0.0)
    assert happens(np.uint32(word), 1.0)


def test_events_happen_as_often_as_their_probability_says():
    drawn = [happens(compiled_words(1, user, 0, 0)[0], 0.3) for user in range(20_000)]
    assert np.mean(drawn) == pytest.approx(0.3, abs=4 * np.sqrt(0.21 / 20_000))


@given(profile=st.sets(st.integers(0, 19), max_size=19))
def test_ranks_among_the_missing_items_name_each_of_them_once(profile):
    ascending = np.array([99, *sorted(profile), 99], dtype=np.int32)  # someone else's items on either side
    missing = [int(absent_item(ascending, 1, len(profile), rank)) for rank in range(20 - len(profile))]
    assert missing == sorted(set(range(20)) - profile)
