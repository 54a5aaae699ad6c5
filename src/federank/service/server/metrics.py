"""Health and metrics: what an operator's monitoring asks for, as Prometheus text. Counts and sizes only.

Each process counts its own requests and uploads; with several workers on one machine their counts are added up through
a folder that they share (the Prometheus client's own way). What is true of the federation itself (version, reports,
clients) comes from the store.
"""

from __future__ import annotations

import os
import time
from collections import deque
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from federank.service.server.model_versions import Extent
from federank.service.server.store.queries import RecentRounds
from federank.service.server.worker_cache import Latest

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
REMEMBERED = 1000
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class Metrics:
    """The counts of one process."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "federank_requests", "Requests answered.", ["route", "status"], registry=self._registry
        )
        self._seconds = Histogram(
            "federank_request_seconds", "Time to answer.", ["route"], buckets=_BUCKETS, registry=self._registry
        )
        self._uploads = Counter("federank_uploads", "Uploads by outcome.", ["outcome"], registry=self._registry)
        self._bytes = Counter("federank_bytes", "Bytes of messages.", ["direction"], registry=self._registry)
        self._clipped = Counter("federank_clipped_rows", "Rows of Updates that were too long.", registry=self._registry)
        self._times: dict[str, deque[float]] = {}

    def request(self, route: str, status: int, seconds: float) -> None:
        """A request was answered."""
        self._requests.labels(route, str(status)).inc()
        if not route.endswith("/work"):  # whose time is the client's choice to wait
            self._seconds.labels(route).observe(seconds)
            self._times.setdefault(route, deque(maxlen=REMEMBERED)).append(seconds)

    def upload(self, outcome: str, size: int = 0, clipped: int = 0) -> None:
        """An upload was accepted, or refused for a reason."""
        self._uploads.labels(outcome).inc()
        self._bytes.labels("up").inc(size)
        if clipped:
            self._clipped.inc(clipped)

    def download(self, size: int) -> None:
        """Rows of the model were sent."""
        self._bytes.labels("down").inc(size)

    def latency(self) -> dict[str, dict[str, float]]:
        """Of this process's latest requests, by route: how many, and the time in ms that half and 99 % stayed below."""
        latency = {}
        for route, times in self._times.items():
            half, nearly_all = np.percentile(np.fromiter(times, float), (50, 99)) * 1000
            latency[route] = {"requests": len(times), "p50": round(float(half), 2), "p99": round(float(nearly_all), 2)}
        return latency

    def text(self, latest: Latest, waiting: int, health: Health, busiest: int = 0) -> bytes:
        """Everything, as Prometheus reads it; `busiest` counts the latest reports of one range of addresses."""
        registry = CollectorRegistry()
        _federation_gauges(registry, latest, waiting, health, busiest)
        if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
            return generate_latest(registry)
        return generate_latest(registry) + generate_latest(self._registry)


def _federation_gauges(registry: CollectorRegistry, latest: Latest, waiting: int, health: Health, busiest: int) -> None:
    now = latest.round
    values: dict[str, tuple[str, Any]] = {
        "version": ("Version of the published model.", latest.model.version if latest.model else 0),
        "round": ("Number of the newest round.", now.number if now else 0),
        "health": ("0: ok, 1: needs attention, 2: failing; the overview has the reasons.", LEVELS[health.state]),
        "round_open": ("Whether a round is open.", int(bool(now and now.state == "open"))),
        "reports": ("Reports in the newest round.", now.reports if now else 0),
        "clients": ("Clients enrolled.", latest.clients),
        "waiting_clients": ("Clients that wait for work at this worker.", waiting),
        "rounds_aggregated": ("Rounds aggregated.", latest.aggregated),
        "rounds_abandoned": ("Rounds abandoned.", latest.abandoned),
        "aggregates_rejected": ("Aggregates that were not applied.", latest.rejected.get("count", 0)),
        "drift": ("Change of the item factors in the last round, apart from rotation and scale.", latest.signals.drift),
        "largest_move": (
            "The same of the row that moved farthest, in lengths of a mean row.",
            latest.signals.largest_move,
        ),
        "held_rows": ("Rows that it would have moved too far.", latest.bounded.get("held_rows", 0)),
        "capped_rows": ("Rows that would have got too long or too high.", latest.bounded.get("capped_rows", 0)),
        "capped_items": ("Items that the exposure cap shortened.", latest.bounded.get("capped_items", 0)),
        "hidden_items": ("Items that clients do not show yet.", latest.bounded.get("hidden_items", 0)),
        "busiest_range_reports": (
            "Of the latest 1,000 reports at this worker, those of the busiest range of addresses (/24, /48).",
            busiest,
        ),
        "store_age_seconds": ("Since the store last answered.", time.monotonic() - latest.fresh),
    }
    for name, (about, value) in values.items():
        gauge = _AloneGauge(f"federank_{name}", about, registry=registry)
        gauge.set(value)
    progress = _AloneGauge("federank_progress", "How far learning has come.", ["figure"], registry=registry)
    for name, figure in latest.progress.items():
        progress.labels(name).set(figure)
    reasons = _AloneGauge("federank_health_reason", "1: a reason for the health.", ["code"], registry=registry)
    for reason in health.reasons:
        reasons.labels(reason.code).set(1)


class _AloneGauge(Gauge):
    """A gauge of this moment: not added up between processes, whatever the environment says."""

    def _metric_init(self) -> None:
        from prometheus_client.values import MutexValue

        self._value = MutexValue(self._type, self._name, self._name, self._labelnames, self._labelvalues, "")  # type: ignore[no-untyped-call]


# Health of a federation: one state with its reasons, worked out here and shown wherever a state is shown.
#
#     failing     the federation does not learn, or its model cannot be used
#     attention   it learns, and its operator should look at something
#     ok          neither
#
# The public status, the operator's overview and page, and the gauge `federank_health` all show this state.


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
    clients: int = 0
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
        reasons.append(Reason("no-recent-round", ATTENTION, int(inputs.seconds_without_round / 60), inputs.clients))
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
