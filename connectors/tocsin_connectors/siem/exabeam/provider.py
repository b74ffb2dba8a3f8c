"""Exabeam provider."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from tocsin import (
    Broken,
    Entity,
    Health,
    Incident,
    IncidentStatus,
    Refused,
    SiemEvent,
    Tools,
    Window,
)
from tocsin_connectors.responses import build_from_answer
from tocsin_connectors.siem.creation_time import CreatedPage, CreationCursor, CreationTimeProvider
from tocsin_connectors.siem.exabeam.client import MAX_ROWS, READ, SECOND, ExabeamClient
from tocsin_connectors.siem.exabeam.contract import CONTRACTS
from tocsin_connectors.siem.exabeam.mapping import (
    CLOSED_STAGE,
    NEW_STAGE,
    build_incident,
    parse_stage,
    parse_times,
)
from tocsin_connectors.siem.exabeam.search import EVENT_FIELDS, search_events
from tocsin_connectors.siem.exabeam.settings import ExabeamSettings
from tocsin_connectors.siem.idempotency_marker import add_marker, has_marker
from tocsin_connectors.siem.permissions import PermissionProbe, change_absent, find_refused
from tocsin_connectors.siem.records import text

READ_CASES, READ_ALERTS = "Threat Center Cases: Read", "Threat Center Alerts: Read"
WRITE_CASES = "Threat Center Cases: Read, Write, and Delete"
SEARCH_EVENTS = "Search: Read"
_MISSING_CASE = "00000000-0000-4000-8000-000000000000"
_GROWTH = 4
"""By what a search grows that returned only records of one second."""
_REASON = "Other"


class Exabeam(CreationTimeProvider[ExabeamSettings]):
    """Reads the cases or alerts of one subscription. Each case or alert becomes an incident."""

    permissions = (
        READ_CASES,
        f'{READ_ALERTS} (instead of {READ_CASES}, if records = "alerts")',
        f"{SEARCH_EVENTS} (unless event_search is off)",
        f"{WRITE_CASES} (instead of {READ_CASES}, if write_back or close_from_tickets is on)",
    )
    event_kinds = frozenset(EVENT_FIELDS)
    record_contracts = CONTRACTS
    precision = SECOND
    page_size = 500

    def __init__(self, settings: ExabeamSettings, tools: Tools) -> None:
        """Store the dependencies. Performs no I/O."""
        super().__init__(settings, tools)
        self._client = ExabeamClient(settings, tools)

    async def check(self) -> Health:
        """Return the permissions that the API key lacks."""
        now = self.tools.clock.now()
        recent = Window(now - timedelta(minutes=1), now)
        await self._client.search(recent.start, recent.end, 1)
        tried: dict[str, PermissionProbe] = {}
        if self.settings.event_search:
            tried[SEARCH_EVENTS] = partial(
                self._client.events, 'src_ip:"192.0.2.1"', recent, ("id",), 1
            )
        if self.settings.writes:
            tried[WRITE_CASES] = self._change_nothing
        lacking = await find_refused(tried)
        problems = tuple(f"the API key lacks the permission {name}" for name in lacking)
        detail = f"Tocsin can read {self.settings.records} in the region {self.settings.region}"
        return Health(detail=detail, problems=problems)

    async def _change_nothing(self) -> None:
        """Set the stage of a nonexistent case, which only tests the permission."""
        await change_absent(self._client.set_stage(_MISSING_CASE, stage=NEW_STAGE))

    async def search(self, cursor: CreationCursor, limit: int) -> CreatedPage:
        """Return the cases or alerts of a cursor, oldest first.

        Raises `Broken` if more than 3,000 were created in one second.
        """
        size = min(limit * _GROWTH**cursor.step, MAX_ROWS)
        if cursor.step and limit * _GROWTH ** (cursor.step - 1) >= MAX_ROWS:
            raise Broken(f"more than {MAX_ROWS:,} {self.settings.records} in one second")
        return await self._client.search(cursor.since, cursor.part.end, size)

    def parse_times(self, record: dict[str, Any]) -> tuple[datetime, datetime]:
        """Return when a record was created and when it last changed."""
        return parse_times(record, self.settings.records)

    def to_incident(self, record: Mapping[str, Any]) -> Incident:
        """Return the incident of a record. Raises ValueError if the record is invalid."""
        return build_incident(record, self.settings.records, self.settings.web_url)

    async def incident(self, external_id: str) -> Incident | None:
        """Return the current case or alert, or None if it does not exist."""
        record = await self._client.record(external_id)
        return build_from_answer(record, self.to_incident, f"GET {READ}")

    async def events(
        self, entity: Entity, window: Window, limit: int
    ) -> AsyncGenerator[SiemEvent, None]:
        """Yield the latest events that name an entity; none if `event_search` is off."""
        if not self.settings.event_search:
            return
        async with aclosing(search_events(self._client, entity, window, limit)) as events:
            async for event in events:
                yield event

    async def comment(self, external_id: str, text: str, key: str) -> None:
        """Write a note to a case, unless one with this key exists."""
        await self._read_stage(external_id)
        if not has_marker(key, await self._client.notes(external_id)):
            await self._client.write_note(external_id, add_marker(text, key))

    async def set_status(self, external_id: str, status: IncidentStatus) -> None:
        """Set the stage of a case, unless its stage has that status already."""
        if parse_stage(await self._read_stage(external_id)) is status:
            return
        if status is IncidentStatus.CLOSED:
            await self._client.set_stage(external_id, stage=CLOSED_STAGE, closedReason=_REASON)
        else:
            is_new = status is IncidentStatus.NEW
            stage = NEW_STAGE if is_new else self.settings.active_stage
            await self._client.set_stage(external_id, stage=stage)

    async def _read_stage(self, identifier: str) -> str | None:
        """Return the stage of a case. Raises `Refused` if it does not exist."""
        record = await self._client.record(identifier)
        if record is None:
            raise Refused(f"the case {identifier} does not exist")
        return text(record, "stage")
