"""The methods that a device can take part in, by the word with which federations name them (rules.METHODS)."""

from __future__ import annotations

from federank.service.client.methods.method import Method
from federank.service.client.methods.pairs import PAIRS
from federank.service.client.methods.ratings import PMF, SVDPP
from federank.service.client.methods.ratings_in_sums import SUMMED_PMF, SUMMED_SVDPP
from federank.service.client.methods.squares import SQUARES

METHOD_OF: dict[str, Method] = {"frugal": SQUARES, "fpl": PAIRS, "pmf": PMF, "svdpp": SVDPP}
SUMMED_OF: dict[str, Method] = {"frugal": SQUARES, "pmf": SUMMED_PMF, "svdpp": SUMMED_SVDPP}
"""Those whose messages may be such that no single server reads one, as they are played there."""
