"""What the server counts, for Prometheus."""

from __future__ import annotations

import os
from functools import cache

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

KIND = "text/plain; version=0.0.4; charset=utf-8"
DIRECTORY = "PROMETHEUS_MULTIPROC_DIR"
"""The variable with the directory in which several workers keep their numbers."""

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60)


class Metrics:
    """The numbers of this worker."""

    def __init__(self) -> None:
        own = CollectorRegistry()
        self._own = own
        requests = Counter(
            "cdxmill_requests", "Requests by endpoint and status", ("endpoint", "status"), registry=own
        )
        seconds = Histogram(
            "cdxmill_request_seconds",
            "Time to the end of the answer",
            ("endpoint",),
            registry=own,
            buckets=_BUCKETS,
        )
        # to find the number of a label takes as long as to count
        self._requests, self._seconds = cache(requests.labels), cache(seconds.labels)
        self._sent = Counter("cdxmill_sent_bytes", "Bytes of answers, before compression", registry=own)
        self.broken = Counter("cdxmill_broken_answers", "Answers that ended with an error", registry=own)
        self.running = Gauge(
            "cdxmill_running_requests", "Requests being answered", registry=own, multiprocess_mode="livesum"
        )

    def count(self, endpoint: str, status: int, seconds: float, sent: int) -> None:
        """Count a request that was answered."""
        self._requests(endpoint, status).inc()
        self._seconds(endpoint).observe(seconds)
        self._sent.inc(sent)

    def text(self) -> bytes:
        """The numbers of all workers."""
        if not os.environ.get(DIRECTORY):
            return generate_latest(self._own)
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry)
