"""The methods that this server knows, by the name that devices are told."""

from __future__ import annotations

from federank.errors import StoreError
from federank.service.server.families.family import Family
from federank.service.server.families.pairs import PAIRS
from federank.service.server.families.ratings import PMF, SVDPP
from federank.service.server.families.squares import SQUARES

FAMILIES: dict[str, Family] = {family.method: family for family in (SQUARES, PAIRS, PMF, SVDPP)}


def family_of(method: str) -> Family:
    """The family of a store's federation."""
    if method not in FAMILIES:
        raise StoreError(
            f"The store holds a federation whose method is {method}, and this version of FedeRank serves "
            f"{', '.join(FAMILIES)}. Use a newer version, or name another --store."
        )
    return FAMILIES[method]
