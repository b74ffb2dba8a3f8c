"""Zeek provider for notices in JSON logs."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any

from pydantic import Field, StringConstraints

from tocsin import EntityKind, Health, Incident, Severity, SiemEvent
from tocsin_connectors.siem.files import GroupingFileProvider, find_files_beginning
from tocsin_connectors.siem.records import text
from tocsin_connectors.siem.zeek.events import build_event
from tocsin_connectors.siem.zeek.mapping import build_incident, parse_time
from tocsin_connectors.siem.zeek.notices import OPERATIONAL_NOTICES, match_notice

NoticePattern = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)
]

_TABLE_HEADER = b"#separator"


class ZeekSettings(GroupingFileProvider.Settings):
    """Settings of a Zeek provider."""

    severities: Mapping[NoticePattern, Severity] = Field(
        default_factory=dict,
        max_length=1_000,
        description="The severity of each notice type, such as SSH::Password_Guessing or Scan::*. "
        "Tocsin uses the first match.",
    )
    excluded_notices: tuple[NoticePattern, ...] = Field(
        default=OPERATIONAL_NOTICES,
        max_length=1_000,
        description="The notice types that do not become incidents. By default, these are the "
        "notices about the sensor itself.",
    )


class Zeek(GroupingFileProvider[ZeekSettings]):
    """Reads Zeek notices from JSON logs."""

    # the logs have no processes or cloud resources
    event_kinds = frozenset(EntityKind) - {EntityKind.PROCESS, EntityKind.CLOUD_RESOURCE}

    async def check(self) -> Health:
        """Return the number of files, why one cannot be read, and which are not JSON."""
        health = await super().check()
        tables = await asyncio.to_thread(find_files_beginning, self.settings.path, _TABLE_HEADER)
        problems = (
            f"{path} is in TSV format: set LogAscii::use_json = T in Zeek" for path in tables
        )
        return replace(health, problems=(*health.problems, *problems))

    def to_incident(self, record: dict[str, Any]) -> Incident | None:
        """Return the incident of a notice, or None for excluded ones and for other logs.

        Raises ValueError if the type or a valid time is missing.
        """
        if "note" not in record:
            parse_time(record)
            return None
        incident = build_incident(record, self.settings.window, self.settings.severities)
        excluded = dict.fromkeys(self.settings.excluded_notices, True)
        return None if match_notice(text(record, "note") or "", excluded) else incident

    def event_time(self, record: dict[str, Any]) -> datetime:
        """Return the record's time. Raises ValueError if there is no valid one."""
        return parse_time(record)

    def to_event(self, record: dict[str, Any]) -> SiemEvent:
        """Return the event of a record of any log. Raises ValueError without a valid time."""
        return build_event(record)
