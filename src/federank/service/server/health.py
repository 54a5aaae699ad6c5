"""Health of a federation: one state with its reasons, worked out here and shown wherever a state is shown.

    failing     the federation does not learn, or its model cannot be used
    attention   it learns, and its operator should look at something
    ok          neither

The public status, the operator's overview and page, and the gauge `federank_health` all show this state.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from federank.service.server.model_versions import Extent
from federank.service.server.store.queries import RecentRounds

OK, ATTENTION, FAILING = "ok", "attention", "failing"
LEVELS = {OK: 0, ATTENTION: 1, FAILING: 2}
"""The states as the gauge has them; the worst reason decides."""
IN_A_ROW = 3
"""Discarded rounds in a row, up to the latest, after which a federation does not learn."""
DISCARDED_SHARE = 0.3
"""Share of the recent rounds that may be discarded before the operator should look."""
SCALES = 2.0
"""A row of a rating model that is longer than this many times the highest rating has diverged: trained models have
rows about as long as the square root of the highest rating."""
LARGEST_ROW = 1e6
"""The same where nothing is rated and scores have no scale."""
REFUSED_SHARE, FEWEST_REFUSED = 0.2, 5
"""Share of the recent uploads that may be refused, and how many at least are a reason to look."""
DEADLINES, PERIODS, SOONEST = 10, 2, 600.0
"""No aggregated round for this many deadlines, upload periods and seconds is a reason to look."""
LITTLE_DISK, NO_DISK = 1_000_000_000, 100_000_000
"""Free bytes on the store's disk below which the operator should look, and below which it is about to stop."""


class HealthInputs(NamedTuple):
    """What the health of a federation follows from."""

    recent: RecentRounds = RecentRounds()
    model: Extent = Extent()
    highest: float | None = None  # rating of the scale; None where nothing is rated
    helper_fault: str = ""  # a code of helper_line.REMEDIES; empty: the helper works
    store_away: bool = False
    seconds_without_round: float | None = None  # since the last aggregated one; None where none is due
    round_due: float = 0.0  # seconds in which one should have been aggregated
    devices: int = 0
    free_disk: int | None = None  # bytes, where the store is a file


@dataclass(frozen=True)
class Reason:
    """Why a federation is not well: a code, how bad it is, and how many of how many it concerns.

    They are rounds; for `uploads-refused` uploads, for `no-recent-round` minutes and clients, for disk megabytes.
    """

    code: str
    state: str
    count: int = 0
    of: int = 0


class Health(NamedTuple):
    """The state of a federation, and every reason for it, the worst first."""

    state: str = OK
    reasons: tuple[Reason, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As it is sent."""
        return {"state": self.state, "reasons": [asdict(reason) for reason in self.reasons]}


def health_of(inputs: HealthInputs) -> Health:
    """The state that follows from the inputs."""
    reasons = [*_of_the_model(inputs), *_of_the_rounds(inputs.recent), *_of_the_uploads(inputs.recent)]
    if inputs.seconds_without_round is not None and inputs.seconds_without_round > inputs.round_due:
        reasons.append(Reason("no-recent-round", ATTENTION, int(inputs.seconds_without_round / 60), inputs.devices))
    if inputs.free_disk is not None and inputs.free_disk < LITTLE_DISK:
        state = FAILING if inputs.free_disk < NO_DISK else ATTENTION
        reasons.append(Reason("disk-low", state, inputs.free_disk // 1_000_000))
    if inputs.helper_fault.startswith("helper-"):
        reasons.append(Reason("helper-away", FAILING))  # what clients need to know: no round goes on
    if inputs.helper_fault not in ("", "helper-away"):
        reasons.append(Reason(inputs.helper_fault, FAILING))
    if inputs.store_away:
        reasons.append(Reason("store-away", FAILING))
    reasons.sort(key=lambda reason: -LEVELS[reason.state])
    return Health(reasons[0].state if reasons else OK, tuple(reasons))


def _of_the_model(inputs: HealthInputs) -> list[Reason]:
    longest = LARGEST_ROW if inputs.highest is None else SCALES * inputs.highest
    if not inputs.model.is_finite:
        return [Reason("model-not-finite", FAILING)]
    return [Reason("model-out-of-scale", FAILING)] if inputs.model.longest_row > longest else []


def _of_the_rounds(recent: RecentRounds) -> list[Reason]:
    ended, discarded = len(recent.discarded), sum(recent.discarded)
    in_a_row = next((n for n, was_discarded in enumerate(recent.discarded) if not was_discarded), ended)
    reasons = []
    if in_a_row >= IN_A_ROW:
        reasons.append(Reason("no-round-aggregated", FAILING, in_a_row, ended))
    elif discarded and discarded >= DISCARDED_SHARE * ended:
        reasons.append(Reason("rounds-discarded", ATTENTION, discarded, ended))
    if recent.refused:
        reasons.append(Reason("aggregates-refused", ATTENTION, recent.refused, ended))
    return reasons


def _of_the_uploads(recent: RecentRounds) -> list[Reason]:
    refused, sent = recent.refused_uploads, recent.uploads + recent.refused_uploads
    is_much = refused >= FEWEST_REFUSED and refused > REFUSED_SHARE * sent
    return [Reason("uploads-refused", ATTENTION, refused, sent)] if is_much else []


def round_due(deadline: float, upload_period: float) -> float:
    """Seconds in which a round should be aggregated while clients are enrolled."""
    return max(DEADLINES * deadline, PERIODS * upload_period, SOONEST)
