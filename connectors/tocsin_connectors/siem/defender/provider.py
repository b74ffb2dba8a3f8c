"""A tenant of Microsoft Defender XDR as a provider: what it is asked, and by what time."""

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
"""The column that every table of advanced hunting has its time in."""


class Defender(WindowedProvider):
    """Incidents of one tenant, with their alerts and what these name."""

    class Settings(DefenderSettings):
        """What a Defender provider can be told."""

    settings: Settings
    permissions = (
        "SecurityIncident.Read.All",
        "ThreatHunting.Read.All",
        "SecurityIncident.ReadWrite.All instead of the first, where write_back is on",
    )
    event_kinds = list_entity_kinds(HUNTING_TABLES)
    page_size = 50

    def __init__(self, settings: Settings, tools: Tools) -> None:
        """Keep what is needed; do no I/O."""
        super().__init__(settings, tools)
        self._graph = DefenderClient(settings, EntraClient(settings, tools))
        self._searcher = LogTableSearcher(HUNTING_TABLES, _TIME, self._graph.hunt)
        self._heavy: Window | None = None
        """The last stretch that was broken when it was asked for with alerts."""

    async def check(self) -> Health:
        """Return which permissions the app lacks."""
        lacking = await find_permission_problems(
            self._graph, self.tools.clock.now(), writes=self.settings.write_back
        )
        return Health(
            detail=f"incidents of {self.settings.tenant_id} can be read, and hunted for",
            problems=tuple(lacking),
        )

    async def list_changes(
        self,
        stream: str,  # noqa: ARG002 - there is one
        window: Window,
        token: Any,
        limit: int,
    ) -> Listing:
        """Return a page of the incidents that were updated in the window, the oldest first.

        With the alerts of incidents that have very many, Graph answers 500 each time. A stretch
        that was broken once is asked for without alerts from then on, and these one by one.
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
        """Return the incident that a record is; ValueError for what is none."""
        return build_incident(record)

    async def complete(self, incident: Incident, record: Mapping[str, Any]) -> Incident:
        """Return the incident with its alerts, where it was listed without them."""
        if "alerts" in record:
            return incident
        return await self.incident(incident.external_id) or incident

    async def incident(self, external_id: str) -> Incident | None:
        """Return the incident as it is now, with its alerts; None where there is none."""
        record = await self._graph.incident(external_id)
        if record is None:
            return None
        try:
            return build_incident(record)
        except ValueError as error:
            raise Broken(f"GET {INCIDENTS}/{external_id} answered no incident: {error}") from None

    async def events(
        self, entity: Entity, window: Window, limit: int
    ) -> AsyncGenerator[SiemEvent, None]:
        """Yield what advanced hunting finds of an entity, the latest first."""
        async with aclosing(self._searcher.events(entity, window, limit)) as events:
            async for event in events:
                yield event

    async def comment(self, external_id: str, text: str, key: str) -> None:
        """Write a comment to an incident, or to that which it was merged into."""
        await write_back.write_comment(self._graph, external_id, text, key)

    async def set_status(self, external_id: str, status: IncidentStatus) -> None:
        """Set where an incident stands, or that which it was merged into."""
        await write_back.write_status(self._graph, external_id, status)
