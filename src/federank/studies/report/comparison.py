"""How near the papers a report comes: two sentences behind its finding.

1. How many of the values that a paper has too are within ten percent of it.
2. Which rows the others are in, how many have a note that explains them, and how many do not.
"""

from __future__ import annotations

from collections.abc import Sequence

from federank.studies.report.explanations import UNEXPLAINED, Explain
from federank.studies.report.tables import NOTABLE, Difference


def comparison(differences: Sequence[Difference], explain: Explain) -> str:
    """The two sentences; nothing where no paper has these figures."""
    if not differences:
        return ""
    far = [one for one in differences if abs(one.percent) > NOTABLE]
    kinds = {one.formula for one in differences}
    has = " or ".join(words for formula, words in ((False, "has too"), (True, "has a formula for")) if formula in kinds)
    near = f"Of {len(differences):,} values that the paper {has}, {len(differences) - len(far):,} are within "
    near += f"{NOTABLE:.0f} % of it."
    if not far:
        return near
    unexplained = sum(explain(one).startswith(UNEXPLAINED) for one in far)
    groups = list(dict.fromkeys(one.row.group for one in far))
    return (
        f"{near} The others are of {_listed(groups)}: {len(far) - unexplained:,} have a note that explains them, "
        f"{unexplained:,} are unexplained."
    )


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{'; '.join(words[:-1])} and {words[-1]}"
