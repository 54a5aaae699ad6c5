"""Noise: the rounded normal distribution, to the last digits, from whatever bits are handed in."""

import numpy as np
import pytest
import scipy

from federank.errors import SettingError
from federank.secagg.exchange import draw_noise, with_noise
from federank.secagg.ring import NoiseTable, centred, noise_table, rounded_noise


def bits(*sizes, sign=0):
    """Random words that say these 127-bit numbers."""
    return np.array([[(size >> 64) | (sign << 63), size % 2**64] for size in sizes], dtype=np.uint64)


def below(table, size):
    """How likely a smaller size is, as a 127-bit number."""
    return (int(table.high[size - 1]) << 64) + int(table.low[size - 1]) if size else 0


@pytest.mark.parametrize("deviation", [64.0, 700.5, 32768.0])
def test_every_size_is_as_likely_as_the_normal_distribution_says(deviation):
    table = noise_table(deviation)
    for size in (0, 1, 2, int(deviation), int(3 * deviation), int(6 * deviation), int(9 * deviation)):
        told = (below(table, size + 1) - below(table, size)) / 2**127
        density = scipy.stats.norm.pdf(size / deviation) / deviation * (1 if size == 0 else 2)
        # Across a cell the density bends by (t^2 - 1) / 24 s^2 of itself.
        bend = 1 + ((size / deviation) ** 2 - 1) / (24 * deviation**2)
        assert told == pytest.approx(density * bend, rel=1e-6)


def test_sizes_change_exactly_where_the_table_says():
    table = noise_table(64.0)
    for size in (1, 2, 64, 300):
        edge = below(table, size)
        assert rounded_noise(table, bits(edge - 1, edge)).tolist() == [size - 1, size]
        assert rounded_noise(table, bits(edge - 1, edge, sign=1)).tolist() == [1 - size, -size]
    assert rounded_noise(table, bits(0, 2**127 - 1)).tolist() == [0, len(table.high)]


def test_lower_words_decide_where_several_sizes_share_the_upper_word():
    table = NoiseTable(np.array([5, 5, 5, 2**63], dtype=np.uint64), np.array([10, 20, 30, 0], dtype=np.uint64))
    drawn = rounded_noise(table, bits(*((5 << 64) + low for low in (9, 10, 19, 20, 29, 30, 31))))
    assert drawn.tolist() == [0, 1, 1, 2, 2, 3, 3]


def test_a_large_sample_has_the_deviation_and_both_signs():
    words = np.random.default_rng(1).integers(0, 2**64, (200_000, 2), dtype=np.uint64)
    drawn = rounded_noise(noise_table(10_000.0), words)
    assert drawn.std() == pytest.approx(10_000, rel=0.01)
    assert drawn.mean() == pytest.approx(0, abs=100)
    assert (drawn[:10] == rounded_noise(noise_table(10_000.0), words[:10])).all()


@pytest.mark.parametrize("deviation", [0.0, 63.9, 2.0**23, np.nan])
def test_deviations_for_which_the_table_would_not_be_exact_are_refused(deviation):
    with pytest.raises(SettingError, match="deviation"):
        noise_table(deviation)


@pytest.mark.parametrize("deviation", [64, 4096, 32768])
def test_attack_telling_two_sums_apart_by_which_numbers_noise_can_give(deviation):
    """Noise of floating point has holes that a sum shows through. Here every integer within nine deviations can
    come, on both sides of any sum, so what is published is possible with a person's message and without it."""
    table = noise_table(float(deviation))
    assert len(table.high) > 9 * deviation
    for size in (0, 1, 2, 3, deviation, 5 * deviation, 9 * deviation - 1):
        assert below(table, size) < below(table, size + 1)
    gaps = np.diff(np.concatenate([[0], table.high.astype(object) * 2**64 + table.low.astype(object)]))
    assert (gaps > 0).all()
    noise = draw_noise(deviation, 20_000, np.random.default_rng(4).bytes)
    assert noise.dtype == np.int64
    assert np.bincount(noise % 4, minlength=4) / 20_000 == pytest.approx(np.full(4, 0.25), abs=0.02)
    total = np.arange(20_000, dtype=np.uint32)
    np.testing.assert_array_equal(centred(with_noise(total, noise)), np.arange(20_000) + noise)  # exact, no rounding
