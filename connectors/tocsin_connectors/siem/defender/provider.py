"""Microsoft Defender XDR provider."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
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
    Window,
    WindowedProvider,
)
from tocsin_connectors.microsoft.entra import EntraClient
from tocsin_connectors.siem.defender import write_back
from tocsin_connectors.siem.defender.client import INCIDENTS, DefenderClient
from tocsin_connectors.siem.defender.mapping import build_incident
from tocsin_connectors.siem.defender.pagination import DefenderCursor
from tocsin_connectors.siem.defender.permissions import find_permission_problems
from tocsin_connectors.siem.defender.settings import DefenderSettings
from tocsin_connectors.siem.microsoft.search import LogTableSearcher, list_entity_kinds
from tocsin_connectors.siem.microsoft.tables import HUNTING_TABLES
from tocsin_connectors.siem.records import parse_utc

_TIME = "Timestamp"
"""Time column of every advanced hunting table."""


class Defender(WindowedProvider):
    """Incidents of one tenant, with their alerts and entities."""

    class Settings(DefenderSettings):
        """Settings of a Defender provider."""

    settings: Settings
    permissions = (
        "SecurityIncident.Read.All",
        "ThreatHunting.Read.All",
        "SecurityIncident.ReadWrite.All instead of the first, if write_back is on",
    )
    event_kinds = list_entity_kinds(HUNTING_TABLES)
    page_size = 50

    def __init__(self, settings: Settings, tools: Tools) -> None:
        """Store the dependencies. Performs no I/O."""
        super().__init__(settings, tools)
        self._graph = DefenderClient(settings, EntraClient(settings, tools))
        self._searcher = LogTableSearcher(HUNTING_TABLES, _TIME, self._graph.hunt)
        self._heavy: Window | None = None
        """Last interval that could not be listed with alerts."""

    async def check(self) -> Health:
        """Return the permissions that the app lacks."""
        lacking = await find_permission_problems(
            self._graph, self.tools.clock.now(), writes=self.settings.write_back
        )
        return Health(
            detail=f"incidents of {self.settings.tenant_id} can be read; advanced hunting works",
            problems=tuple(lacking),
        )

    async def list_changes(
        self,
        stream: str,  # noqa: ARG002 - there is one
        window: Window,
        token: Any,
        limit: int,
    ) -> Listing:
        """Return a page of the incidents updated in the window, oldest first.

        For incidents with very many alerts, Graph always answers 500. An interval that failed once
        is then listed without alerts, which are requested one incident at a time.
        """
        step = DefenderCursor.first(window) if token is None else DefenderCursor.decode(token)
        since = parse_utc(step.since)
        with_alerts = self._heavy is None or since not in self._heavy
        try:
            records, more, answer = await self._graph.incidents(
                step, window, limit, alerts=with_alerts
            )
        except Broken:
            self._heavy = Window(since, window.end)
            raise
        following = step.following(records, more=more)
        return Listing(
            records=records,
            next_token=following and following.encode(),
            server_time=answer.server_time,
        )

    def to_incident(self, record: Mapping[str, Any]) -> Incident:
        """Return the incident of a record. Raises ValueError if the record is invalid."""
        return build_incident(record)

    async def complete(self, incident: Incident, record: Mapping[str, Any]) -> Incident:
        """Add the alerts, if the incident was listed without them."""
        if "alerts" in record:
            return incident
        return await self.incident(incident.external_id) or incident

    async def incident(self, external_id: str) -> Incident | None:
        """Return the current incident with its alerts, or None if it does not exist."""
        record = await self._graph.incident(external_id)
        if record is None:
            return None
        try:
            return build_incident(record)
        except ValueError as error:
            raise Broken(
                f"GET {INCIDENTS}/{external_id} returned no valid incident: {error}"
            ) from None

    async def events(
        self, entity: Entity, window: Window, limit: int
    ) -> AsyncGenerator[SiemEvent, None]:
        """Yield events about an entity from advanced hunting, latest first."""
        async with aclosing(self._searcher.events(entity, window, limit)) as events:
            async for event in events:
                yield event

    async def comment(self, external_id: str, text: str, key: str) -> None:
        """Write a comment to an incident, or to the one that it was merged into."""
        await write_back.write_comment(self._graph, external_id, text, key)

    async def set_status(self, external_id: str, status: IncidentStatus) -> None:
        """Set the status of an incident, or of the one that it was merged into."""
        await write_back.write_status(self._graph, external_id, status)
