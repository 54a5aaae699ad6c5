"""The accountant: what differential-privacy figure noise deserves, per person, over all their rounds.

In a round a person adds an Update of length at most C, and noise of deviation z C hides it. Somebody with any other
history in their place would have added another Update of length at most C: what the noise has to hide is a difference
of at most 2 C, so a round is a Gaussian mechanism of multiplier z / 2. Rounds are composed by their Renyi divergences
(dp-accounting), one after the other, each with what was published before. That the server picks devices at random is
not counted in anybody's favour, since the server knows whom it picked.

    epsilon at delta:  whatever is seen is at most e^epsilon times as likely, but for a probability of delta
"""

from __future__ import annotations

from functools import cache

from federank.errors import SettingError


@cache
def epsilon_of(noise: float, rounds: int, delta: float) -> float:
    """Epsilon at delta after so many rounds with noise of so many times the clip."""
    if rounds == 0:
        return 0.0
    try:
        from dp_accounting import dp_event, rdp
    except ImportError:
        raise SettingError(
            "The figure of the noise is worked out by dp-accounting, which is not installed: "
            'pip install "federank[privacy]".'
        ) from None
    accountant = rdp.RdpAccountant()
    accountant.compose(dp_event.GaussianDpEvent(noise / 2), rounds)
    return float(accountant.get_epsilon(delta))
