"""What honest people get from a poisoned federation, as metrics of the run:

precision@10_honest, precision@10_defended      nobody lies: as published, and with the defences on
exposure_5, exposure_undefended_5               5 % of the devices lie: share of people who see the pushed item
precision_5, precision_undefended_5             and P@10
rank_5, rank_undefended_5                       and the item's median rank
"""

from __future__ import annotations

from federank.data.splits import Split
from federank.studies.plan.poison import Poison


def poisoned(method: str, split: Split, poison: Poison, seed: int) -> dict[str, float]:
    """Play the federation honest, and attacked by each share of liars."""
    from federank.audit.poisoning.rehearsal import DEFENCES, play
    from federank.audit.poisoning.world import make_world

    bounds = DEFENCES[method]
    first = poison.settings(method, poison.shares[0], seed)
    calm = make_world(split, first, liars=False)
    metrics = {
        "precision@10": play(calm, first, None).precision,
        "precision_defended": play(calm, first, bounds).precision,
    }
    for share in poison.shares:
        settings = poison.settings(method, share, seed)
        world, percent = make_world(split, settings), f"{100 * share:g}"
        for name, found in (("_undefended", play(world, settings, None)), ("", play(world, settings, bounds))):
            metrics[f"exposure{name}_{percent}"] = found.exposure
            metrics[f"precision{name}_{percent}"] = found.precision
            metrics[f"rank{name}_{percent}"] = found.median_rank
    return metrics
