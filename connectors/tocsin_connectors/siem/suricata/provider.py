"""Suricata provider for alerts in EVE JSON files."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from pydantic import Field

from tocsin import Duration, EntityKind, Incident, SiemEvent
from tocsin_connectors.siem.files import FileProvider
from tocsin_connectors.siem.records import describe_value, union
from tocsin_connectors.siem.suricata.events import build_event
from tocsin_connectors.siem.suricata.mapping import build_incident, parse_timestamp


class Suricata(FileProvider):
    """Suricata alerts in EVE JSON files."""

    class Settings(FileProvider.Settings):
        """Settings of a Suricata provider."""

        window: Duration = Field(
            default=timedelta(hours=1),
            gt=timedelta(0),
            le=timedelta(days=366),
            description="Length of the clock interval in which the alerts"
            " of one signature and one source address form one incident.",
        )

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

    def fold(self, incidents: list[Incident]) -> tuple[Incident, ...]:
        """Merge the incidents of one page by `external_id`."""
        groups: dict[str, list[Incident]] = {}
        for incident in incidents:
            groups.setdefault(incident.external_id, []).append(incident)
        return tuple(_fold(group) for group in groups.values())


def _fold(group: list[Incident]) -> Incident:
    worst = max(group, key=lambda incident: incident.severity.rank)
    return replace(
        worst,
        occurred_at=min(incident.occurred_at for incident in group),
        techniques=union(incident.techniques for incident in group),
        tactics=union(incident.tactics for incident in group),
        entities=union(incident.entities for incident in group),
        alerts=union(incident.alerts for incident in group),
    )
