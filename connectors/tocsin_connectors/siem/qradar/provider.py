"""QRadar provider."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime
from typing import Any

from tocsin import (
    Broken,
    Entity,
    EntityKind,
    Health,
    Incident,
    IncidentStatus,
    Listing,
    Page,
    SiemEvent,
    Tools,
    Window,
    WindowedProvider,
)
from tocsin_connectors.siem.qradar.client import (
    OFFENSES,
    OffenseClient,
    OffenseCursor,
    QRadarClient,
)
from tocsin_connectors.siem.qradar.contract import CONTRACTS
from tocsin_connectors.siem.qradar.lookups import OffenseLookups
from tocsin_connectors.siem.qradar.mapping import build_incident
from tocsin_connectors.siem.qradar.new_offenses import NEW, NewOffenseReader
from tocsin_connectors.siem.qradar.permissions import PERMISSIONS, QRadarPermissionCheck
from tocsin_connectors.siem.qradar.search import ArielSearcher
from tocsin_connectors.siem.qradar.settings import QRadarSettings
from tocsin_connectors.siem.qradar.write_back import QRadarWriteBack
from tocsin_connectors.siem.records import children, number
from tocsin_connectors.siem.retirements import load_retirements

CHANGED = "changed"
CLOSED = "closed"


class QRadar(WindowedProvider[QRadarSettings]):
    """Reads the offenses of one QRadar console. Each offense becomes an incident."""

    permissions = PERMISSIONS
    record_contracts = CONTRACTS
    retirements = load_retirements("qradar")
    event_kinds = frozenset(EntityKind) - {EntityKind.MAILBOX, EntityKind.CLOUD_RESOURCE}
    page_size = 50

    def __init__(self, settings: QRadarSettings, tools: Tools) -> None:
        """Store the dependencies. Performs no I/O."""
        super().__init__(settings, tools)
        console = QRadarClient(tools, settings)
        self._offenses = OffenseClient(console, tools)
        self._lookups = OffenseLookups(console, tools)
        self._new_offenses = NewOffenseReader(self, self._offenses, self._lookups)
        self._searcher = ArielSearcher(console, tools.clock, settings)
        self._write_back = QRadarWriteBack(console, self._offenses, settings.closing_reason_id)
        self._permission_check = QRadarPermissionCheck(
            console, self._offenses, self._searcher, settings
        )

    def streams(self) -> Sequence[str]:
        """Return the streams: new, changed and closed offenses."""
        return (NEW, CHANGED, CLOSED)

    async def check(self) -> Health:
        """Return the permissions that the authorized service lacks."""
        problems = await self._permission_check.problems(self.tools.clock.now())
        return Health(detail=self._permission_check.detail, problems=tuple(problems))

    async def read(
        self, stream: str, position: Mapping[str, Any] | None, until: datetime
    ) -> AsyncGenerator[Page, None]:
        """Yield new offenses by ID, and changes by time, up to `until`."""
        if stream == NEW:
            reading = self._new_offenses.read(position, until)
        else:
            reading = super().read(stream, position, until)
        async with aclosing(reading) as pages:
            async for page in pages:
                yield page

    async def list_changes(self, stream: str, window: Window, token: Any, limit: int) -> Listing:
        """Return a page of the offenses that changed or were closed in the window.

        Backfills list new offenses by creation or start time.
        """
        cursor = OffenseCursor() if token is None else OffenseCursor.decode(token)
        listed = {
            NEW: self._offenses.created,
            CHANGED: self._offenses.changed,
            CLOSED: self._offenses.closed,
        }
        found = await listed[stream](window, cursor, limit)
        self._lookups.expect(found.part.records)
        return Listing(
            records=found.part.records,
            next_token=found.following and found.following.encode(),
            server_time=found.part.server_time,
        )

    def to_incident(self, record: Mapping[str, Any]) -> Incident | None:
        """Return the incident of an offense, or None if the settings exclude it.

        Raises ValueError if the offense is invalid.
        """
        incident = build_incident(dict(record), self._lookups, self.settings.url)
        return incident if self._is_wanted(dict(record)) else None

    def record_version(self, record: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the offense, which differs each time while addresses are missing."""
        if self._lookups.lacks_addresses(dict(record)):
            return {**record, "lacks_addresses_at": self.tools.clock.now().isoformat()}
        return record

    async def complete(self, incident: Incident, record: Mapping[str, Any]) -> Incident:
        """Add the names of the IDs in an offense, as far as they are known."""
        try:
            await self._lookups.learn(dict(record))
        except Broken as error:
            message = "offense stored without some names"
            self.tools.log.warning(message, id=incident.external_id, reason=str(error))
        return build_incident(dict(record), self._lookups, self.settings.url)

    async def incident(self, external_id: str) -> Incident | None:
        """Return the current offense, or None if it does not exist.

        Raises `Broken` also if its names are missing: it is read again for late names.
        """
        record = await self._offenses.one(external_id)
        if record is None:
            return None
        await self._lookups.learn(record)
        try:
            return build_incident(record, self._lookups, self.settings.url)
        except ValueError as error:
            raise Broken(f"GET {OFFENSES} did not return a valid offense: {error}") from None

    def events(self, entity: Entity, window: Window, limit: int) -> AsyncGenerator[SiemEvent, None]:
        """Yield the latest events in Ariel that name an entity."""
        return self._searcher.events(entity, window, limit)

    async def comment(self, external_id: str, text: str, key: str) -> None:
        """Write a comment to an offense as a note."""
        await self._write_back.comment(external_id, text, key)

    async def set_status(self, external_id: str, status: IncidentStatus) -> None:
        """Set the status of an offense."""
        await self._write_back.set_status(external_id, status)

    def _is_wanted(self, record: dict[str, Any]) -> bool:
        """Return whether an offense is in the configured domains and rules.

        An offense in several domains has no domain, and is read.
        """
        domains, rules = self.settings.domains, self.settings.rules
        domain = number(record, "domain_id")
        contributed = {number(child, "id") for child in children(record, "rules")}
        is_here = not domains or domain is None or domain in domains
        return is_here and (not rules or not contributed.isdisjoint(rules))
