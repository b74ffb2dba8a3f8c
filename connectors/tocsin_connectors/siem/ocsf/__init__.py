"""OCSF: Detection and Incident Findings in files of JSON lines."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from tocsin import Incident, Provider, SiemEvent, hookimpl
from tocsin_connectors.siem.files import FileProvider
from tocsin_connectors.siem.ocsf.events import event_of, occurred_at
from tocsin_connectors.siem.ocsf.findings import CLASSES, incident_of
from tocsin_connectors.siem.records import described, number


class Ocsf(FileProvider):
    """Any product that writes OCSF findings to files."""

    def to_incident(self, record: dict[str, Any]) -> Incident | None:
        """Return the finding's incident, None for records of other classes.

        Raises ValueError where the class, an identity or a time is missing.
        """
        kind = number(record, "class_uid")
        if kind is None:
            raise ValueError(f"class_uid is {described(record.get('class_uid'))}")
        if kind not in CLASSES:
            return None
        return incident_of(record)

    def time_of(self, record: dict[str, Any]) -> datetime:
        """Return the record's time; ValueError where there is no usable one."""
        return occurred_at(record)

    def to_event(self, record: dict[str, Any]) -> SiemEvent:
        """Return what a record of any class tells of; ValueError where a usable time is missing."""
        return event_of(record)


@hookimpl
def tocsin_providers() -> type[Provider]:
    """Return the OCSF provider."""
    return Ocsf
