"""OpenSearch Security Analytics provider."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

from pydantic import Field

from tocsin import (
    Entity,
    Health,
    Incident,
    IncidentStatus,
    Listing,
    Misconfigured,
    Refused,
    ServerUrl,
    SiemEvent,
    Tools,
    Window,
)
from tocsin_connectors.siem.indices.client import (
    IndexClient,
    LogIndices,
    build_events,
    iterate_latest,
)
from tocsin_connectors.siem.indices.documents import build_entity_query
from tocsin_connectors.siem.indices.settings import ClusterSettings
from tocsin_connectors.siem.lookback import (
    NEW,
    ChangesInterval,
    LookbackProvider,
    RefreshAges,
    SettleDelay,
)
from tocsin_connectors.siem.opensearch.client import (
    DETECTOR,
    AlertRows,
    Detector,
    SecurityAnalyticsClient,
    find_alert,
    join_indices,
    list_rows,
    probe_rows,
)
from tocsin_connectors.siem.opensearch.contract import CONTRACTS, FINDINGS
from tocsin_connectors.siem.opensearch.events import ENTITY_FIELDS, build_event
from tocsin_connectors.siem.opensearch.mapping import (
    STATUSES,
    attach_findings,
    build_incident,
    has_changed_in,
    list_finding_ids,
)
from tocsin_connectors.siem.opensearch.pagination import DetectorCursor
from tocsin_connectors.siem.permissions import PermissionAttempts
from tocsin_connectors.siem.records import text
from tocsin_connectors.siem.retirements import load_retirements

_NONE = "no Security Analytics detector is visible to the user"


class OpenSearchSettings(ClusterSettings, LookbackProvider.Settings):
    """Settings of an OpenSearch provider."""

    changes_every: ChangesInterval = timedelta(minutes=5)
    settle_delay: SettleDelay = timedelta(seconds=30)
    refresh_after: RefreshAges = (
        timedelta(minutes=2),
        timedelta(minutes=10),
        timedelta(minutes=30),
    )
    event_index: str | None = Field(
        default=None,
        pattern=r"^[^\s/?#\\\"<>|]+$",
        description="The indices in which Tocsin searches for events, as a comma-separated list. "
        "Names can contain the wildcard `*`. Default: the indices of all detectors.",
    )
    time_field: str = Field(
        default="@timestamp",
        min_length=1,
        description="The timestamp field of the documents in the indices that Tocsin searches.",
    )
    dashboard_url: ServerUrl | None = Field(
        default=None, description="The OpenSearch Dashboards URL, for links."
    )


class OpenSearch(LookbackProvider[OpenSearchSettings]):
    """Reads the alerts of OpenSearch Security Analytics."""

    record_contracts = CONTRACTS
    retirements = load_retirements("opensearch")
    event_kinds = frozenset(ENTITY_FIELDS)
    permissions = (
        "cluster:admin/opensearch/securityanalytics/detector/search",
        "cluster:admin/opensearch/securityanalytics/alerts/get",
        "cluster:admin/opensearch/securityanalytics/findings/get",
        "cluster:admin/opensearch/securityanalytics/alerts/ack (if write_back_status is set)",
        "index permission `read` on the indices that event searches use",
    )

    def __init__(self, settings: Any, tools: Tools) -> None:
        """Store the dependencies. Performs no I/O."""
        super().__init__(settings, tools)
        self._cluster = IndexClient(tools, settings, settings.authorization)
        self._analytics = SecurityAnalyticsClient(self._cluster)
        self._detectors: Mapping[str, Detector] = {}

    async def check(self) -> Health:
        """Check that alerts, findings and logs can be read, and return what is missing."""
        attempts = PermissionAttempts()
        detectors = await attempts.make(self._analytics.detectors()) or {}
        now = self.tools.clock.now()
        for name in list(detectors)[:1]:
            cursor = DetectorCursor.beginning([name], Window(now - timedelta(minutes=1), now))
            await attempts.make(self._analytics.alerts(cursor, 1))
            await attempts.make(self._analytics.try_findings(name))
            if self.settings.sets_status:
                await attempts.make(self._analytics.try_acknowledging(name))
        if indices := self._indices(detectors):
            await attempts.make(self._cluster.search(indices, {"size": 0}))
        none = () if detectors or attempts.problems else (_NONE,)
        count = "1 detector" if len(detectors) == 1 else f"{len(detectors)} detectors"
        detail = f"Tocsin can read {count} from {self.settings.url}"
        return Health(detail=detail, problems=(*attempts.problems, *none))

    async def list_changes(self, stream: str, window: Window, token: Any, limit: int) -> Listing:
        """Return a page of the alerts that began, or changed, in the window.

        The API lists by start time only: for changes, all of `changes_for` is listed.
        """
        if token is None or not self._detectors:
            self._detectors = await self._analytics.detectors()
        if not self._detectors:
            raise Misconfigured(_NONE)
        cursor, rows = await self._rows(stream, window, token, limit)
        detector = self._detectors.get(cursor.detectors[0])
        named = {"id": cursor.detectors[0], "name": detector and detector.name}
        following = cursor.following(len(rows.alerts), rows.total, limit)
        self.passed_over = cursor.passed_over and following is None
        return Listing(
            records=[
                {**alert, DETECTOR: named}
                for alert in rows.alerts
                if stream == NEW or has_changed_in(alert, window)
            ],
            next_token=following and following.encode(),
            server_time=rows.server_time,
        )

    async def _rows(
        self, stream: str, window: Window, token: Any, limit: int
    ) -> tuple[DetectorCursor, AlertRows]:
        """Return the next rows and the cursor that returned them."""
        first = DetectorCursor.beginning(list(self._detectors), self.listed_for(stream, window))
        cursor = first if token is None else DetectorCursor.decode(token)
        asked = partial(list_rows, self._analytics, size=limit)
        return await self.list_page(stream, cursor, asked, partial(probe_rows, self._analytics))

    def to_incident(self, record: Mapping[str, Any]) -> Incident | None:
        """Return the incident of an alert. Raises ValueError if it has no ID or no time."""
        detector = record[DETECTOR]
        incident = build_incident(dict(record), detector["id"], detector["name"])
        if (dashboard := self.settings.dashboard_url) is None:
            return incident
        page = f"{dashboard}/app/opensearch_security_analytics_dashboards#/alerts"
        return replace(incident, source_url=page)

    async def complete(self, incident: Incident, record: Mapping[str, Any]) -> Incident:
        """Add the findings of the alert to the incident."""
        names = list_finding_ids(dict(record))
        findings = await self._analytics.findings(record[DETECTOR]["id"], names)
        self.note_shapes(FINDINGS, findings)
        return attach_findings(incident, findings)

    async def incident(self, external_id: str) -> Incident | None:
        """Return the current alert, or None if it or its detector no longer exists."""
        if (record := await find_alert(self._analytics, external_id)) is None:
            return None
        found = self.to_incident(record)
        return found and await self.complete(found, record)

    settable = frozenset({IncidentStatus.ACTIVE})

    async def set_status(self, external_id: str, status: IncidentStatus) -> None:
        """Acknowledge an alert, unless it is acknowledged already.

        An acknowledged alert is Active, and no other status can be set. Raises `Refused` for other
        statuses, and if the alert does not exist or has ended.
        """
        if status is not IncidentStatus.ACTIVE:
            raise Refused(f"OpenSearch alerts can only be acknowledged; {status} is not supported")
        record = await find_alert(self._analytics, external_id)
        if record is None:
            raise Refused(f"the alert {external_id} does not exist")
        state = text(record, "state") or ""
        if STATUSES.get(state.casefold()) is IncidentStatus.ACTIVE:
            return
        if not await self._analytics.acknowledge(record[DETECTOR]["id"], record["id"]):
            raise Refused(f"only an ACTIVE alert can be acknowledged; this one is {state!r}")

    async def events(
        self, entity: Entity, window: Window, limit: int
    ) -> AsyncGenerator[SiemEvent, None]:
        """Yield log events about an entity, latest first."""
        if (clause := build_entity_query(entity, ENTITY_FIELDS)) is None:
            return
        field, indices = self.settings.time_field, self._indices(await self._analytics.detectors())
        if not indices:
            raise Misconfigured(f"{_NONE}, and `event_index` is not set")
        hits = iterate_latest(LogIndices(self._cluster, indices, field), clause, window, limit)
        build = partial(build_event, field=field, entity=entity)
        async with aclosing(build_events(hits, build, limit)) as events:
            async for event in events:
                yield event

    def _indices(self, detectors: Mapping[str, Detector]) -> str:
        return self.settings.event_index or join_indices(detectors.values())
