"""Figures of the server for Prometheus. Labels are routes, models and states, never text or addresses."""

from collections.abc import Callable, Iterator, Sequence

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector
from starlette.types import Scope

from nmt.serve.pool import Served
from nmt.serve.rows import Worker

#: Upper bounds of the buckets of the latency, in seconds.
BUCKETS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
GAUGES: dict[str, Callable[[Worker], float]] = {
    "nmt_queue_pieces": lambda worker: worker.queue.pieces,
    "nmt_queue_rows": lambda worker: len(worker.queue),
    "nmt_pieces_per_second": lambda worker: worker.queue.speed,
}
#: The counts of workers, by the names of their figures.
COUNTERS = {
    "nmt_rows": "rows",
    "nmt_batches": "batches",
    "nmt_rows_retried": "retried",
    "nmt_rows_stopped": "stopped",
    "nmt_rows_failed": "failed",
    "nmt_model_seconds": "seconds",
}


class ServerFigures(Collector):
    """Counts of answers by route and status, how long they took, and the workers of the models."""

    def __init__(self, models: Sequence[Served]) -> None:
        self._models, self._registry = models, CollectorRegistry()
        self._answers = Counter("nmt_requests", "Answers.", ("route", "status"), registry=self._registry)
        self._seconds = Histogram(
            "nmt_request_seconds", "Seconds of answers.", ("route",), buckets=BUCKETS, registry=self._registry
        )
        self._registry.register(self)

    def observe(self, scope: Scope, status: int, seconds: float) -> None:
        """Note an answer; status 0 stands for a client that left before it."""
        path = str(getattr(scope.get("route"), "path", "other"))
        self._answers.labels(path, status or "left").inc()
        self._seconds.labels(path).observe(seconds)

    def collect(self) -> Iterator[GaugeMetricFamily | CounterMetricFamily]:
        """The figures of the models, for the library."""
        for name, value in GAUGES.items():
            gauge = GaugeMetricFamily(name, name, labels=["model"])
            for model in self._models:
                gauge.add_metric([model.id], value(model.worker))
            yield gauge
        for name, key in COUNTERS.items():
            counter = CounterMetricFamily(name, name, labels=["model"])
            for model in self._models:
                counter.add_metric([model.id], model.worker.counts[key])
            yield counter

    def text(self) -> bytes:
        """All figures in Prometheus' text format."""
        return generate_latest(self._registry)
