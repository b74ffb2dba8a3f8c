"""ECS provider for alerts in JSON Lines files."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from tocsin import EntityKind, Incident, SiemEvent
from tocsin_connectors.siem.ecs.mapping import (
    ALERT_KINDS,
    build_event,
    build_incident,
    get_document,
    parse_time,
)
from tocsin_connectors.siem.files import GroupingFileProvider
from tocsin_connectors.siem.records import text_at


class Ecs(GroupingFileProvider):
    """Reads alerts in the Elastic Common Schema from files."""

    event_kinds = frozenset(EntityKind) - {EntityKind.MAILBOX}

    def to_incident(self, record: dict[str, Any]) -> Incident | None:
        """Return the incident of an alert, or None for documents of another kind.

        Raises ValueError if a valid time is missing.
        """
        document = get_document(record)
        parse_time(document)
        if text_at(document, "event.kind") not in ALERT_KINDS:
            return None
        return build_incident(document, self.settings.window)

    def fold(self, incidents: list[Incident]) -> tuple[Incident, ...]:
        """Merge the alerts of one group; records of Elastic Security are versions, and stay."""
        versions = [incident for incident in incidents if incident.changed_at]
        grouped = super().fold([incident for incident in incidents if not incident.changed_at])
        return (*versions, *grouped)

    def event_time(self, record: dict[str, Any]) -> datetime:
        """Return the document's time. Raises ValueError if there is no valid one."""
        return parse_time(get_document(record))

    def to_event(self, record: dict[str, Any]) -> SiemEvent:
        """Return the event of a document of any kind. Raises ValueError without a valid time."""
        return build_event(get_document(record))
