"""Sync metrics by provider."""

from __future__ import annotations

from datetime import datetime
from typing import Self

from tocsin.incidents.coverage import ReadCounts
from tocsin.metrics import Metrics

READ_OUTCOMES = (
    "read",
    "later",
    "broken",
    "refused",
    "credentials-refused",
    "superseded",
    "failed",
)


class SyncMeters:
    """Sync metrics of this node."""

    def __init__(self, metrics: Metrics) -> None:
        self.stored = metrics.counter(
            "tocsin_incidents_stored_total",
            "Incidents that this node stored, by change (new or changed)",
            "provider",
            "change",
        )
        self.records = metrics.counter(
            "tocsin_sync_records_total", "Records of any kind that this node read", "provider"
        )
        self.rejected = metrics.counter(
            "tocsin_sync_rejected_total", "Records that this node quarantined", "provider"
        )
        self.lost = metrics.counter(
            "tocsin_sync_lost_total",
            "Losses of intervals or of accepted pushes that this node recorded",
            "provider",
        )
        self.reads = metrics.counter(
            "tocsin_sync_reads_total",
            "How often this node read a stream of the provider, by outcome",
            "provider",
            "outcome",
        )

        self.refused_pushes = metrics.counter(
            "tocsin_pushes_refused_total",
            "Pushes that this node refused, by reason",
            "provider",
            "reason",
        )
        self.accepted_pushes = metrics.counter(
            "tocsin_pushes_accepted_total",
            "Pushes that the intake on this node accepted, including those not stored yet",
            "provider",
        )
        self.fallback_pushes = metrics.counter(
            "tocsin_pushes_fallback_total",
            "Pushes that this node stored itself because the intake did not accept them",
            "provider",
        )
        self.succeeded = metrics.gauge(
            "tocsin_provider_succeeded_timestamp_seconds",
            "When this node last finished reading all of a provider's streams",
            "provider",
        )

    def of(self, provider: str) -> SyncMeter:
        """Return the meter of one provider."""
        return SyncMeter(self, provider)


class SyncMeter:
    """Counts the reads and incidents of one provider."""

    def __init__(self, meters: SyncMeters | None, provider: str) -> None:
        self._meters = meters
        self._provider = provider
        for (
            outcome
        ) in READ_OUTCOMES:  # start at 0, or the first event would not show as an increase
            self.count_read(outcome, 0)
        self.count_stored(ReadCounts())
        self.count_lost(0)

    @classmethod
    def none(cls) -> Self:
        """Return a meter that discards its counts."""
        return cls(None, "")

    def count_read(self, outcome: str, times: int = 1) -> None:
        """Count reads of a stream with this outcome."""
        if self._meters is not None:
            self._meters.reads.labels(self._provider, outcome).inc(times)

    def count_lost(self, times: int) -> None:
        """Count intervals that could not be read, and losses of accepted pushes."""
        if self._meters is not None:
            self._meters.lost.labels(self._provider).inc(times)

    def count_refused_push(self, reason: str, times: int = 1) -> None:
        """Count pushes refused for this reason."""
        if self._meters is not None:
            self._meters.refused_pushes.labels(self._provider, reason).inc(times)

    def count_accepted_push(self, times: int = 1) -> None:
        """Count pushes that the intake has accepted."""
        if self._meters is not None:
            self._meters.accepted_pushes.labels(self._provider).inc(times)

    def count_fallback_push(self, times: int = 1) -> None:
        """Count pushes that the intake should have accepted, but did not."""
        if self._meters is not None:
            self._meters.fallback_pushes.labels(self._provider).inc(times)

    def note_success(self, at: datetime) -> None:
        """Record a complete read of all streams."""
        if self._meters is not None:
            self._meters.succeeded.labels(self._provider).set(at.timestamp())

    def count_stored(self, counts: ReadCounts) -> None:
        """Count the records of a page."""
        if self._meters is None:
            return
        self._meters.stored.labels(self._provider, "new").inc(counts.new)
        self._meters.stored.labels(self._provider, "changed").inc(counts.changed)
        self._meters.records.labels(self._provider).inc(counts.records)
        self._meters.rejected.labels(self._provider).inc(counts.rejected)
