"""Metrics of the server for Prometheus. Labels are routes, models and states, never text or addresses."""

import functools
from collections.abc import Callable, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.types import Scope

from nmt.serve.pool import Served
from nmt.serve.rows import Worker

#: Upper bounds of the latency buckets, in seconds.
BUCKETS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
#: The metrics of each model: its queue, and the counts of its worker.
FIGURES: dict[str, Callable[[Worker], float]] = {
    "nmt_queue_pieces": lambda worker: worker.queue.pieces,
    "nmt_queue_rows": lambda worker: len(worker.queue),
    "nmt_pieces_per_second": lambda worker: worker.queue.speed,
    "nmt_rows_total": lambda worker: worker.counts["rows"],
    "nmt_batches_total": lambda worker: worker.counts["batches"],
    "nmt_rows_retried_total": lambda worker: worker.counts["retried"],
    "nmt_rows_stopped_total": lambda worker: worker.counts["stopped"],
    "nmt_rows_failed_total": lambda worker: worker.counts["failed"],
    "nmt_model_seconds_total": lambda worker: worker.counts["seconds"],
}


class ServerFigures:
    """Counts of answers by route and status, their latency, and the metrics of the models' workers."""

    def __init__(self, models: Sequence[Served]) -> None:
        self._registry = registry = CollectorRegistry()
        self._answers = Counter("nmt_requests", "Answers.", ("route", "status"), registry=registry)
        self._seconds = Histogram(
            "nmt_request_seconds", "Seconds of answers.", ("route",), buckets=BUCKETS, registry=registry
        )
        for name, value in FIGURES.items():
            figure = Gauge(name, name, ("model",), registry=registry)
            for model in models:
                figure.labels(model.id).set_function(functools.partial(value, model.worker))

    def observe(self, scope: Scope, status: int, seconds: float) -> None:
        """Count an answer; status 0 means that the client disconnected before its answer."""
        path = str(getattr(scope.get("route"), "path", "other"))
        self._answers.labels(path, status or "left").inc()
        self._seconds.labels(path).observe(seconds)

    def text(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self._registry)
