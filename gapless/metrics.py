"""Metrics of `gapless watch` for Prometheus."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from gapless.traces.problems import shown

if TYPE_CHECKING:
    from gapless.traces.watch import WatchStatus


class WatchMetrics(Collector):
    """One store's."""

    def __init__(self, status: WatchStatus, store: str) -> None:
        self.status, self.store = status, shown(store)

    def collect(self) -> Iterable[Metric]:
        """Collect them as they are now."""
        now = self.status
        now.measure()
        for name, says, value in (
            ("up", "1 if the store is there and can be read.", now.up),
            ("broker_running", "1 if a broker holds the lock of the store.", now.running),
            ("conforms", "1 if nothing departs so far; left out until something was judged.", now.conforms),
            ("records", "Records of the log that are judged, those of earlier lives included.", now.records),
            ("position_bytes", "Log position up to which records are judged.", now.position),
            ("lag_bytes", "Bytes of the log that are written and not judged yet.", now.lag_bytes),
            ("lag_seconds", "Seconds since all that was written was judged, or since the start.", now.lag_seconds),
            ("entries_position_bytes", "Log position up to which entries of queues are judged.", now.entries_position),
            ("entries_lag_bytes", "Bytes of the log that are judged but for their entries.", now.entries_lag_bytes),
            ("queues", "Queues with messages in what was judged.", now.queues),
            ("overdue_seconds", "How late the worst task of the last report is that is overdue.", now.overdue),
            ("undecided", "Reasons of the last report why not everything is decided.", now.undecided),
        ):
            if value is not None:  # a number that is not known yet is left out
                yield self._one(GaugeMetricFamily(f"gapless_{name}", says, labels=["store"]), float(value))
        for name, says, count in (
            ("bytes_judged", "Bytes of the log that were judged since the start.", now.bytes),
            (
                "restarts",
                "Times that the log was cut off or replaced, so that some of it was judged again.",
                now.restarts,
            ),
            ("reports", "Reports that were made.", now.reports),
            ("rounds", "Looks at the store.", now.rounds),
            ("looked_again", "Times that something was read again before it was reported.", now.looked_again),
        ):
            yield self._one(CounterMetricFamily(f"gapless_{name}", says, labels=["store"]), float(count))
        left = GaugeMetricFamily(
            "gapless_judged_at_the_end", "What is not judged as it is written.", labels=["store", "what"]
        )
        for what in now.left:
            left.add_metric([self.store, what], 1)
        yield left
        findings = GaugeMetricFamily("gapless_findings", "Departures that were reported.", labels=["store", "rule"])
        for rule, count in dict(now.findings).items():
            findings.add_metric([self.store, rule], count)
        yield findings
        anomalies = GaugeMetricFamily(
            "gapless_anomalies", "What the profile allows, as the last report counts it.", labels=["store", "kind"]
        )
        for kind, count in dict(now.anomalies).items():
            anomalies.add_metric([self.store, kind], count)
        yield anomalies

    def _one(self, family: GaugeMetricFamily | CounterMetricFamily, value: float) -> Metric:
        family.add_metric([self.store], value)
        return family


def serve_metrics(status: WatchStatus, store: str, host: str, port: int) -> int:
    """Serve them until the process ends, and say on which port. Raises OSError, UnicodeError for what is no name."""
    registry = CollectorRegistry()
    registry.register(WatchMetrics(status, store))
    ProcessCollector(registry=registry)
    server, _thread = start_http_server(port, host, registry)
    return int(server.server_port)
