"""Which stretch of time is looked at."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from tocsin import IncidentRecord, Window
from tocsin_plugins.investigator.settings import Settings
from tocsin_plugins.investigator.understanding import InvestigationScope

_EARLIEST = datetime(1970, 1, 2, tzinfo=UTC)


def choose_window(
    scope: InvestigationScope, named: Sequence[IncidentRecord], now: datetime, settings: Settings
) -> Window:
    """Return the time that the messages give; else that around the incidents; else the latest."""
    if scope.window:
        return scope.window
    if not named:
        return Window(now - settings.default_window, now)
    moments = [moment for record in named for moment in _moments(record)]
    end = max(min(max(moments) + settings.around_incidents, now), _EARLIEST + timedelta(days=1))
    start = max(min(moments), _EARLIEST) - min(settings.around_incidents, timedelta(days=1))
    start = max(start, end - settings.longest_window)
    return Window(start, end) if start < end else Window(end - settings.longest_window, end)


def _moments(record: IncidentRecord) -> list[datetime]:
    return [record.occurred_at, *(alert.occurred_at for alert in record.alerts)]
