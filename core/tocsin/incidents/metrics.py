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
    """What this node counts of what it reads."""

    def __init__(self, metrics: Metrics) -> None:
        self.stored = metrics.counter(
            "tocsin_incidents_stored_total",
            "Incidents that this node stored, by whether they were new",
            "provider",
            "change",
        )
        self.records = metrics.counter(
            "tocsin_sync_records_total", "Records that were read, of whatever kind", "provider"
        )
        self.rejected = metrics.counter(
            "tocsin_sync_rejected_total", "Records that were kept aside", "provider"
        )
        self.reads = metrics.counter(
            "tocsin_sync_reads_total",
            "Reads of a stream, by how they ended",
            "provider",
            "outcome",
        )

        self.succeeded = metrics.gauge(
            "tocsin_provider_succeeded_timestamp_seconds",
            "When this node last read every stream of a provider to its end",
            "provider",
        )

    def of(self, provider: str) -> SyncMeter:
        """Return the meter of one provider."""
        return SyncMeter(self, provider)


class SyncMeter:
    """Counts what one provider brings."""

    def __init__(self, meters: SyncMeters | None, provider: str) -> None:
        self._meters = meters
        self._provider = provider
        for (
            outcome
        ) in READ_OUTCOMES:  # from 0 on, or the first of a kind would not show as an increase
            self.count_read(outcome, 0)
        self.count_stored(ReadCounts())

    @classmethod
    def none(cls) -> Self:
        """Return a meter that counts for nobody."""
        return cls(None, "")

    def count_read(self, outcome: str, times: int = 1) -> None:
        """Count reads of a stream that ended so."""
        if self._meters is not None:
            self._meters.reads.labels(self._provider, outcome).inc(times)

    def note_success(self, at: datetime) -> None:
        """Note that every stream was read to its end."""
        if self._meters is not None:
            self._meters.succeeded.labels(self._provider).set(at.timestamp())

    def count_stored(self, counts: ReadCounts) -> None:
        """Count what a page brought."""
        if self._meters is None:
            return
        self._meters.stored.labels(self._provider, "new").inc(counts.new)
        self._meters.stored.labels(self._provider, "changed").inc(counts.changed)
        self._meters.records.labels(self._provider).inc(counts.records)
        self._meters.rejected.labels(self._provider).inc(counts.rejected)
