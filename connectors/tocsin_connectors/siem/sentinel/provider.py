"""Microsoft Sentinel provider."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
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
from tocsin_connectors.siem.records import EntityRoles, union
from tocsin_connectors.siem.retirements import load_retirements
from tocsin_connectors.siem.sentinel import write_back
from tocsin_connectors.siem.sentinel.client import TIME_COLUMN, SentinelClient, WorkspaceLogs
from tocsin_connectors.siem.sentinel.contract import ALERTS, CONTRACTS
from tocsin_connectors.siem.sentinel.entities import find_entities, find_roles
from tocsin_connectors.siem.sentinel.mapping import (
    build_alerts,
    build_incident,
    find_alert_entities,
    find_alert_roles,
    find_alert_tactics,
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
"""Failures in a row after which incidents are taken without details."""


class Sentinel(WindowedProvider[SentinelSettings]):
    """Reads one workspace's incidents, with their alerts and entities."""

    permissions = (
        "Microsoft Sentinel Reader on the workspace",
        (
            "Microsoft Sentinel Responder (instead of Reader, if write_back or "
            "close_from_tickets is on)"
        ),
    )
    record_contracts = CONTRACTS
    retirements = load_retirements("sentinel")
    event_kinds = list_entity_kinds(list_tables({}))

    def __init__(self, settings: SentinelSettings, tools: Tools) -> None:
        """Store the dependencies. Performs no I/O."""
        super().__init__(settings, tools)
        entra = EntraClient(settings, tools)
        self._workspace = SentinelClient(settings, entra)
        self._logs = WorkspaceLogs(settings, entra, self._workspace)
        tables = list_tables(settings.tables)
        self._searcher = LogTableSearcher(tables, TIME_COLUMN, self._logs.run, find_entities)
        self._consecutive_failures = 0

    async def check(self) -> Health:
        """Return the permissions that the app lacks."""
        checking, settings = (
            SentinelPermissionCheck(self._workspace, self._logs, self.tools.clock),
            self.settings,
        )
        wanted = {
            WRITE_COMMENTS: settings.write_back,
            WRITE_INCIDENTS: settings.sets_status,
        }
        return Health(
            detail=f"Tocsin can read incidents and logs from {settings.workspace}",
            problems=tuple(
                await checking.problems([action for action in wanted if wanted[action]])
            ),
        )

    async def list_changes(
        self,
        stream: str,  # noqa: ARG002 - there is one
        window: Window,
        token: Any,
        limit: int,
    ) -> Listing:
        """Return a page of the incidents modified in the window, oldest first."""
        cursor = SentinelCursor.first(window) if token is None else SentinelCursor.decode(token)
        records, link, answer = await self._workspace.changed(cursor, window.end, limit)
        following = cursor.following(records, link)
        return Listing(
            records=records,
            next_token=following and following.encode(),
            server_time=answer.server_time,
        )

    def to_incident(self, record: Mapping[str, Any]) -> Incident | None:
        """Return the incident of a record, or None if Tocsin created it.

        Raises ValueError if the record is invalid.
        """
        found = self._build_incident(record)
        return None if is_own(record) and not self.settings.read_own else found

    async def complete(self, incident: Incident, record: Mapping[str, Any]) -> Incident:  # noqa: ARG002 - the record has none of them
        """Add the alerts and entities of the incident.

        They are requested again after a failure, since those of a change are requested at no other
        time; repeated failures must not block later incidents.
        """
        try:
            whole = await self._with_details(incident)
        except Broken as broken:
            self._consecutive_failures += 1
            if self._consecutive_failures <= _PATIENCE:
                raise TryLater(str(broken)) from broken
            raise
        self._consecutive_failures = 0
        return whole

    async def incident(self, external_id: str) -> Incident | None:
        """Return the current incident with its details, or None if it was deleted."""
        record = await self._workspace.incident(external_id)
        if record is None:
            return None
        try:
            found = self._build_incident(record)
        except ValueError as error:
            raise Broken(
                f"the response for {external_id} is not a valid incident: {error}"
            ) from None
        return await self._with_details(found)

    def events(self, entity: Entity, window: Window, limit: int) -> AsyncGenerator[SiemEvent, None]:
        """Yield events about an entity from the workspace's logs, latest first."""
        return self._searcher.events(entity, window, limit)

    async def comment(self, external_id: str, text: str, key: str) -> None:
        """Write a comment to an incident, unless one with this key exists."""
        await write_back.write_comment(self._workspace, external_id, text, key)

    async def set_status(self, external_id: str, status: IncidentStatus) -> None:
        """Set the status of an incident, unless it has that status already."""
        await write_back.write_status(self._workspace, external_id, status)

    def _build_incident(self, record: Mapping[str, Any]) -> Incident:
        return build_incident(record, self.settings.cloud_endpoints.portal, self.settings.tenant_id)

    async def _with_details(self, incident: Incident) -> Incident:
        alerts = await self._workspace.alerts(incident.external_id)
        self.note_shapes(ALERTS, alerts)
        entities = await self._workspace.entities(incident.external_id)
        roles = EntityRoles.merge([find_roles(entities), find_alert_roles(alerts)])
        return replace(
            incident,
            alerts=union([build_alerts(alerts)]),
            entities=union([find_entities(entities), find_alert_entities(alerts)]),
            sources=roles.sources,
            targets=roles.targets,
            techniques=union([incident.techniques, find_techniques(alerts)]),
            tactics=union([incident.tactics, find_alert_tactics(alerts)]),
        )
