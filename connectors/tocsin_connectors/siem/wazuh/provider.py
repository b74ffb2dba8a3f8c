"""Wazuh provider."""

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
from tocsin_connectors.siem.indices.client import (
    IndexClient,
    LogIndices,
    build_events,
    build_time_query,
    iterate_latest,
    list_oldest,
)
from tocsin_connectors.siem.indices.documents import build_entity_query
from tocsin_connectors.siem.indices.settings import ClusterSettings
from tocsin_connectors.siem.permissions import PermissionAttempts
from tocsin_connectors.siem.retirements import load_retirements
from tocsin_connectors.siem.wazuh.contract import CONTRACTS
from tocsin_connectors.siem.wazuh.events import build_event
from tocsin_connectors.siem.wazuh.groups import (
    AlertGroup,
    AlertTally,
    apply_tally,
    build_dashboard_url,
    build_incident,
)
from tocsin_connectors.siem.wazuh.mapping import TIME_FIELD, parse_detection
from tocsin_connectors.siem.wazuh.queries import (
    ENTITY_FIELDS,
    TallyCache,
    build_group_query,
    build_severity_query,
    build_summary_aggregations,
)

_MOST_AGAIN = 200
"""Maximum number of alerts, latest first, that are read for one incident."""


class WazuhSettings(ClusterSettings, WindowedProvider.Settings):
    """Settings of a Wazuh provider."""

    index: str = Field(
        default="wazuh-alerts-*,wazuh-findings-v5-*",
        pattern=r"^[^\s/?#\\\"<>|]+$",
        description="The indices that Tocsin reads, as a comma-separated list. Names can contain "
        "the wildcard `*`.",
    )
    min_severity: Annotated[Severity, any_case(Severity)] = Field(
        default=Severity.MEDIUM,
        description="The lowest severity that Tocsin reads. In Wazuh 4.x, Medium starts at "
        "level 7.",
    )
    window: Duration = Field(
        default=timedelta(hours=1),
        ge=timedelta(minutes=1),
        le=timedelta(days=1),
        description="The length of the time intervals by which Tocsin groups alerts. "
        "Alerts with the same rule and agent in the same interval form one incident.",
    )
    overlap: Duration = Field(
        default=timedelta(minutes=30),
        le=timedelta(days=7),
        description="How much each read overlaps the previous one in time, to find "
        "alerts that reach the indexer late.",
    )
    refresh_after: tuple[Duration, ...] = Field(
        default=(timedelta(hours=1), timedelta(hours=6)),
        max_length=10,
        description="The delays after which Tocsin counts a new incident's alerts again, to "
        "include late alerts.",
    )
    dashboard_url: ServerUrl | None = Field(
        default=None, description="The Wazuh dashboard URL, for links."
    )


class Wazuh(WindowedProvider[WazuhSettings]):
    """Reads Wazuh 4.x alerts and Wazuh 5.x findings from the Wazuh indexer."""

    page_size = 200
    record_contracts = CONTRACTS
    retirements = load_retirements("wazuh")
    event_kinds = frozenset(ENTITY_FIELDS)
    permissions = ("index permission `read` on wazuh-alerts-* and wazuh-findings-v5-*",)

    def __init__(self, settings: Any, tools: Tools) -> None:
        """Store the dependencies. Performs no I/O."""
        super().__init__(settings, tools)
        self._cluster = IndexClient(tools, settings, settings.authorization)
        self._logs = LogIndices(self._cluster, settings.index, TIME_FIELD)
        self._counting = TallyCache(self._aggregate, (), settings.window)

    async def check(self) -> Health:
        """Check that alerts can be read, and return what is missing."""
        settings, attempts = self.settings, PermissionAttempts()
        body = {"size": 1, "aggs": build_summary_aggregations()}
        found = await attempts.make(self._cluster.search(settings.index, body))
        none = (self._no_index(),) if found and not found.shards else ()
        detail = f"Tocsin can read {settings.index} from {settings.url}"
        return Health(detail=detail, problems=(*attempts.problems, *none))

    async def list_changes(
        self,
        stream: str,  # noqa: ARG002 - there is only one
        window: Window,
        token: Any,
        limit: int,
    ) -> Listing:
        """Return a page of the alerts with a timestamp in the window, oldest first."""
        clauses = (
            build_time_query(TIME_FIELD, window),
            build_severity_query(self.settings.min_severity),
        )
        listing, found = await list_oldest(self._logs, token, limit, *clauses)
        if not found.shards:
            raise Misconfigured(self._no_index())
        groups = {group for hit in found.hits if (group := self._find_group(hit))}
        self._counting = TallyCache(self._aggregate, groups, self.settings.window)
        return listing

    def to_incident(self, record: Mapping[str, Any]) -> Incident | None:
        """Return the incident of an alert. Raises ValueError if it is invalid."""
        return build_incident([dict(record)], self.settings.window)

    async def complete(self, incident: Incident, record: Mapping[str, Any]) -> Incident:
        """Add the tally of all alerts of the group."""
        group = AlertGroup.of(parse_detection(dict(record)), self.settings.window)
        tally = await self._counting.of(group)
        return self._add_link(apply_tally(incident, group, tally), group)

    async def incident(self, external_id: str) -> Incident | None:
        """Return the incident of a group with its latest alerts, or None if there are none."""
        group, length = AlertGroup.parse(external_id), self.settings.window
        if group is None:
            return None
        body = {
            "size": _MOST_AGAIN,
            "track_total_hits": True,
            "query": build_group_query(group, length),
            "sort": [{TIME_FIELD: "desc"}],
            "aggs": build_summary_aggregations(),
        }
        found = await self._cluster.search(self.settings.index, body)
        hits = [hit for hit in found.hits if self._find_group(hit)]
        if not hits:
            return None
        tally = AlertTally.read({"doc_count": found.total, **found.aggregations})
        incident = replace(build_incident(hits, length), external_id=external_id)
        return self._add_link(apply_tally(incident, group, tally), group)

    async def events(
        self, entity: Entity, window: Window, limit: int
    ) -> AsyncGenerator[SiemEvent, None]:
        """Yield the alerts of any severity that name an entity, latest first."""
        if (clause := build_entity_query(entity, ENTITY_FIELDS)) is None:
            return
        hits = iterate_latest(self._logs, clause, window, limit)
        async with aclosing(
            build_events(hits, partial(build_event, entity=entity), limit)
        ) as events:
            async for event in events:
                yield event

    def _find_group(self, hit: dict[str, Any]) -> AlertGroup | None:
        with suppress(ValueError):
            return AlertGroup.of(parse_detection(hit), self.settings.window)
        return None

    async def _aggregate(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        found = await self._cluster.search(self.settings.index, body)
        return found.aggregations

    def _add_link(self, incident: Incident, group: AlertGroup) -> Incident:
        if (dashboard := self.settings.dashboard_url) is None:
            return incident
        return replace(
            incident, source_url=build_dashboard_url(dashboard, group, self.settings.window)
        )

    def _no_index(self) -> str:
        return f"no index matches {self.settings.index}, or the user cannot read any"
