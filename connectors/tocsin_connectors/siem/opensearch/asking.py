"""Asking for the rows of a step, in parts where there are too many."""

from __future__ import annotations

from typing import Any

from tocsin_connectors.siem.opensearch.alerts import AlertReference, parse_change_time
from tocsin_connectors.siem.opensearch.analytics import AlertRows, SecurityAnalyticsClient
from tocsin_connectors.siem.opensearch.step import DetectorCursor

_PAGE_SIZE = 100
DETECTOR = "tocsin_detector"
"""The member that tells of which detector a record is; `detector_id` is not always right."""


async def list_rows(
    analytics: SecurityAnalyticsClient, step: DetectorCursor, size: int
) -> tuple[DetectorCursor, AlertRows]:
    """Return the first part of a step that is not too large, and its rows."""
    rows = await analytics.alerts(step, size)
    while step.is_too_large(rows.total):
        step = step.halved()
        rows = await analytics.alerts(step, size)
    return step, rows


async def probe_rows(analytics: SecurityAnalyticsClient, step: DetectorCursor) -> AlertRows:
    """Return no rows, where others than those of a step can be listed."""
    answer = await analytics.alerts(step.probe(), 1)
    return AlertRows((), 0, answer.server_time)


async def find_alert(analytics: SecurityAnalyticsClient, external_id: str) -> dict[str, Any] | None:
    """Return the record of an alert, None where it or its detector is gone."""
    name = AlertReference.parse(external_id)
    detectors = await analytics.detectors()
    if name is None or name.detector not in detectors:
        return None
    told = {"id": name.detector, "name": detectors[name.detector].name}
    step: DetectorCursor | None = DetectorCursor.of_moment(name.detector, name.start)
    while step is not None:
        rows = await analytics.alerts(step, _PAGE_SIZE)
        for alert in rows.alerts:
            if alert.get("id") == name.alert and parse_change_time(alert) is not None:
                return {**alert, DETECTOR: told}
        step = step.following(len(rows.alerts), rows.total, _PAGE_SIZE)
    return None
