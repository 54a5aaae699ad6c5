"""What an operator's monitoring asks a helper for, as Prometheus text: counts and times, of nobody in particular."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """The counts of one process."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "federank_helper_requests", "Requests answered.", ["route", "status"], registry=self._registry
        )
        self._seconds = Histogram(
            "federank_helper_request_seconds", "Time to answer.", ["route"], registry=self._registry
        )
        self._reports = Counter("federank_helper_reports", "Reports by outcome.", ["outcome"], registry=self._registry)
        self._refusals = Counter(
            "federank_helper_refusals", "Requests refused, by reason.", ["reason"], registry=self._registry
        )
        self._rounds = Gauge("federank_helper_rounds", "Rounds by state.", ["state"], registry=self._registry)

    def request(self, route: str, status: int, seconds: float) -> None:
        """A request was answered."""
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def reports(self, stand: int, fall: int) -> None:
        """So many reports stand, and so many do not."""
        self._reports.labels("stands").inc(stand)
        self._reports.labels("does not stand").inc(fall)

    def refused(self, reason: str) -> None:
        """A request was refused."""
        self._refusals.labels(reason).inc()

    def text(self, rounds: dict[str, int]) -> bytes:
        """Everything, as Prometheus reads it."""
        for state, count in rounds.items():
            self._rounds.labels(state).set(count)
        return generate_latest(self._registry)
