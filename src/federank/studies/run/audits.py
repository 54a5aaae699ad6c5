"""What the servers that watch a run find, as metrics of the run under each server's name:

sums:disclosed_share         mean share of a history that was sent as liked at least once
sums:popularity, sums:auc    how often an item of the history is ranked above another: by popularity alone, and
                             by the attack that does it best
sums:gain                    the best attack's order beyond popularity's, or beyond chance where that is higher
..._held_back                the same of those items that were never sent as liked
sums:attack                  which attack was the best, as a word; `attack_held_back` likewise
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from federank.studies.plan.audit import Audit

if TYPE_CHECKING:
    from federank.audit.findings import Findings


def audited(model: Any, audit: Audit) -> tuple[dict[str, float | None], dict[str, Any]]:
    """What each server finds in a trained model's run: metrics by its name, and the words and counts beside them."""
    from federank.audit.audit import audit_model

    metrics: dict[str, float | None] = {}
    beside: dict[str, Any] = {}
    for sees in audit.sees:
        [found], about = audit_model(model, sees=sees, people=audit.people)
        metrics |= {f"{sees}:{name}": value for name, value in headline(found).items()}
        beside |= {
            f"{sees}:attack": found.best["by_auc"],
            f"{sees}:attack_held_back": found.best["by_auc_held_back"],
            f"{sees}:cohort": about["cohort"],
            f"{sees}:people_attacked": about["people_attacked"],
            f"{sees}:seconds": round(about["seconds"]["audit"], 3),
            f"{sees}:marks": marks_of(found),
        }
    return metrics, beside


def headline(found: Findings) -> dict[str, float | None]:
    """The figures by which runs are compared: what was sent, and the best attack beside popularity."""
    popularity, best = found.attacks["popularity"], found.best
    content: dict[str, float | None] = {"disclosed_share": found.disclosed_share}
    for of in ("", "_held_back"):
        content |= {
            f"popularity{of}": popularity[f"auc{of}"],
            f"auc{of}": best[f"auc{of}"],
            f"gain{of}": best[f"gain{of}"],
            f"gain{of}_low": best[f"gain{of}_low"],
            f"gain{of}_high": best[f"gain{of}_high"],
        }
    return content


def marks_of(found: Findings) -> dict[str, float | None]:
    """All that a line of results keeps of an audit: the shares, and every attack's marks as `attack/mark`."""
    marks: Mapping[str, float | None] = {
        f"{attack}/{mark}": value for attack, all_marks in found.attacks.items() for mark, value in all_marks.items()
    }
    return {"disclosed_share": found.disclosed_share, "base_rate": found.base_rate, **marks}
