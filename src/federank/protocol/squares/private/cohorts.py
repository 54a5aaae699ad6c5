"""Cohorts, one after the other: how a federation in the world plays a plan that a simulation plays once.

A plan has as many rounds as a life has messages. In the world people come when they come: once a plan's rounds are
folded, the next cohort plays them again, and what it says joins what is known.

    first    sums of popularity add up over cohorts, and so does their noise. What earlier cohorts' items have in
             common, S S', is told anew with the weights that follow, and stays the model until somebody says more
    later    A = C V of this cohort, and S S'V beside it: as if the earlier people had spoken once more

The first cohort is what the simulation plays, to the last bit.
"""

from __future__ import annotations

from typing import NamedTuple

from federank.arrays import FloatMatrix, FloatVector, RealMatrix, RealVector
from federank.protocol.squares.private.fold import fold_histories, fold_popularity, moved, vectors_of_sketch
from federank.protocol.squares.private.joined import Heard, heard_from
from federank.protocol.squares.private.message import directions_of
from federank.protocol.squares.private.plan import PrivatePlan
from federank.protocol.squares.shown import hold_back, private_tastes


class PrivateModel(NamedTuple):
    """A model that was learnt from sums with noise, and what the next fold remembers."""

    vectors: FloatMatrix  # items x factors: D^-1 [V, q]
    weights: FloatVector  # D^2
    popularity: RealVector  # of at most 1; zeros before the first fold
    summed: RealVector  # popularity as all cohorts together have told it
    earlier: RealMatrix  # what earlier cohorts' items have in common, items x directions; no columns for the first one
    newest: RealMatrix  # the same after the newest fold
    heard: Heard  # what this cohort's rounds have told, where they are read together; no columns elsewhere


def fold_of_cohort(
    plan: PrivatePlan,
    seed: int,
    shrinkage: float,
    folds: int,
    model: PrivateModel,
    told: FloatMatrix,
    sums: RealMatrix,
    most_shown: float = 1.0,
) -> PrivateModel:
    """The model after one more fold; `folds` have been before, and `told` are the vectors as devices had them.

    No item is shown to a larger share of people than `most_shown`, as soon as there is more than popularity to show.
    """
    after = _folded(plan, seed, shrinkage, folds, model, told, sums)
    if folds == 0 or most_shown >= 1:
        return after
    return after._replace(vectors=hold_back(after.vectors, private_tastes(after.vectors, after.weights), most_shown))


def _folded(
    plan: PrivatePlan, seed: int, shrinkage: float, folds: int, model: PrivateModel, told: FloatMatrix, sums: RealMatrix
) -> PrivateModel:
    cohort, stage = divmod(folds, len(plan.deviations))
    if stage == 0:
        return _after_popularity(plan, seed, shrinkage, cohort, model, sums[:, 0])
    if model.earlier.shape[1]:
        wanted = directions_of(told, model.weights).wanted
        sums = sums + model.earlier @ (model.earlier.T @ wanted)
    folded = fold_histories(plan, stage, shrinkage, model.popularity, told, sums, model.heard)
    vectors, newest, heard = folded
    return model._replace(vectors=vectors, newest=newest, heard=heard)


def _after_popularity(
    plan: PrivatePlan, seed: int, shrinkage: float, cohort: int, model: PrivateModel, summed: RealVector
) -> PrivateModel:
    summed = summed + model.summed if cohort else summed
    popularity, weights, vectors = fold_popularity(plan, seed, summed, cohort + 1)
    earlier = model.newest
    if earlier.shape[1]:
        earlier = moved(plan, model.popularity, popularity, earlier)
        vectors = vectors_of_sketch(plan, shrinkage, popularity, earlier)
    nothing = heard_from(earlier[:, :0])
    return PrivateModel(vectors, weights, popularity, summed, earlier, earlier, nothing)
