"""OCSF: Detection and Incident Findings in files of JSON lines."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from tocsin import Incident, Provider, SiemEvent, hookimpl
from tocsin_connectors.siem.files import FileProvider
from tocsin_connectors.siem.ocsf.events import build_event, parse_event_time
from tocsin_connectors.siem.ocsf.mapping import CLASSES, build_incident
from tocsin_connectors.siem.records import describe_value, number


class Ocsf(FileProvider):
    """Any product that writes OCSF findings to files."""

    def to_incident(self, record: dict[str, Any]) -> Incident | None:
        """Return the finding's incident, None for records of other classes.

        Raises ValueError where the class, an identity or a time is missing.
        """
        kind = number(record, "class_uid")
        if kind is None:
            raise ValueError(f"class_uid is {describe_value(record.get('class_uid'))}")
        if kind not in CLASSES:
            return None
        return build_incident(record)

    def event_time(self, record: dict[str, Any]) -> datetime:
        """Return the record's time; ValueError where there is no usable one."""
        return parse_event_time(record)

    def to_event(self, record: dict[str, Any]) -> SiemEvent:
        """Return what a record of any class tells of; ValueError where a usable time is missing."""
        return build_event(record)


@hookimpl
def tocsin_providers() -> type[Provider]:
    """Return the OCSF provider."""
    return Ocsf
