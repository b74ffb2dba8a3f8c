"""Falco provider for alerts in JSON files."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from tocsin import EntityKind, Incident, SiemEvent
from tocsin_connectors.siem.falco.mapping import build_event, build_incident, parse_time
from tocsin_connectors.siem.files import GroupingFileProvider


class Falco(GroupingFileProvider):
    """Reads Falco alerts from JSON files."""

    event_kinds = frozenset(
        {
            *(EntityKind.IP, EntityKind.HOST, EntityKind.DOMAIN, EntityKind.USER),
            *(EntityKind.PROCESS, EntityKind.FILE, EntityKind.CLOUD_RESOURCE),
        }
    )

    def to_incident(self, record: dict[str, Any]) -> Incident:
        """Return the incident of an alert.

        Raises ValueError if the rule or a valid time is missing.
        """
        return build_incident(record, self.settings.window)

    def event_time(self, record: dict[str, Any]) -> datetime:
        """Return the alert's time. Raises ValueError if there is no valid one."""
        return parse_time(record)

    def to_event(self, record: dict[str, Any]) -> SiemEvent:
        """Return the event of an alert. Raises ValueError if the rule or a time is missing."""
        return build_event(record)
