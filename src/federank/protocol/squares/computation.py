"""Computation: on the device, with what its owner lets it take part with; the history itself stays there.

The device knows the item vectors, so everything follows in closed form: Y'DY, its own vector, and one number for each
item (models/squares.py has the equations). At home the same solve, from the whole history, gives
the vector that recommendations come from.
"""

from __future__ import annotations

import numpy as np

from federank.arrays import FloatVector, IntVector
from federank.models.squares import gram_matrix, pulls, solve_person
from federank.protocol.squares.messages import SquaresBroadcast, SquaresPrivate, rows_of
from federank.protocol.squares.recipes import SquaresRecipe


def own_vector(recipe: SquaresRecipe, broadcast: SquaresBroadcast, profile: IntVector) -> FloatVector:
    """The vector that explains this profile best: in a message the outward one, at home the whole history."""
    rows = np.ascontiguousarray(rows_of(broadcast))
    gram = gram_matrix(rows, broadcast.weights)
    return solve_person(recipe.objective, broadcast.regulariser, rows, broadcast.weights, gram, profile)


def compute_squares(
    recipe: SquaresRecipe, device: SquaresPrivate, broadcast: SquaresBroadcast
) -> tuple[FloatVector, FloatVector]:
    """How strongly each item should move towards the device's vector, and that vector."""
    profile = device.outward.profile
    vector = own_vector(recipe, broadcast, profile)
    return pulls(recipe.objective, rows_of(broadcast), vector, profile), vector
