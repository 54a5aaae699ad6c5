"""Probabilistic matrix factorisation: the maths of predicting a rating from two vectors.

A user's rating of an item is predicted as U_u . V_i (Mnih and Salakhutdinov, 2007; FedRec, 2020, Eq. 1): no mean, no
biases. With the error e = U_u . V_i - r_ui, the gradients of (e^2 + lambda |U_u|^2 + lambda |V_i|^2) / 2 are

    user    e V_i + lambda U_u
    item    e U_u + lambda V_i

Whoever applies them subtracts them, multiplied by the learning rate. SVD++ (svdpp.py) uses the same three formulas
with more than U_u in the place of U_u.
"""

from __future__ import annotations

from typing import Any

from federank.models.rows import dot, inlined


@inlined
def rating_error(user: Any, item: Any, rating: Any) -> Any:
    """How much too high the predicted rating is."""
    return dot(user, item) - rating


@inlined
def user_gradient(error: Any, user: Any, item: Any, regulariser: Any) -> Any:
    """Away from which the user's own vector should go."""
    return error * item + regulariser * user


@inlined
def item_gradient(error: Any, user: Any, item: Any, regulariser: Any) -> Any:
    """Away from which an item's vector should go."""
    return error * user + regulariser * item
