"""Asking for the rows of a step, in parts where there are too many."""

from __future__ import annotations

from tocsin_connectors.siem.opensearch.analytics import Analytics, Rows
from tocsin_connectors.siem.opensearch.step import Step


async def ask(analytics: Analytics, step: Step, size: int) -> tuple[Step, Rows]:
    """Return the first part of a step that is not too large, and its rows."""
    rows = await analytics.alerts(step, size)
    while step.is_too_large(rows.total):
        step = step.halved()
        rows = await analytics.alerts(step, size)
    return step, rows


async def probe(analytics: Analytics, step: Step) -> Rows:
    """Return no rows, where others than those of a step can be listed."""
    answer = await analytics.alerts(step.probe(), 1)
    return Rows((), 0, answer.server_time)
