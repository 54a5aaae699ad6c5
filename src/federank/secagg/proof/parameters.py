"""How large a norm check is: everything follows from the number of projections.

wires   for each projection 16 bits of its value and one wrap bit; then the bits of what is left below T
gates   one product for each wire (it is a bit) and one for each projection (its square)
calls   the gates are dealt to `points` - 1 calls of one gadget, an inner product of `columns` pairs
proof   a random value for each of the gadget's inputs, and the coefficients of the gadget's polynomial
"""

from __future__ import annotations

from dataclasses import dataclass

from federank.errors import SettingError
from federank.secagg.ring import C_INT

RANGE_BITS = 16
"""A projection is in [-2^15, 2^15): eight times the bound of a message, on both sides."""
MOST_LENGTH = 2**25
"""How many numbers a message may have: the argument about messages that wrap holds up to here."""
ELEMENT_BYTES = 8
USUAL_PROJECTIONS = 128
"""What a federation asks for unless its operator says otherwise: a malicious client can try at home, and 128 hold
better.
"""
PASSING_NORMS = {64: {20: 3.0, 40: 4.6, 60: 14.4}, 128: {20: 2.2, 40: 2.7, 60: 3.1}}
"""By the number of projections, and by bits: a message of this norm, in units of the bound C, passes with a chance of
at most 2^-bits a try. Proved in docs/norm-proof.md; so no malicious client exceeds this norm, but for that chance."""
_LIMITS = {64: 95, 128: 144}


@dataclass(frozen=True)
class Parameters:
    """One size of the check."""

    projections: int

    def __post_init__(self) -> None:
        if self.projections not in _LIMITS:
            raise SettingError(
                f"A norm check has {' or '.join(map(str, _LIMITS))} projections; found {self.projections}."
            )

    @property
    def limit(self) -> int:
        """T: the most that the squares of the projections may add up to."""
        return _LIMITS[self.projections] * C_INT**2

    @property
    def slack_bits(self) -> int:
        """Bits of what is left below T."""
        return self.limit.bit_length()

    @property
    def wires(self) -> int:
        """How many bits a client proves things about."""
        return (RANGE_BITS + 1) * self.projections + self.slack_bits

    @property
    def points(self) -> int:
        """Roots of unity at which wire polynomials are evaluated: one for the random values, one for each call."""
        return self.projections // 2

    @property
    def columns(self) -> int:
        """Pairs of inputs of the gadget."""
        return -(-(self.wires + self.projections) // (self.points - 1))

    @property
    def coefficients(self) -> int:
        """Coefficients of the gadget's polynomial."""
        return 2 * self.points - 1

    @property
    def elements(self) -> int:
        """Elements of the field in one server's share of wires and proof."""
        return self.wires + 2 * self.columns + self.coefficients

    @property
    def proof_bytes(self) -> int:
        """What the check adds to the end of an upload."""
        return ELEMENT_BYTES * self.elements


LIGHT, FULL = Parameters(64), Parameters(128)


def passing_norm(projections: int = USUAL_PROJECTIONS, bits: int = 20) -> float:
    """The norm, in units of the bound of a message, that passes with a chance of at most 2^-bits a try."""
    known = PASSING_NORMS[Parameters(projections).projections]
    if bits not in known:
        raise SettingError(f"The passing norm is known for {', '.join(map(str, known))} bits; found {bits}.")
    return known[bits]
