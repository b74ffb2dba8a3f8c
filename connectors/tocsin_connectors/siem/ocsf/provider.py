"""OCSF provider for findings in files."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from tocsin import Incident, SiemEvent, Tools
from tocsin_connectors.siem.files import FileProvider
from tocsin_connectors.siem.ocsf.events import build_event, parse_event_time
from tocsin_connectors.siem.ocsf.mapping import CLASSES, build_incident
from tocsin_connectors.siem.records import describe_value, number, text

_MAX_NAMED = 100
"""Classes that are reported by name."""


class Ocsf(FileProvider):
    """Reads OCSF findings from files, which any product can write."""

    def __init__(self, settings: Any, tools: Tools) -> None:
        """Store the dependencies. Performs no I/O."""
        super().__init__(settings, tools)
        self._skipped: set[int] = set()
        """Classes that were reported since the start."""

    def to_incident(self, record: dict[str, Any]) -> Incident | None:
        """Return the finding's incident, or None for records of other classes.

        Raises ValueError if the class, an identity or a time is missing.
        """
        kind = number(record, "class_uid")
        if kind is None:
            raise ValueError(f"class_uid is {describe_value(record.get('class_uid'))}")
        if kind not in CLASSES:
            return None
        return build_incident(record)

    def explain_skip(self, record: dict[str, Any]) -> str | None:
        """Return that the class of a record is none of findings, the first time it is met."""
        kind = number(record, "class_uid") or 0
        if kind in CLASSES or kind in self._skipped or len(self._skipped) >= _MAX_NAMED:
            return None
        self._skipped.add(kind)
        name = text(record, "class_name")
        return f"records of class {kind}{f' ({name:.100})' if name else ''} are not findings"

    def event_time(self, record: dict[str, Any]) -> datetime:
        """Return the record's time. Raises ValueError if it has no valid one."""
        return parse_event_time(record)

    def to_event(self, record: dict[str, Any]) -> SiemEvent:
        """Return the event of a record of any class. Raises ValueError without a valid time."""
        return build_event(record)
