"""Elastic Security provider."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any
from urllib.parse import quote

from tocsin import (
    Broken,
    Entity,
    Health,
    Incident,
    IncidentStatus,
    Listing,
    Refused,
    SiemEvent,
    Tools,
    Window,
    WindowedProvider,
)
from tocsin_connectors.siem.elastic import mapping, settings
from tocsin_connectors.siem.elastic.client import (
    CASES,
    CaseCursor,
    KibanaClient,
    list_changed_cases,
    list_new_cases,
)
from tocsin_connectors.siem.elastic.contract import CONTRACTS
from tocsin_connectors.siem.elastic.events import build_event
from tocsin_connectors.siem.elastic.mapping import ENTITY_FIELDS, build_change_query
from tocsin_connectors.siem.elastic.permissions import find_permission_problems
from tocsin_connectors.siem.elastic.write_back import ElasticWriteBack
from tocsin_connectors.siem.indices.client import (
    IndexClient,
    LogIndices,
    build_events,
    iterate_latest,
    list_oldest,
)
from tocsin_connectors.siem.indices.documents import build_entity_query
from tocsin_connectors.siem.records import children, text
from tocsin_connectors.siem.retirements import load_retirements

_STREAMS = {"alerts": ("alerts",), "cases": ("new-cases", "changed-cases")}
_LISTS = {"new-cases": list_new_cases, "changed-cases": list_changed_cases}
_NOT_FOUND = 404


class ElasticProviderSettings(settings.ElasticSettings):
    """Settings of an Elastic provider."""


class Elastic(WindowedProvider[ElasticProviderSettings]):
    """Reads the detection alerts and cases of one Kibana space."""

    record_contracts = CONTRACTS
    retirements = load_retirements("elastic")
    event_kinds = frozenset(ENTITY_FIELDS)
    permissions = (
        "read on .alerts-security.alerts-<space> and on the event indexes",
        "Kibana: Cases: Read",
        "Kibana: Cases: All (instead of Read, if write_back or close_from_tickets is on)",
        "Kibana: Security: Read (if write_back is on)",
        "Kibana: Notes: All (if write_back is on)",
        (
            "write and maintenance on .alerts-security.alerts-<space> "
            "(if write_back_status or close_from_tickets is set)"
        ),
    )

    def __init__(self, settings: Any, tools: Tools) -> None:
        """Store the dependencies. Performs no I/O."""
        super().__init__(settings, tools)
        self._cluster = IndexClient(tools, settings, settings.authorization)
        self._kibana = KibanaClient(tools, settings)
        self._writer = ElasticWriteBack(self._kibana)

    async def check(self) -> Health:
        """Return the owner of the key, and the missing permissions."""
        username, problems = await find_permission_problems(
            self._cluster, self._kibana, self.settings
        )
        read, space = " and ".join(self.settings.incidents), self.settings.space
        return Health(detail=f"{username} can read {read} in the space {space}", problems=problems)

    def streams(self) -> Sequence[str]:
        """Return the streams: alerts, new cases and changed cases, as configured."""
        wanted = self.settings.incidents
        return tuple(stream for kind, its in _STREAMS.items() if kind in wanted for stream in its)

    async def list_changes(self, stream: str, window: Window, token: Any, limit: int) -> Listing:
        """Return a page of the alerts or cases that changed in the window."""
        if stream in _LISTS:
            return await _LISTS[stream](self._kibana, window, CaseCursor.decode(token, limit))
        logs = LogIndices(self._cluster, self.settings.alerts_index, mapping.TIMESTAMP)
        listing, _ = await list_oldest(logs, token, limit, build_change_query(window))
        return listing

    def to_incident(self, record: Mapping[str, Any]) -> Incident:
        """Return the incident of an alert or a case. Raises ValueError without an ID or a time."""
        of = mapping.build_alert_incident if "_source" in record else mapping.build_case_incident
        return of(record, self.settings)

    async def complete(self, incident: Incident, record: Mapping[str, Any]) -> Incident:
        """Add the attached alerts to a case."""
        if not mapping.has_alerts(record):
            return incident
        case = incident.external_id.removeprefix(mapping.CASE_PREFIX)
        path = f"{CASES}/{quote(case, safe='')}/alerts"
        answer = await self._kibana.get(path)
        if not isinstance(answer.json, list):
            raise Broken(f"GET {path} did not return a list")
        attached = children({"": answer.json}, "")
        hits = await self._alerts([name for each in attached if (name := text(each, "id"))])
        return mapping.attach_alerts(incident, hits)

    async def incident(self, external_id: str) -> Incident | None:
        """Return the current alert or case, or None if it was deleted."""
        if not external_id.startswith(mapping.CASE_PREFIX):
            found = await self._alerts([external_id])
            return self._parse_incident(found[0]) if found else None
        name = quote(external_id.removeprefix(mapping.CASE_PREFIX), safe="")
        try:
            answer = await self._kibana.get(f"{CASES}/{name}")
        except Refused as refused:
            if refused.status == _NOT_FOUND:
                return None
            raise
        if not isinstance(answer.json, dict):
            raise Broken(f"GET {CASES}/{name} did not return a case")
        return await self.complete(self._parse_incident(answer.json), answer.json)

    async def events(
        self, entity: Entity, window: Window, limit: int
    ) -> AsyncGenerator[SiemEvent, None]:
        """Yield the latest events of a window that name the entity in a field of its kind."""
        if (clause := build_entity_query(entity, ENTITY_FIELDS)) is None:
            return
        logs = LogIndices(self._cluster, ",".join(self.settings.event_indexes), mapping.TIMESTAMP)
        hits = iterate_latest(logs, clause, window, limit)
        async with aclosing(
            build_events(hits, partial(build_event, entity=entity), limit)
        ) as events:
            async for event in events:
                yield event

    async def comment(self, external_id: str, text: str, key: str) -> None:
        """Write a comment to a case or a note to an alert, unless one with this key exists."""
        if external_id.startswith(mapping.CASE_PREFIX):
            name = external_id.removeprefix(mapping.CASE_PREFIX)
            await self._writer.comment_on_case(name, text, key)
            return
        if not await self._alerts([external_id]):
            raise Refused(f"the alert {external_id} does not exist")
        await self._writer.comment_on_alert(external_id, text, key)

    async def set_status(self, external_id: str, status: IncidentStatus) -> None:
        """Set the status of an alert or a case, unless it has that status already."""
        if external_id.startswith(mapping.CASE_PREFIX):
            name = external_id.removeprefix(mapping.CASE_PREFIX)
            await self._writer.set_status_of_case(name, status)
        else:
            await self._writer.set_status_of_alert(external_id, status)

    def _parse_incident(self, record: Mapping[str, Any]) -> Incident:
        try:
            return self.to_incident(record)
        except ValueError as error:
            raise Broken(f"the response is not a valid incident: {error}") from None

    async def _alerts(self, identifiers: Sequence[str]) -> Sequence[Mapping[str, Any]]:
        return await self._cluster.documents(self.settings.alerts_index, identifiers)
