"""Transmission of what was learnt from ratings: everything, in an order that tells nothing."""

import numpy as np

from federank.methods.fedrec.reference import RatingGradients, share_ratings


def test_rows_follow_their_items_into_ascending_order():
    rated_first = np.array([8, 3, 5], dtype=np.int64)
    vectors = np.float64([[8, 80], [3, 30], [5, 50]])
    second = np.int64([3, 8]), np.float64([[1, 2], [3, 4]])
    update = share_ratings(RatingGradients(rated_first, vectors, *second))
    assert update.items.tolist() == [3, 5, 8]
    assert update.vectors.tolist() == [[3, 30], [5, 50], [8, 80]]
    assert update.implicit_items.tolist() == [3, 8]
    assert update.implicit_vectors.tolist() == [[1, 2], [3, 4]]
    assert [part.dtype for part in update] == [np.int32, np.float32, np.int32, np.float32]


def test_which_items_were_rated_does_not_show_in_an_update_of_pmf():
    vectors = np.float32([[1], [2], [3], [4]])
    items = np.int32([7, 2, 9, 4])  # two rated, then two sampled
    none = np.zeros(0, np.int32), np.zeros((0, 1), np.float32)
    one = share_ratings(RatingGradients(items, vectors, *none))
    swapped = [2, 3, 0, 1]
    other = share_ratings(RatingGradients(items[swapped], vectors[swapped], *none))
    for part, same in zip(one, other, strict=True):
        np.testing.assert_array_equal(part, same)
