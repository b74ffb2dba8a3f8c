"""Leaving out what did not happen in a window of the past."""

from __future__ import annotations

from typing import Any

from tocsin import Incident, Window
from tocsin_connectors.siem.files.batch import IncidentParser


class WindowedParser:
    """A parser of what another one finds and that happened, or last changed, in a window.

    Each record is judged by its own time, before any are folded, so that the incidents are those
    that following the files made of the same records.
    """

    def __init__(self, parser: IncidentParser, window: Window) -> None:
        self._parser = parser
        self._window = window

    def to_incident(self, record: dict[str, Any]) -> Incident | None:
        """Return the record's incident if it is of the window, else None.

        Raises ValueError for a record that cannot be understood: nobody knows when it happened.
        """
        incident = self._parser.to_incident(record)
        if incident is None or (incident.changed_at or incident.occurred_at) not in self._window:
            return None
        return incident

    def fold(self, incidents: list[Incident]) -> tuple[Incident, ...]:
        """Return the incidents of one page as the other parser folds them."""
        return self._parser.fold(incidents)
