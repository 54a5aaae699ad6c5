"""Audits in a study: a model whose test runs are watched by a curious server.

    [[model]]
    method = "fpl"
    settings = { sharing = "sticky", clients_per_round = 50 }
    audit = { sees = ["sums"], people = 200 }

`sees` is what the server has (audit/findings.py), one or several; `people` is how many are attacked. A run that is not
audited is the same run as ever: its id does not know that there are audits (plan.py). What the servers find is told
in run/audits.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from federank.checks import whole
from federank.errors import SettingError
from federank.recommenders.registry import AUDITED, audited_names
from federank.studies.plan.vocabulary import as_table, refuse_unknown

KEYS = ("sees", "people")
_RATERS = ("pmf", "svdpp")
_SUMMERS = ("frugal", "fcf")


@dataclass(frozen=True, kw_only=True)
class Audit:
    """Which servers watch a model's test runs, and how many people they attack."""

    sees: tuple[str, ...]
    people: int | None


def read_audit(content: Any, group: str, method: str) -> Audit | None:
    """What a [[model]] says of its audit, checked; None where it says nothing."""
    if content is None:
        return None
    where = f"audit of {group}"
    table = as_table(content, where)
    if method not in AUDITED and method not in audited_names():
        able = ", ".join(audited_names())
        raise SettingError(f"{group} ({method}) cannot be audited, only {able}; leave its audit out.")
    if "cohort" in table:
        raise SettingError(
            f"{where} has a cohort; a sum is taken over a round's devices, so say it in settings, such as "
            f"settings = {{ clients_per_round = {table['cohort']} }}."
        )
    refuse_unknown(table, KEYS, where)
    sees = table.get("sees", "updates")
    listed = [sees] if isinstance(sees, str) else sees
    if not isinstance(listed, list) or not listed:
        raise SettingError(f'sees in the {where} is {sees!r}; one or more servers are needed, such as ["updates"].')
    refuse_unknown(dict.fromkeys(map(str, listed)), _servers(method), f"sees in the {where}")
    if table.get("people") is not None:
        whole(f"people in the {where}", table["people"], 1)
    return Audit(sees=tuple(dict.fromkeys(listed)), people=table.get("people"))


def _servers(method: str) -> tuple[str, ...]:
    """What a server may see of this method's runs."""
    if method in _RATERS:
        from federank.audit.ratings.attacks import RATING_ATTACKS

        return tuple(RATING_ATTACKS)
    if method in _SUMMERS:
        from federank.audit.squares.audit import SERVERS

        return tuple(SERVERS)
    from federank.audit.findings import THREAT_MODELS

    return tuple(THREAT_MODELS)


def refuse_impossible_audit(audit: Audit | None, group: str, settings: Any) -> None:
    """Raise where a run with these settings has nothing such a server could see, before anything is run."""
    if audit is None:
        return
    if not getattr(settings, "federated", True):
        raise SettingError(f"{group} learns without a federation: nothing is sent, so leave its audit out.")
    one = str(getattr(settings, "clients_per_round", None)) == "1"
    if "sums" in audit.sees and one:
        raise SettingError(
            f"The audit of {group} sees sums, but a round has one device, whose sum is its Update; set "
            "clients_per_round to more, or let the server see updates."
        )
    if "updates" in audit.sees and not one and float(getattr(settings, "noise", 0.0)) > 0:
        raise SettingError(
            f"The audit of {group} links noisy Updates, which it can where a round has one device; let the server see "
            "sums or anonymous, or set clients_per_round to 1."
        )
