"""What an epoch of federated pair-wise learning costs on the wire (Anelli et al., FPL, 2020, section 3.2).

A server calls |U-| devices in each of rpe rounds per epoch, so there are rho = |U-| rpe conversations. In each, the
whole catalogue of |I| item vectors goes down, and for each of T triples the negative's and, with probability pi,
the positive's vector comes back:

    CCE = rho (|I| + T (1 + pi))         item vectors sent per epoch

Freshness is how often the shared model is renewed in an epoch, rpe; divided by the number of training
interactions X+ it can be compared between data sets. In CCE nothing is rounded, as in the paper: rho is X+, and T is
X+ / |U| in the "+" variants; rpe by itself is the whole number of rounds that are played. The
formula counts a row sent twice in one message as two, and every download as the whole model;
`engines/pairs/communication.py` counts what a run really sends.
"""

from __future__ import annotations


def conversations(clients_per_round: float, rounds_per_epoch: float) -> float:
    """Rho: how often a device and the server talk in an epoch."""
    return clients_per_round * rounds_per_epoch


def communication_cost(rho: float, n_items: int, triples: float, pi: float) -> float:
    """CCE: how many item vectors are sent per epoch, down and up."""
    return rho * (n_items + triples * (1 + pi))


def freshness(rounds_per_epoch: float) -> float:
    """How often the shared model is renewed in an epoch."""
    return rounds_per_epoch


def normalised_freshness(rounds_per_epoch: float, interactions: int) -> float:
    """Freshness for each training interaction: 1 where every single one renews the model."""
    return rounds_per_epoch / interactions
