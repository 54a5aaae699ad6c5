"""What the equations of few messages can give: a message that they cannot is a lie, and is refused where it is
readable.

A device's vector is solved for from its history, and its strengths follow from both (models/squares.py). So whoever
can read a message and has the model that it was computed from can check every number of it:

1. strengths + w Y x is 0 for what the person has not, and (1 + alpha)(1 - Y x) + w Y x for what they have;
2. x is the vector that solves for these items;
3. the scale is n^-activity at most, for a history of n items.

What is left to a liar is to make a history up.
"""

from __future__ import annotations

import numpy as np

from federank.arrays import FloatMatrix, FloatVector, RealMatrix
from federank.models.squares import solve_person
from federank.protocol.squares.messages import SquaresUpdate
from federank.protocol.squares.recipes import SquaresRecipe

SLACK = 0.01
"""Strengths of 32-bit floats, and a vector that a browser has solved for in its own order."""


def why_implausible_squares(
    recipe: SquaresRecipe,
    update: SquaresUpdate,
    vectors: FloatMatrix,
    weights: FloatVector,
    gram: RealMatrix,
    regulariser: float,
) -> str | None:
    """Why no device can have sent this message, in a sentence; `vectors` as published, `gram` is their Y'DY."""
    scores = vectors @ update.vector
    liked, unobserved = float(recipe.objective.liked), float(recipe.objective.unobserved)
    own = update.strengths + unobserved * scores
    if_liked = liked * (1 - scores) + unobserved * scores
    slack = SLACK * (1 + np.abs(scores))
    has = np.abs(own - if_liked) < np.abs(own)
    if not np.all(np.where(has, np.abs(own - if_liked), np.abs(own)) <= slack):
        return "The strengths of a message must be those of some history; these are of none."
    profile = np.flatnonzero(has).astype(np.int32)
    if not len(profile):
        return "A message must be that of a history; this one has no item."
    if float(update.scale) > len(profile) ** -recipe.activity * (1 + SLACK):
        return f"A message of {len(profile)} items counts less; its scale is {float(update.scale):g}."
    solved = solve_person(recipe.objective, regulariser, vectors, weights, gram, profile)
    if np.linalg.norm(solved - update.vector) > SLACK * (1 + np.linalg.norm(solved)):
        return "The vector of a message must be the one that its history gives; this one is not."
    return None
