"""Clipping and noise: a disguise that goes around transmission and leaves its maths alone.

1. Clip: the whole Update, vectors and biases together, is scaled down to a length (L2 norm) of at most `clip`.
2. Noise: normal numbers of deviation sigma are added, to one of these:

    all-rows    every row of the catalogue; sigma = noise x clip. What is in the Update, and which rows it has, are
                hidden in the same noise, so a differential-privacy figure may be stated (privacy.py). The Update is
                as large as the whole model.
    sums        every row of the catalogue, but only a share of the noise: sigma = noise x clip / sqrt(K) for K devices
                a round, so that their sum has noise x clip. The figure holds for whoever sees nothing but such sums.

The ledger is written before: it tells what went into an Update, of which an observer sees less.
"""

from __future__ import annotations

import numpy as np

from federank.arrays import FloatMatrix
from federank.compiling import compiled
from federank.protocol.draws import NOISE, words
from federank.protocol.initial import normal_pair
from federank.protocol.messages import Update
from federank.protocol.pairs.recipes import Recipe


def disguise(recipe: Recipe, user: int, round_number: int, update: Update, n_items: int) -> Update:
    """The Update as it is sent: clipped and noisy, where the recipe asks for it."""
    if recipe.clip > 0:
        update = clipped(update, recipe.clip)
    if recipe.deviation > 0:
        update = with_noise(on_all_rows(update, n_items), recipe.deviation, recipe.seed, user, round_number)
    return update


def clipped(update: Update, clip: float) -> Update:
    """The same direction, at most this long."""
    numbers = np.concatenate((update.vectors.ravel(), update.biases), dtype=np.float64)
    length = np.sqrt(numbers @ numbers)
    if length <= clip:
        return update
    scale = np.float32(clip / length)
    return Update(update.items, scale * update.vectors, scale * update.biases)


def on_all_rows(update: Update, n_items: int) -> Update:
    """The same gradients, with a row of zeros for every other item."""
    vectors = np.zeros((n_items, update.vectors.shape[1]), dtype=np.float32)
    biases = np.zeros(n_items, dtype=np.float32)
    vectors[update.items], biases[update.items] = update.vectors, update.biases
    return Update(np.arange(n_items, dtype=np.int32), vectors, biases)


def with_noise(update: Update, deviation: float, seed: int, user: int, round_number: int) -> Update:
    """Every number of it with a normal one added."""
    noise = np.empty((len(update.items), update.vectors.shape[1] + 1), dtype=np.float32)
    fill_with_noise(noise, seed, user, round_number)
    noise *= np.float32(deviation)
    return Update(update.items, update.vectors + noise[:, :-1], update.biases + noise[:, -1])


@compiled
def fill_with_noise(noise: FloatMatrix, seed: int, user: int, round_number: int) -> None:
    """Normal numbers of mean 0 and deviation 1, drawn for one user and round."""
    flat = noise.reshape(-1)
    for block in range((len(flat) + 3) // 4):
        a, b, c, d = words(seed, user, NOISE, round_number, block)
        one, two = normal_pair(a, b)
        three, four = normal_pair(c, d)
        for lane, value in enumerate((one, two, three, four)):
            if 4 * block + lane < len(flat):
                flat[4 * block + lane] = np.float32(value)
