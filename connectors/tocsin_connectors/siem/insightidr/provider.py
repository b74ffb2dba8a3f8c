"""InsightIDR provider."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any

from tocsin import Health, Incident, IncidentStatus, Refused, Tools
from tocsin_connectors.responses import build_from_answer
from tocsin_connectors.siem.creation_time import CreatedPage, CreationCursor, CreationTimeProvider
from tocsin_connectors.siem.idempotency_marker import add_marker, has_marker, read_comments
from tocsin_connectors.siem.insightidr.client import (
    INVESTIGATIONS,
    MILLISECOND,
    InsightIDRClient,
    InsightRecord,
)
from tocsin_connectors.siem.insightidr.contract import ALERTS, CONTRACTS
from tocsin_connectors.siem.insightidr.mapping import (
    STATUS_WORDS,
    STATUSES,
    build_incident,
    parse_times,
)
from tocsin_connectors.siem.insightidr.settings import InsightIDRSettings
from tocsin_connectors.siem.permissions import PermissionProbe, change_absent, find_refused
from tocsin_connectors.siem.records import text

VIEW = "InsightIDR Core: View Only"
CHANGE = "InsightIDR Core: View and Change"
_MISSING = "rrn:investigation:us:00000000-0000-0000-0000-000000000000:investigation:000000000000"
_MAX_ALERTS = 20
"""Alerts of an investigation whose details are read."""
_MAX_EVIDENCE = 20
"""Pieces of evidence that are read of an alert."""


class InsightIDR(CreationTimeProvider[InsightIDRSettings]):
    """Reads one organization's investigations. Each investigation becomes an incident."""

    permissions = (VIEW, f"{CHANGE} (instead of {VIEW}, if write_back or close_from_tickets is on)")
    record_contracts = CONTRACTS
    precision = MILLISECOND
    page_size = 100

    def __init__(self, settings: InsightIDRSettings, tools: Tools) -> None:
        """Store the dependencies. Performs no I/O."""
        super().__init__(settings, tools)
        self._client = InsightIDRClient(settings, tools)

    async def check(self) -> Health:
        """Return the permissions that the API key lacks."""
        now = self.tools.clock.now()
        await self._client.investigations(now - MILLISECOND, now, 0, 1)
        tried: dict[str, PermissionProbe] = {}
        if self.settings.alert_details:
            tried["to read the details of alerts"] = partial(self._client.probe_alerts, now)
        if self.settings.writes:
            tried[CHANGE] = self._change_nothing
        lacking = await find_refused(tried)
        problems = tuple(f"the API key lacks the permission {name}" for name in lacking)
        return Health(
            detail=f"Tocsin can read investigations in the region {self.settings.region}",
            problems=problems,
        )

    async def _change_nothing(self) -> None:
        """Set the status of a nonexistent investigation, which only tests the permission."""
        await change_absent(self._client.set_status(_MISSING, STATUS_WORDS[IncidentStatus.ACTIVE]))

    async def search(self, cursor: CreationCursor, limit: int) -> CreatedPage:
        """Return the investigations of a cursor, oldest first."""
        return await self._client.investigations(cursor.since, cursor.part.end, cursor.step, limit)

    def parse_times(self, record: dict[str, Any]) -> tuple[datetime, datetime]:
        """Return when an investigation was created and when it last changed."""
        return parse_times(record)

    def to_incident(self, record: Mapping[str, Any]) -> Incident:
        """Return the incident of a record. Raises ValueError if the record is invalid."""
        return build_incident(record, self.settings.region, self.settings.web_url)

    async def complete(self, incident: Incident, record: Mapping[str, Any]) -> Incident:
        """Add the alerts of the investigation, with their entities."""
        return self.to_incident({**record, "alerts": await self._read_alerts(incident.external_id)})

    async def incident(self, external_id: str) -> Incident | None:
        """Return the current investigation with its alerts, or None if it does not exist."""
        record = await self._client.investigation(external_id)
        found = build_from_answer(record, self.to_incident, f"GET {INVESTIGATIONS}")
        return found and await self.complete(found, record or {})

    async def _read_alerts(self, rrn: str) -> list[InsightRecord]:
        """Return the alerts of an investigation, the first ones with details and evidence."""
        alerts = list(await self._client.alerts(rrn))
        if self.settings.alert_details:
            for alert in alerts[:_MAX_ALERTS]:
                if name := text(alert, "id"):
                    alert["details"] = await self._client.alert(name) or {}
                    alert["evidence"] = list(await self._client.evidence(name, _MAX_EVIDENCE))
        self.note_shapes(ALERTS, alerts)
        return alerts

    async def comment(self, external_id: str, text: str, key: str) -> None:
        """Write a comment on an investigation, unless one with this key exists."""
        await self._get_existing(external_id)
        comments = await self._client.comments(external_id)
        if not has_marker(key, read_comments(comments, "body")):
            await self._client.write_comment(external_id, add_marker(text, key))

    async def set_status(self, external_id: str, status: IncidentStatus) -> None:
        """Set the status of an investigation, unless it has that status already."""
        found = await self._get_existing(external_id)
        if STATUSES.get((text(found, "status") or "").casefold()) is not status:
            await self._client.set_status(external_id, STATUS_WORDS[status])

    async def _get_existing(self, rrn: str) -> InsightRecord:
        """Return the current investigation. Raises `Refused` if it does not exist."""
        found = await self._client.investigation(rrn)
        if found is None:
            raise Refused(f"the investigation {rrn} does not exist")
        return found
