"""What few messages send, counted from who took part when.

Upwards a device sends a number for each item and its vector; written out, as sums that no one may
read the parts of need it, that is a row for every item. Downwards it gets the full model the first time and then the
rows that changed (all of them), and the last model once more, to recommend from.
Bytes are those of the messages as they are encoded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from federank._numerics.arrays import FloatMatrix, IntVector
from federank.methods.frugal.method import choose_cohort, who_answers
from federank.methods.frugal.objective import Objective, gram_matrix, residuals, solve_user
from federank.methods.frugal.server_update import private_columns
from federank.methods.frugal.settings import FrugalRecipe
from federank.methods.frugal.wire import dense_bytes, frugal_broadcast_bytes, frugal_update_bytes
from federank.simulation.complexity import Cost, Counted, multiplications
from federank.simulation.federated import traffic


def count_frugal_communication(recipe: FrugalRecipe, n_users: int, interactions: int, rounds: int) -> dict[str, Any]:
    """The traffic of the first rounds of a run: totals, means per round, what a device has sent in its lifetime."""
    spent, uploads, rows_up, bytes_up, bytes_dense = np.zeros(n_users, dtype=np.int32), 0, 0, 0, 0
    last_seen = np.full(n_users, -1, dtype=np.int64)  # the version that each device has; -1: none
    changed = np.full(recipe.n_items, 0, dtype=np.int64)  # the version in which each row changed last
    down_rows, down_bytes, down_full, downloads = 0, 0, 0, 0
    for number in range(rounds):
        asked = choose_cohort(recipe, number, spent)
        rows, size = _downloads(recipe, last_seen[asked], changed)
        down_rows, down_bytes, downloads = down_rows + rows, down_bytes + size, downloads + len(asked)
        down_full += len(asked) * _full_model(recipe, changed)
        last_seen[asked] = number
        sent = len(who_answers(recipe, number, asked))
        uploads, rows_up = uploads + sent, rows_up + sent * recipe.n_items
        bytes_up += sent * _upload_bytes(recipe, number)
        bytes_dense += sent * (
            dense_bytes(recipe.n_items, recipe.factors) if recipe.private is None else _upload_bytes(recipe, number)
        )
        spent[asked] += 1
        if sent:
            changed[:] = number + 1
    rows, size = _downloads(recipe, last_seen, changed)  # the last model, for everyone
    down_rows, down_bytes, downloads = down_rows + rows, down_bytes + size, downloads + n_users
    down_full += n_users * _full_model(recipe, changed)
    return {
        "rounds": rounds,
        "uploads": uploads,
        "downloads": downloads,
        "up": traffic(rows_up, bytes_up, rounds),
        "up_written_out": traffic(rows_up, bytes_dense, rounds),
        "down_dense": traffic(downloads * recipe.n_items, down_full, rounds),
        "down_changed": traffic(down_rows, down_bytes, rounds),
        "papers": {
            "cce": 2 * len(recipe.participants) * recipe.n_items,
            "freshness": 1,
            "normalised_freshness": 1 / max(interactions, 1),
        },
    }


def _upload_bytes(recipe: FrugalRecipe, number: int) -> int:
    """Bytes of a message: as its factors, or where sums carry noise as a share of integers of 32 bits."""
    if recipe.private is None:
        return frugal_update_bytes(recipe.n_items, recipe.factors)
    return 4 * recipe.n_items * private_columns(recipe, number)


def _downloads(recipe: FrugalRecipe, seen: Any, changed: Any) -> tuple[int, int]:
    """Rows and bytes that devices download which have the model as of these versions."""
    rows_of_version = {int(version): int((changed > version).sum()) for version in np.unique(seen)}
    total_rows, total_bytes = 0, 0
    for version, rows in rows_of_version.items():
        devices = int((seen == version).sum())
        told = recipe.n_items if version < 0 else rows
        total_rows, total_bytes = total_rows + devices * told, total_bytes + devices * _told(recipe, told, changed)
    return total_rows, total_bytes


def _full_model(recipe: FrugalRecipe, changed: Any) -> int:
    """The bytes of all rows as they are now."""
    return _told(recipe, recipe.n_items, changed)


def _told(recipe: FrugalRecipe, rows: int, changed: Any) -> int:
    """The bytes of this many rows; items weigh alike, and weights are left out, until someone's message has come."""
    weighted = (recipe.popularity > 0 or recipe.private is not None) and bool(changed.any())
    whole = rows == recipe.n_items
    return frugal_broadcast_bytes(rows, recipe.factors, whole=whole, as_codes=recipe.as_codes, weighted=weighted)


# What a round of FCF costs, counted, beside FedRec's formulas for it (Lin et al., 2020, section 3.3).


def fcf_cost(item_vectors: FloatMatrix, profiles: Sequence[IntVector]) -> Cost:
    """What a round costs people with these histories."""
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
        bytes_down=frugal_broadcast_bytes(m, d, whole=True, as_codes=False, weighted=False),
        device_operations=float(np.mean(made)),
        server_operations=float(d * m * len(profiles)),
    )


def fcf_of_paper(*, size: float, users: int, items: int, factors: int) -> Cost:
    """The paper's formulas, for devices that have this many items in the mean."""
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
