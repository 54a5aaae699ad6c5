"""What few messages send, counted from who took part when.

Upwards a client sends a number for each item and its vector; written out, as sums that no one may
read the parts of need it, that is a row for every item. Downwards it gets the full model the first time and then the
rows that changed (all of them), and the last model once more, to recommend from.
Bytes are those of the messages as they are encoded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from federank._numerics.arrays import FloatMatrix, IntVector
from federank._numerics.topn import gram_matrix
from federank.methods.frugal.objective import Objective, residuals, solve_user
from federank.methods.frugal.protocol import choose_cohort, who_answers
from federank.methods.frugal.server_update import private_columns
from federank.methods.frugal.settings import FrugalRecipe
from federank.methods.frugal.wire import dense_bytes, frugal_broadcast_bytes, frugal_update_bytes
from federank.simulation.complexity import Cost, Counted, multiplications
from federank.simulation.federated import traffic


def count_frugal_communication(
    recipe: FrugalRecipe, n_users: int, interactions: int, rounds: int, supported: int | None = None
) -> dict[str, Any]:
    """The traffic of the first rounds of a run: totals, means per round, what a client has sent over its lifetime.

    `supported` is how many items later messages cover, where that is not all of them.
    """
    covered = recipe.n_items if supported is None else supported
    spent, uploads, rows_up, bytes_up, bytes_dense = np.zeros(n_users, dtype=np.int32), 0, 0, 0, 0
    last_seen = np.full(n_users, -1, dtype=np.int64)  # the version that each client has; -1: none
    model = _Model(recipe, 0 if _counts_first(recipe) else recipe.n_items)
    down_rows, down_bytes, down_dense, down_full, downloads = 0, 0, 0, 0, 0
    for number in range(rounds + 1):  # then the last model, for everyone
        invited = choose_cohort(recipe, number, spent) if number < rounds else np.arange(n_users, dtype=np.int32)
        behind = int((last_seen[invited] < model.changed).sum())
        down_rows, downloads = down_rows + behind * model.rows, downloads + len(invited)
        down_bytes += behind * model.bytes_of(model.rows) + (len(invited) - behind) * model.bytes_of(0)
        down_dense, down_full = (
            down_dense + len(invited) * model.rows,
            down_full + len(invited) * model.bytes_of(model.rows),
        )
        if number == rounds:
            break
        last_seen[invited] = number
        sent = len(who_answers(recipe, number, invited))
        is_counting = _counts_first(recipe) and model.rows == 0
        rows = recipe.n_items if is_counting else model.rows
        factors = 0 if is_counting else recipe.factors
        uploads, rows_up = uploads + sent, rows_up + sent * rows
        if recipe.private is None:
            each, written_out = frugal_update_bytes(rows, factors), dense_bytes(rows, factors)
        else:  # a share of integers of 32 bits
            each = written_out = 4 * rows * private_columns(recipe, number)
        bytes_up, bytes_dense = bytes_up + sent * each, bytes_dense + sent * written_out
        spent[invited] += 1
        if is_counting and uploads < len(recipe.participants) and number + 1 < recipe.cohorts:
            continue
        if sent or is_counting:
            model = model._replace(rows=covered, changed=number + 1, is_weighted=not is_counting)
    return {
        "rounds": rounds,
        "uploads": uploads,
        "downloads": downloads,
        "up": traffic(rows_up, bytes_up, rounds),
        "up_written_out": traffic(rows_up, bytes_dense, rounds),
        "down_dense": traffic(down_dense, down_full, rounds),
        "down_changed": traffic(down_rows, down_bytes, rounds),
        "papers": {
            "cce": 2 * len(recipe.participants) * recipe.n_items,
            "freshness": 1,
            "normalised_freshness": 1 / max(interactions, 1),
        },
    }


class _Model(NamedTuple):
    """What there is to download between two rounds."""

    recipe: FrugalRecipe
    rows: int
    changed: int = 0  # the version in which its rows changed last: all of them do
    is_weighted: bool = False  # items weigh alike, and weights are left out, until a model has been learnt

    def bytes_of(self, rows: int) -> int:
        """The bytes of this many of its rows."""
        recipe = self.recipe
        weighted = self.is_weighted and (recipe.popularity > 0 or recipe.private is not None)
        all_rows = rows == recipe.n_items
        return frugal_broadcast_bytes(
            rows, recipe.factors, all_rows=all_rows, as_codes=recipe.as_codes, weighted=weighted
        )


def _counts_first(recipe: FrugalRecipe) -> bool:
    return recipe.min_support > 1 and recipe.private is None


# What a round of FCF costs, counted, beside FedRec's formulas for it (Lin et al., 2020, section 3.3).


def fcf_cost(item_vectors: FloatMatrix, profiles: Sequence[IntVector]) -> Cost:
    """What a round costs users with these histories."""
    m, d = item_vectors.shape
    vectors, weights = item_vectors.view(Counted), np.ones(m, dtype=np.float32)
    gram = gram_matrix(item_vectors, weights)
    objective = Objective(np.float32(2), np.float32(1))

    def take_part(profile: IntVector) -> None:
        residuals(objective, vectors, solve_user(objective, 1.0, vectors, weights, gram, profile), profile)

    made = [multiplications(lambda profile=profile: take_part(profile)) + d**3 for profile in profiles]  # type: ignore[misc]
    return Cost(
        vectors_up=m,
        vectors_down=m,
        bytes_up=frugal_update_bytes(m, d),
        bytes_up_written_out=dense_bytes(m, d),
        bytes_down=frugal_broadcast_bytes(m, d, all_rows=True, as_codes=False, weighted=False),
        device_operations=float(np.mean(made)),
        server_operations=float(d * m * len(profiles)),
    )


def fcf_of_paper(*, size: float, users: int, items: int, factors: int) -> Cost:
    """The paper's formulas, for clients that have this many items in the mean."""
    m, d = items, factors
    return Cost(
        vectors_up=m,
        vectors_down=m,
        bytes_up=4 * d * m,
        bytes_up_written_out=4 * d * m,
        bytes_down=4 * d * m,
        device_operations=d**2 * size + d**3 + m * d,
        server_operations=1 + d * users * m,
    )
