"""A workspace of Microsoft Sentinel as a provider: what it is asked, and by what time."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from tocsin import (
    Broken,
    Entity,
    Health,
    Incident,
    IncidentStatus,
    Listing,
    SiemEvent,
    Tools,
    TryLater,
    Window,
    WindowedProvider,
)
from tocsin_connectors.microsoft.entra import EntraClient
from tocsin_connectors.siem.microsoft.search import LogTableSearcher, list_entity_kinds
from tocsin_connectors.siem.records import union
from tocsin_connectors.siem.sentinel import write_back
from tocsin_connectors.siem.sentinel.client import TIME_COLUMN, SentinelClient, WorkspaceLogs
from tocsin_connectors.siem.sentinel.entities import find_entities
from tocsin_connectors.siem.sentinel.mapping import (
    build_alerts,
    build_incident,
    find_alert_entities,
    find_techniques,
    is_own,
)
from tocsin_connectors.siem.sentinel.pagination import SentinelCursor
from tocsin_connectors.siem.sentinel.permissions import (
    WRITE_COMMENTS,
    WRITE_INCIDENTS,
    SentinelPermissionCheck,
)
from tocsin_connectors.siem.sentinel.settings import SentinelSettings
from tocsin_connectors.siem.sentinel.tables import list_tables

_PATIENCE = 2
"""So many times in a row details may break before incidents are taken without them."""


class Sentinel(WindowedProvider):
    """Incidents of one workspace, with their alerts and entities."""

    class Settings(SentinelSettings):
        """What a Sentinel provider can be told."""

    settings: Settings
    permissions = (
        "Microsoft Sentinel Reader, on the workspace",
        "Microsoft Sentinel Responder instead, where write_back is on",
    )
    event_kinds = list_entity_kinds(list_tables({}))

    def __init__(self, settings: Settings, tools: Tools) -> None:
        """Keep what is needed; do no I/O."""
        super().__init__(settings, tools)
        entra = EntraClient(settings, tools)
        self._workspace = SentinelClient(settings, entra)
        self._logs = WorkspaceLogs(settings, entra, self._workspace)
        tables = list_tables(settings.tables)
        self._searcher = LogTableSearcher(tables, TIME_COLUMN, self._logs.run, find_entities)
        self._breaks = 0

    async def check(self) -> Health:
        """Return which actions the app may not do."""
        checking, settings = (
            SentinelPermissionCheck(self._workspace, self._logs, self.tools.clock),
            self.settings,
        )
        wanted = {
            WRITE_COMMENTS: settings.write_back,
            WRITE_INCIDENTS: settings.write_back_status is not None,
        }
        return Health(
            detail=f"the incidents and logs of {settings.workspace} can be read",
            problems=tuple(await checking.problems([it for it in wanted if wanted[it]])),
        )

    async def list_changes(
        self,
        stream: str,  # noqa: ARG002 - there is one
        window: Window,
        token: Any,
        limit: int,
    ) -> Listing:
        """Return a page of the incidents that were modified in the window, the oldest first."""
        step = SentinelCursor.first(window) if token is None else SentinelCursor.decode(token)
        records, link, answer = await self._workspace.changed(step, window.end, limit)
        following = step.following(records, link)
        return Listing(
            records=records,
            next_token=following and following.encode(),
            server_time=answer.server_time,
        )

    def to_incident(self, record: Mapping[str, Any]) -> Incident | None:
        """Return the incident that a record is, None for one that Tocsin has made there itself.

        Raises ValueError for what is none.
        """
        found = self._incident_of(record)
        return None if is_own(record) and not self.settings.read_own else found

    async def complete(self, incident: Incident, record: Mapping[str, Any]) -> Incident:  # noqa: ARG002 - all is asked for by its name
        """Return the incident with its alerts and entities.

        They are asked for again where the answer broke, since those of a change are asked for at no
        other time; where it goes on breaking, that must not hold up what comes behind.
        """
        try:
            whole = await self._with_details(incident)
        except Broken as broken:
            self._breaks += 1
            if self._breaks <= _PATIENCE:
                raise TryLater(str(broken)) from broken
            raise
        self._breaks = 0
        return whole

    async def incident(self, external_id: str) -> Incident | None:
        """Return the incident as it is now, with its details; None where it was deleted."""
        record = await self._workspace.incident(external_id)
        if record is None:
            return None
        try:
            found = self._incident_of(record)
        except ValueError as error:
            raise Broken(f"the answer for {external_id} is no incident: {error}") from None
        return await self._with_details(found)

    async def events(
        self, entity: Entity, window: Window, limit: int
    ) -> AsyncGenerator[SiemEvent, None]:
        """Yield what the workspace's logs have of an entity, the latest first."""
        async with aclosing(self._searcher.events(entity, window, limit)) as events:
            async for event in events:
                yield event

    async def comment(self, external_id: str, text: str, key: str) -> None:
        """Write a comment to an incident; one that has this key is the same."""
        await write_back.write_comment(self._workspace, external_id, text, key)

    async def set_status(self, external_id: str, status: IncidentStatus) -> None:
        """Set where an incident stands; one that stands there already is left alone."""
        await write_back.write_status(self._workspace, external_id, status)

    def _incident_of(self, record: Mapping[str, Any]) -> Incident:
        return build_incident(record, self.settings.cloud_endpoints.portal, self.settings.tenant_id)

    async def _with_details(self, incident: Incident) -> Incident:
        alerts = await self._workspace.alerts(incident.external_id)
        entities = await self._workspace.entities(incident.external_id)
        return replace(
            incident,
            alerts=union([build_alerts(alerts)]),
            entities=union([find_entities(entities), find_alert_entities(alerts)]),
            techniques=union([incident.techniques, find_techniques(alerts)]),
        )
