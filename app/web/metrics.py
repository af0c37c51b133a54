"""Figures for Prometheus: requests by route, never by address, so that their number stays small."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Metrics:
    """One registry a site, so that several in one process do not count together."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "curate_http_requests",
            "Requests answered.",
            ["method", "route", "status"],
            registry=self.registry,
        )
        self.seconds = Histogram(
            "curate_http_request_seconds",
            "Time until a request was answered.",
            ["route"],
            buckets=BUCKETS,
            registry=self.registry,
        )
        self.in_flight = Gauge(
            "curate_http_requests_in_flight", "Requests being answered.", registry=self.registry
        )
        self.runs = Gauge("curate_runs", "Runs by status.", ["status"], registry=self.registry)
        self.upkeep = Gauge(
            "curate_upkeep_age_seconds",
            "Seconds since a recurring task was done last.",
            ["task"],
            registry=self.registry,
        )
        self.ready = Gauge(
            "curate_ready", "Whether a part answers (1) or not (0).", ["part"], registry=self.registry
        )

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        self.requests.labels(method, route, str(status)).inc()
        self.seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        return generate_latest(self.registry)
