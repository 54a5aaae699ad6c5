"""Metrics: what an operator's monitoring asks for, as Prometheus text. Counts and sizes only, no one in particular.

Each process counts its own requests and uploads; with several workers on one machine their counts are added up through
a folder that they share (the Prometheus client's own way). What is true of the federation itself (version, reports,
devices) comes from the store.
"""

from __future__ import annotations

import os
import time
from collections import deque
from typing import Any

import numpy as np
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from federank.service.server.health import LEVELS, Health
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
        if not route.endswith("/work"):  # whose time is the device's choice to wait
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
        "devices": ("Devices enrolled.", latest.devices),
        "waiting_devices": ("Devices that wait for work at this worker.", waiting),
        "rounds_folded": ("Rounds folded.", latest.folded),
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
