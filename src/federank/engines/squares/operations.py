"""What a round of FCF costs, counted, beside FedRec's formulas for it (Lin et al., 2020, section 3.3).

    with d factors, m items, n users, |I_u| items of the user's
    device     d^2 |I_u| + d^3 + m d operations, 8 m d bytes up and down together
    server     1 + d n m operations

The solve counts d^3. Y'Y, which the paper leaves out, is not counted: it is the same for everybody.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from federank.arrays import FloatMatrix, IntVector
from federank.engines.complexity import Cost, Counted, multiplications
from federank.models.squares import Objective, gram_matrix, pulls, solve_person
from federank.protocol.squares.codec import dense_bytes, squares_broadcast_bytes, squares_update_bytes


def fcf_cost(item_vectors: FloatMatrix, profiles: Sequence[IntVector]) -> Cost:
    """What a round costs people with these histories."""
    m, d = item_vectors.shape
    vectors, weights = item_vectors.view(Counted), np.ones(m, dtype=np.float32)
    gram = gram_matrix(item_vectors, weights)
    objective = Objective(np.float32(2), np.float32(1))

    def take_part(profile: IntVector) -> None:
        pulls(objective, vectors, solve_person(objective, 1.0, vectors, weights, gram, profile), profile)

    made = [multiplications(lambda profile=profile: take_part(profile)) + d**3 for profile in profiles]  # type: ignore[misc]
    return Cost(
        vectors_up=m,
        vectors_down=m,
        bytes_up=squares_update_bytes(m, d),
        bytes_up_written_out=dense_bytes(m, d),
        bytes_down=squares_broadcast_bytes(m, d, whole=True, as_codes=False, weighted=False),
        device_operations=float(np.mean(made)),
        server_operations=float(d * m * len(profiles)),
    )


def fcf_of_paper(*, size: float, users: int, items: int, factors: int) -> Cost:
    """The paper's formulas, for devices that have so many items in the mean."""
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
