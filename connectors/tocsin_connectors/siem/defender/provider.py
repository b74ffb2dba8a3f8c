"""Microsoft Defender XDR provider."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, ClassVar, Literal

from pydantic import Field

from tocsin import (
    ApiResponse,
    Broken,
    Entity,
    Health,
    Incident,
    IncidentStatus,
    Listing,
    ServerUrl,
    SiemEvent,
    Tools,
    Window,
    WindowedProvider,
)
from tocsin_connectors.microsoft.clouds import MICROSOFT_CLOUDS
from tocsin_connectors.microsoft.entra import EntraClient, EntraSettings
from tocsin_connectors.responses import build_from_answer
from tocsin_connectors.siem.defender import write_back
from tocsin_connectors.siem.defender.client import ALERTS, INCIDENTS, DefenderClient
from tocsin_connectors.siem.defender.contract import ALERT_STREAM, CONTRACTS, INCIDENT_STREAM
from tocsin_connectors.siem.defender.mapping import (
    ALERT_PREFIX,
    build_alert_incident,
    build_incident,
    is_alert,
)
from tocsin_connectors.siem.defender.pagination import DefenderCursor, DefenderRecord, is_sorted
from tocsin_connectors.siem.microsoft.search import LogTableSearcher, list_entity_kinds
from tocsin_connectors.siem.microsoft.tables import HUNTING_TABLES
from tocsin_connectors.siem.permissions import PermissionProbe, find_refused
from tocsin_connectors.siem.records import parse_utc
from tocsin_connectors.siem.retirements import load_retirements

_TIME = "Timestamp"
"""Time column of every advanced hunting table."""
_READ = "SecurityIncident.Read.All"
_HUNT = "ThreatHunting.Read.All"
_WRITE = "SecurityIncident.ReadWrite.All"
_READ_ALERTS, _WRITE_ALERTS = "SecurityAlert.Read.All", "SecurityAlert.ReadWrite.All"
_RECENT = timedelta(minutes=5)
_MONTH = timedelta(days=30)
_PROBED, _SORTABLE = 10, 3
"""Incidents that show whether a list is sorted, and the least number of them."""


class DefenderSettings(EntraSettings, WindowedProvider.Settings):
    """Settings of a Defender provider."""

    addresses: ClassVar[Mapping[str, str]] = {**EntraSettings.addresses, "url": "graph"}

    url: ServerUrl = Field(
        default=MICROSOFT_CLOUDS["public"].graph,
        description="The Microsoft Graph endpoint. Default: the cloud's endpoint.",
    )
    alerts: Literal["none", "without-incident", "all"] = Field(
        default="none",
        description="Which alerts become separate incidents: none, without-incident (alerts "
        "that do not belong to an incident) or all.",
    )


class Defender(WindowedProvider[DefenderSettings]):
    """Reads one tenant's incidents, with their alerts and entities."""

    permissions = (
        _READ,
        _HUNT,
        f"{_WRITE} (instead of {_READ}, if write_back or close_from_tickets is on)",
        f"{_READ_ALERTS} (if alerts become incidents)",
        (
            f"{_WRITE_ALERTS} (instead of {_READ_ALERTS}, if alerts become incidents and "
            "write_back or close_from_tickets is on)"
        ),
    )
    record_contracts = CONTRACTS
    retirements = load_retirements("defender")
    event_kinds = list_entity_kinds(HUNTING_TABLES)
    page_size = 50

    def __init__(self, settings: DefenderSettings, tools: Tools) -> None:
        """Store the dependencies. Performs no I/O."""
        super().__init__(settings, tools)
        self._client = DefenderClient(settings, EntraClient(settings, tools))
        self._searcher = LogTableSearcher(HUNTING_TABLES, _TIME, self._client.hunt)
        self._heavy: Window | None = None
        """Last interval that could not be listed with alerts."""

    def streams(self) -> Sequence[str]:
        """Return the streams: incidents, and alerts if wanted."""
        if self.settings.alerts == "none":
            return (INCIDENT_STREAM,)
        return (ALERT_STREAM, INCIDENT_STREAM)

    async def check(self) -> Health:
        """Return the permissions that the app lacks.

        Write access cannot be tested without changes, so it is read from the token.
        """
        now, writes = self.tools.clock.now(), self.settings.writes
        recent = Window(now - _RECENT, now)
        probes: dict[str, PermissionProbe] = {
            _WRITE if writes else _READ: partial(
                self._client.incidents, DefenderCursor.first(recent), recent, 1
            ),
            _HUNT: partial(self._client.hunt, "print Tocsin = 1", recent),
        }
        needed = {_WRITE} if writes else set()
        if self.settings.alerts != "none":
            name = _WRITE_ALERTS if writes else _READ_ALERTS
            first = DefenderCursor.first(recent)
            probes[name] = partial(self._client.alerts, first, recent, 1)
            needed |= {_WRITE_ALERTS} if writes else set()
        missing = await find_refused(probes)
        granted = self._client.granted()
        missing += sorted(needed - granted - set(missing)) if granted else []
        detail = f"Tocsin can read incidents from {self.settings.tenant_id}; advanced hunting works"
        if not missing:
            detail = f"{detail}; {await self._examine_order(now)}"
        return Health(
            detail=detail,
            problems=tuple(f"the app lacks the permission {name}" for name in missing),
        )

    async def _examine_order(self, now: datetime) -> str:
        """Return whether Graph sorts incidents by update time, which it does not document."""
        month = Window(now - _MONTH, now)
        records, _, _ = await self._client.incidents(
            DefenderCursor.first(month), month, _PROBED, alerts=False
        )
        if len(records) < _SORTABLE:
            return (
                "too few incidents this month to determine whether Graph sorts them by update time"
            )
        if is_sorted(records):
            return f"Graph sorted {len(records)} incidents by update time"
        return "Graph does not sort incidents by update time, so Tocsin reads smaller time windows"

    async def list_changes(self, stream: str, window: Window, token: Any, limit: int) -> Listing:
        """Return a page of the incidents or alerts updated in the window, oldest first.

        For incidents with very many alerts, Graph always answers 500. An interval that failed once
        is then listed without alerts, which are requested one incident at a time.
        """
        cursor = DefenderCursor.first(window) if token is None else DefenderCursor.decode(token)
        if stream == ALERT_STREAM:
            records, more, answer = await self._client.alerts(cursor, window, limit)
        else:
            records, more, answer = await self._list_incidents(cursor, window, limit)
        following = cursor.following(records, more=more)
        return Listing(
            records=records,
            next_token=following and following.encode(),
            server_time=answer.server_time,
        )

    async def _list_incidents(
        self, cursor: DefenderCursor, window: Window, limit: int
    ) -> tuple[Sequence[DefenderRecord], bool, ApiResponse]:
        since = parse_utc(cursor.since)
        with_alerts = self._heavy is None or since not in self._heavy
        try:
            return await self._client.incidents(cursor, window, limit, alerts=with_alerts)
        except Broken:
            self._heavy = Window(since, window.end)
            raise

    def to_incident(self, record: Mapping[str, Any]) -> Incident | None:
        """Return the incident of a record, or None for an alert that is in an incident.

        That incident is read, too; with `alerts = "all"`, the alert is another one. Raises
        ValueError if the record is invalid.
        """
        if not is_alert(record):
            return build_incident(record)
        found = build_alert_incident(record, is_merged=self._is_merged)
        return None if found.merged_into else found

    @property
    def _is_merged(self) -> bool:
        return self.settings.alerts != "all"

    async def complete(self, incident: Incident, record: Mapping[str, Any]) -> Incident:
        """Add the alerts, if the incident was listed without them."""
        if "alerts" in record or is_alert(record):
            return incident
        return await self.incident(incident.external_id) or incident

    async def incident(self, external_id: str) -> Incident | None:
        """Return the current incident with its alerts, or None if it does not exist.

        An alert that was put into an incident later is merged into that.
        """
        if external_id.startswith(ALERT_PREFIX):
            alert = await self._client.alert(external_id.removeprefix(ALERT_PREFIX))
            build = partial(build_alert_incident, is_merged=self._is_merged)
            return build_from_answer(alert, build, f"GET {ALERTS}/{external_id}")
        record = await self._client.incident(external_id)
        return build_from_answer(record, build_incident, f"GET {INCIDENTS}/{external_id}")

    def events(self, entity: Entity, window: Window, limit: int) -> AsyncGenerator[SiemEvent, None]:
        """Yield events about an entity from advanced hunting, latest first."""
        return self._searcher.events(entity, window, limit)

    async def comment(self, external_id: str, text: str, key: str) -> None:
        """Write a comment to an alert or incident, or to the one that it was merged into."""
        await write_back.write_comment(self._client, external_id, text, key)

    async def set_status(self, external_id: str, status: IncidentStatus) -> None:
        """Set the status of an alert or incident, or of the one that it was merged into."""
        await write_back.write_status(self._client, external_id, status)
