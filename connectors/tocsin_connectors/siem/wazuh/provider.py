"""A Wazuh indexer as a provider."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Annotated, Any

from pydantic import Field

from tocsin import (
    Duration,
    Entity,
    Health,
    Incident,
    Listing,
    Misconfigured,
    ServerUrl,
    Severity,
    SiemEvent,
    Tools,
    Window,
    WindowedProvider,
    any_case,
)
from tocsin_connectors.siem.indices.cluster import Attempts, Cluster
from tocsin_connectors.siem.indices.naming import naming
from tocsin_connectors.siem.indices.reading import Logs, events_in, latest, oldest
from tocsin_connectors.siem.indices.settings import ClusterSettings
from tocsin_connectors.siem.indices.walk import within
from tocsin_connectors.siem.wazuh.alerts import TIME, detection_of
from tocsin_connectors.siem.wazuh.counting import Counting, summary
from tocsin_connectors.siem.wazuh.events import event_of
from tocsin_connectors.siem.wazuh.groups import Group, Tally, incident_of, summed_up
from tocsin_connectors.siem.wazuh.links import link_to
from tocsin_connectors.siem.wazuh.queries import ENTITY_FIELDS, members, notable

_MOST_AGAIN = 200
"""So many alerts of an incident, the latest, are read again."""


class Wazuh(WindowedProvider):
    """The alerts of Wazuh 4.x and the findings of 5.x, in the Wazuh indexer."""

    class Settings(ClusterSettings, WindowedProvider.Settings):
        """What a Wazuh provider can be told."""

        index: str = Field(
            default="wazuh-alerts-*,wazuh-findings-v5-*",
            pattern=r"^[^\s/?#\\\"<>|]+$",
            description="The indices to read, with `*` for anything, separated by commas.",
        )
        min_severity: Annotated[Severity, any_case(Severity)] = Field(
            default=Severity.MEDIUM,
            description="Read nothing that is less severe: of 4.x, Medium is level 7 and above.",
        )
        window: Duration = Field(
            default=timedelta(hours=1),
            ge=timedelta(minutes=1),
            le=timedelta(days=1),
            description="Alerts of one rule at one agent in a stretch of the clock this long "
            "become one incident.",
        )
        overlap: Duration = Field(
            default=timedelta(minutes=30),
            le=timedelta(days=7),
            description="How far each read goes back behind the last one, for alerts that reach "
            "the indexer late.",
        )
        reread_after: tuple[Duration, ...] = Field(
            default=(timedelta(hours=1), timedelta(hours=6)),
            max_length=10,
            description="How long after an incident was new to count its alerts again, those that "
            "came late among them.",
        )
        dashboard_url: ServerUrl | None = Field(
            default=None, description="Where the Wazuh dashboard is, for links to it."
        )

    settings: Settings
    page_size = 200
    event_kinds = frozenset(ENTITY_FIELDS)
    permissions = ("index permission `read` on wazuh-alerts-* and wazuh-findings-v5-*",)

    def __init__(self, settings: Any, tools: Tools) -> None:
        """Keep what is needed; do no I/O."""
        super().__init__(settings, tools)
        self._cluster = Cluster(tools, settings, settings.authorization)
        self._logs = Logs(self._cluster, settings.index, TIME)
        self._counting = Counting(self._aggregate, (), settings.window)

    async def check(self) -> Health:
        """Return that alerts can be read, and what is missing where they cannot."""
        settings, attempts = self.settings, Attempts()
        body = {"size": 1, "aggs": summary()}
        found = await attempts.make(self._cluster.search(settings.index, body))
        none = (self._no_index(),) if found and not found.shards else ()
        detail = f"{settings.url}: {settings.index} can be read"
        return Health(detail=detail, problems=(*attempts.problems, *none))

    async def list_changes(
        self,
        stream: str,  # noqa: ARG002 - there is only one
        window: Window,
        token: Any,
        limit: int,
    ) -> Listing:
        """Return a page of the alerts stamped in the window, the oldest first."""
        clauses = within(TIME, window), notable(self.settings.min_severity)
        listing, found = await oldest(self._logs, token, limit, *clauses)
        if not found.shards:
            raise Misconfigured(self._no_index())
        groups = {group for hit in found.hits if (group := self._group_of(hit))}
        self._counting = Counting(self._aggregate, groups, self.settings.window)
        return listing

    def to_incident(self, record: Mapping[str, Any]) -> Incident | None:
        """Return the incident that an alert belongs to; ValueError where it is none."""
        return incident_of([dict(record)], self.settings.window)

    async def complete(self, incident: Incident, record: Mapping[str, Any]) -> Incident:
        """Return the incident with what the indexer says of all alerts of its group."""
        group = Group.of(detection_of(dict(record)), self.settings.window)
        tally = await self._counting.of(group)
        return self._linked(summed_up(incident, group, tally), group)

    async def incident(self, external_id: str) -> Incident | None:
        """Return the incident of a group with its latest alerts, None where there are none."""
        group, length = Group.parse(external_id), self.settings.window
        if group is None:
            return None
        body = {
            "size": _MOST_AGAIN,
            "track_total_hits": True,
            "query": members(group, length),
            "sort": [{TIME: "desc"}],
            "aggs": summary(),
        }
        found = await self._cluster.search(self.settings.index, body)
        hits = [hit for hit in found.hits if self._group_of(hit)]
        if not hits:
            return None
        tally = Tally.read({"doc_count": found.total, **found.aggregations})
        incident = replace(incident_of(hits, length), external_id=external_id)
        return self._linked(summed_up(incident, group, tally), group)

    async def events(
        self, entity: Entity, window: Window, limit: int
    ) -> AsyncGenerator[SiemEvent, None]:
        """Yield the alerts of any severity that name an entity, the latest first."""
        if (clause := naming(entity, ENTITY_FIELDS)) is None:
            return
        hits = latest(self._logs, clause, window, limit)
        async with aclosing(events_in(hits, partial(event_of, entity=entity), limit)) as events:
            async for event in events:
                yield event

    def _group_of(self, hit: dict[str, Any]) -> Group | None:
        with suppress(ValueError):
            return Group.of(detection_of(hit), self.settings.window)
        return None

    async def _aggregate(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        found = await self._cluster.search(self.settings.index, body)
        return found.aggregations

    def _linked(self, incident: Incident, group: Group) -> Incident:
        if (dashboard := self.settings.dashboard_url) is None:
            return incident
        return replace(incident, source_url=link_to(dashboard, group, self.settings.window))

    def _no_index(self) -> str:
        return f"no index is called {self.settings.index}, or none may be read"
