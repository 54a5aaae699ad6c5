"""What the papers say a federation costs (FPL, 2020, section 3.2).

With |U-| clients a round and rpe rounds an epoch, an epoch has rho = |U-| rpe interactions between a client and the
server. Each sends the whole catalogue down and T (1 + pi) item rows up:

    CCE = rho (|I| + T (1 + pi))        communication cost of an epoch, in item rows
    freshness = rpe                     how often the shared model is renewed in an epoch
    normalised freshness = rpe / X+     1 for one client a round, less for more

The formula counts a row sent twice in one message as two, and every download as the whole model;
`engines/communication.py` counts what a run really sends.
"""

from __future__ import annotations


def communication_cost(interactions: float, n_items: int, triples: float, pi: float) -> float:
    """CCE: item rows sent in an epoch of this many client-server interactions."""
    return interactions * (n_items + triples * (1 + pi))


def freshness(rounds_per_epoch: float) -> float:
    """How often the shared model is renewed in an epoch."""
    return rounds_per_epoch


def normalised_freshness(rounds_per_epoch: float, training_interactions: int) -> float:
    """Freshness beside that of one client a round."""
    return rounds_per_epoch / training_interactions
