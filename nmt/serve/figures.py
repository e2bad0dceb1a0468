"""Figures of the server in Prometheus' text format. Labels are routes, models and states, never text or addresses."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence

from starlette.types import Scope

from nmt.serve.pool import Served

#: Upper bounds of the buckets of the latency, in seconds.
BUCKETS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)


class Metrics:
    """Counts of answers by route and status, and how long they took."""

    def __init__(self) -> None:
        self.answers: Counter[tuple[str, int]] = Counter()
        self.buckets: dict[str, list[int]] = {}
        self.seconds: Counter[str] = Counter()

    def observe(self, scope: Scope, status: int, seconds: float) -> None:
        """Note an answer; status 0 stands for a client that left before it."""
        path = str(getattr(scope.get("route"), "path", "other"))
        self.answers[path, status] += 1
        counts = self.buckets.setdefault(path, [0] * (len(BUCKETS) + 1))
        counts[bisect_left(BUCKETS, seconds)] += 1
        self.seconds[path] += seconds  # type: ignore[assignment]

    def text(self, models: Sequence[Served]) -> str:
        """All figures."""
        lines = ["# TYPE nmt_requests_total counter"]
        lines += [
            f'nmt_requests_total{{route="{path}",status="{status or "left"}"}} {count}'
            for (path, status), count in sorted(self.answers.items())
        ]
        lines.append("# TYPE nmt_request_seconds histogram")
        for path, counts in sorted(self.buckets.items()):
            total = 0
            for bound, count in zip([*map(str, BUCKETS), "+Inf"], counts, strict=True):
                total += count
                lines.append(f'nmt_request_seconds_bucket{{route="{path}",le="{bound}"}} {total}')
            lines.append(f'nmt_request_seconds_count{{route="{path}"}} {total}')
            lines.append(f'nmt_request_seconds_sum{{route="{path}"}} {self.seconds[path]:.6f}')
        for name, kind, values in (
            ("nmt_queue_pieces", "gauge", [model.worker.queue.pieces for model in models]),
            ("nmt_queue_rows", "gauge", [len(model.worker.queue) for model in models]),
            ("nmt_pieces_per_second", "gauge", [round(model.worker.queue.speed, 1) for model in models]),
            ("nmt_rows_total", "counter", [model.worker.counts.rows for model in models]),
            ("nmt_batches_total", "counter", [model.worker.counts.batches for model in models]),
            ("nmt_rows_retried_total", "counter", [model.worker.counts.retries for model in models]),
            ("nmt_rows_stopped_total", "counter", [model.worker.counts.stopped for model in models]),
            ("nmt_rows_failed_total", "counter", [model.worker.counts.failures for model in models]),
            ("nmt_model_seconds_total", "counter", [round(model.worker.counts.seconds, 6) for model in models]),
        ):
            lines.append(f"# TYPE {name} {kind}")
            lines += [
                f'{name}{{model="{_escaped(model.id)}"}} {value}' for model, value in zip(models, values, strict=True)
            ]
        return "\n".join(lines) + "\n"


def _escaped(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
