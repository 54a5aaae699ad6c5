"""What Frugal and FCF send, counted from who took part when.

Upwards a client sends a number for each item and its vector; written out, as sums that no one may
read the parts of need it, that is a row for every item. Downwards it gets the full model the first time and then the
rows that changed (all of them), and the last model once more, to recommend from.
Bytes are those of the messages as they are encoded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from federank._numerics.arrays import FloatMatrix, IntVector
from federank._numerics.topn import gram_matrix
from federank.federation.schedule import arriving, selected
from federank.methods.frugal.objective import Objective, residuals, solve_user
from federank.methods.frugal.simulation import FrugalFederation
from federank.methods.frugal.wire import dense_bytes, model_bytes, update_bytes
from federank.simulation.complexity import Cost, Counted, multiplications
from federank.simulation.federated import traffic


def count_communication(
    federation: FrugalFederation, interactions: int, rounds: int, supported: int | None = None
) -> dict[str, Any]:
    """The communication of the first rounds of a run: totals, means per round, what a client has sent in its lifetime.

    `supported` is how many items later uploads cover, where that is not all of them.
    """
    method, schedule, n_users = federation.method, federation.schedule, len(federation.sent)
    secure, counts_first = federation.is_private, method.min_support > 1 and not federation.is_private
    n_items, all_users = method.n_items, np.arange(n_users, dtype=np.int32)
    spent, uploads, rows_up, bytes_up, bytes_dense = np.zeros(n_users, dtype=np.int32), 0, 0, 0, 0
    last_seen = np.full(n_users, -1, dtype=np.int64)  # the version that each client has; -1: none
    rows, changed, is_weighted = (0 if counts_first else n_items), 0, False  # of the model, and when it changed last
    down_rows, down_bytes, down_dense, down_full, downloads = 0, 0, 0, 0, 0
    for number in range(rounds + 1):  # then the last model, for everyone
        invited = selected(schedule, number, spent) if number < rounds else all_users
        behind = int((last_seen[invited] < changed).sum())
        weighted = is_weighted and (method.item_weight_exponent > 0 or secure)
        full, nothing = (
            model_bytes(
                count, method.factors, all_rows=count == n_items, as_codes=method.encoding == "int8", weighted=weighted
            )
            for count in (rows, 0)
        )
        down_rows, downloads = down_rows + behind * rows, downloads + len(invited)
        down_bytes += behind * full + (len(invited) - behind) * nothing
        down_dense, down_full = down_dense + len(invited) * rows, down_full + len(invited) * full
        if number == rounds:
            break
        last_seen[invited] = number
        sent = len(arriving(schedule, number, invited))
        is_counting = counts_first and rows == 0
        own_rows, factors = (n_items, 0) if is_counting else (rows, method.factors)
        uploads, rows_up = uploads + sent, rows_up + sent * own_rows
        if secure:  # a share of integers of 32 bits
            each = written_out = 4 * own_rows * (method.columns if number else 1)
        else:
            each, written_out = update_bytes(own_rows, factors), dense_bytes(own_rows, factors)
        bytes_up, bytes_dense = bytes_up + sent * each, bytes_dense + sent * written_out
        spent[invited] += 1
        if is_counting and uploads < len(schedule.participants) and number + 1 < schedule.cohorts:
            continue
        if sent or is_counting:  # all rows change
            rows, changed, is_weighted = (n_items if supported is None else supported), number + 1, not is_counting
    return {
        "rounds": rounds,
        "uploads": uploads,
        "downloads": downloads,
        "up": traffic(rows_up, bytes_up, rounds),
        "up_written_out": traffic(rows_up, bytes_dense, rounds),
        "down_dense": traffic(down_dense, down_full, rounds),
        "down_changed": traffic(down_rows, down_bytes, rounds),
        "papers": {
            "cce": 2 * len(schedule.participants) * n_items,
            "freshness": 1,
            "normalised_freshness": 1 / max(interactions, 1),
        },
    }


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
        bytes_up=update_bytes(m, d),
        bytes_up_written_out=dense_bytes(m, d),
        bytes_down=model_bytes(m, d, all_rows=True, as_codes=False, weighted=False),
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
