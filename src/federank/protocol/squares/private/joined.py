"""Few directions under much noise: what all later rounds have told is read together.

Where noise is strong, a round alone says little, and the rounds before it have asked in nearly the same directions. In
units of its noise, a round r that asked with V_r was answered A_r = C V_r + noise of deviation 1 in every number. Side
by side, [V_1, V_2, ...] = B diag(s) W' and [A_1, A_2, ...] W / s = C B: what C says in the direction B_j, with noise of
deviation 1 / s_j, the smaller the oftener it was asked for. Only the best so many directions are kept.

Turned to where what is inside, B'C B, is strongest, each number is shrunk as Wiener's filter does, by how much signal
its column has, and how much of that its item's popularity lets expect. Nystrom's formula does the rest, as in fold.py.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from federank.arrays import RealMatrix, RealVector

CONCENTRATION = 4.0
"""Signal is in few items: in those that matter it is four times what popularity lets expect."""
ALIKE = 0.25
"""Until the last round each direction counts so much in scores: messages are to look in all of them alike."""
_LEAST = 1e-3


class Heard(NamedTuple):
    """What rounds have asked and were answered, both in units of their noise."""

    asked: RealMatrix  # items x directions, orthogonal: B diag(s)
    answered: RealMatrix  # items x directions: C B diag(s), with noise of deviation 1

    def stored(self) -> RealMatrix:
        """Both, side by side."""
        return np.hstack(self)


def heard_from(stored: RealMatrix) -> Heard:
    """What `stored` gave; nothing yet where there are no columns, or zeros."""
    asked, answered = np.hsplit(stored, 2)
    told = np.einsum("ij,ij->j", asked, asked) > 0
    return Heard(asked[:, told], answered[:, told])


def heard_also(heard: Heard, asked: RealMatrix, answered: RealMatrix, noise: float) -> Heard:
    """One more round; as many directions are kept as it asked in."""
    directions = asked.shape[1]
    unit = np.sqrt(directions) / np.linalg.norm(asked) / noise  # messages are of length 1, however long V is
    left, s, right = np.linalg.svd(np.hstack((heard.asked, unit * asked)), full_matrices=False)
    together = np.hstack((heard.answered, answered / noise)) @ right.T
    return Heard((left * s)[:, :directions], together[:, :directions])


def sketch_of_heard(heard: Heard, expected: RealVector) -> RealMatrix:
    """What people's items have in common, as all rounds together tell it: items x directions, C ~ S S'."""
    s = np.linalg.norm(heard.asked, axis=0)
    sides, seen, noise = heard.asked / s, heard.answered / s, 1 / s
    turned = _strongest(sides.T @ seen)[1]
    sides, seen = sides @ turned, seen @ turned
    seen = _shrunk(seen, np.sqrt((turned**2).T @ noise**2), expected)
    values, turned = _strongest(sides.T @ seen)
    least = max(float(np.linalg.norm(noise)), _LEAST * values[-1], 1e-12)
    sketch: RealMatrix = seen @ (turned / np.sqrt(np.maximum(values, least)))
    return sketch


def _strongest(inside: RealMatrix) -> tuple[RealVector, RealMatrix]:
    values, vectors = np.linalg.eigh((inside + inside.T) / 2)
    return values, vectors


def _shrunk(seen: RealMatrix, noise: RealVector, expected: RealVector) -> RealMatrix:
    """Wiener's filter: each number times signal / (signal + noise) of its column and its item."""
    energy = np.einsum("ij,ij->j", seen, seen)
    signal = np.maximum(energy - len(seen) * noise**2, _LEAST * energy)
    each = CONCENTRATION * np.outer(expected, signal)
    kept: RealMatrix = seen * (each / (each + noise**2))
    return kept
