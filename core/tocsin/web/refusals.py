"""Reasons of refused requests, and their metric."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tocsin.metrics import Metrics

REASONS: Mapping[int, str] = MappingProxyType(
    {
        401: "credential refused",
        403: "not permitted",
        421: "unknown host",
        429: "too many requests",
    }
)
"""The reason in the audit log and the metric, by the status of the response."""


class RefusalMeter:
    """Counts refused requests by reason."""

    def __init__(self, metrics: Metrics) -> None:
        self._refused = metrics.counter(
            "tocsin_requests_refused_total", "Requests that this node refused, by reason", "reason"
        )
        for reason in REASONS.values():  # start at 0, or the first would not show as an increase
            self._refused.labels(_label(reason))

    def count(self, reason: str) -> None:
        """Count one refusal."""
        self._refused.labels(_label(reason)).inc()


def _label(reason: str) -> str:
    return reason.replace(" ", "-")
