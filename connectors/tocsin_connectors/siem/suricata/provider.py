"""Suricata provider for alerts in EVE JSON files."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from tocsin import EntityKind, Incident, SiemEvent
from tocsin_connectors.siem.files import GroupingFileProvider
from tocsin_connectors.siem.records import describe_value
from tocsin_connectors.siem.suricata.events import build_event
from tocsin_connectors.siem.suricata.mapping import build_incident, parse_timestamp


class Suricata(GroupingFileProvider):
    """Reads Suricata alerts from EVE JSON files."""

    # EVE records have no processes or cloud resources
    event_kinds = frozenset(EntityKind) - {EntityKind.PROCESS, EntityKind.CLOUD_RESOURCE}

    def to_incident(self, record: dict[str, Any]) -> Incident | None:
        """Return the incident of an alert, or None for other events.

        Raises ValueError if the event type, the signature or a valid timestamp is missing.
        """
        kind = record.get("event_type")
        if not isinstance(kind, str):
            raise ValueError(f"event_type is {describe_value(kind)}")  # noqa: TRY004 - as every record's
        if kind != "alert":
            return None
        return build_incident(record, self.settings.window)

    def event_time(self, record: dict[str, Any]) -> datetime:
        """Return the record's timestamp. Raises ValueError if there is no valid one."""
        return parse_timestamp(record)

    def to_event(self, record: dict[str, Any]) -> SiemEvent | None:
        """Return the event of a record, or None for the sensor's own statistics.

        Raises ValueError if a valid timestamp is missing.
        """
        return None if record.get("event_type") == "stats" else build_event(record)
