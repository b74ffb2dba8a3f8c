"""Datadog provider."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from datetime import timedelta
from functools import partial
from typing import Any

from tocsin import (
    Entity,
    Health,
    Incident,
    IncidentStatus,
    Listing,
    Refused,
    SiemEvent,
    Tools,
    Window,
)
from tocsin_connectors.responses import build_from_answer
from tocsin_connectors.siem.datadog.client import SIGNALS, DatadogClient
from tocsin_connectors.siem.datadog.contract import CONTRACTS
from tocsin_connectors.siem.datadog.mapping import (
    STATE_WORDS,
    build_incident,
    parse_state,
    parse_times,
    was_triaged,
)
from tocsin_connectors.siem.datadog.pagination import SignalCursor, list_page, probe_page
from tocsin_connectors.siem.datadog.search import LOG_FIELDS, search_logs
from tocsin_connectors.siem.datadog.settings import CONSOLES, DatadogSettings
from tocsin_connectors.siem.lookback import LookbackProvider
from tocsin_connectors.siem.permissions import PermissionProbe, change_absent, find_refused

READ = "security_monitoring_signals_read"
SEARCH = "logs_read_data"
WRITE = "security_monitoring_signals_write"
_MISSING_SIGNAL = "AAAAAAAAAAAAAAAAAAAAAAAA"
_RECENT = timedelta(minutes=1)


class Datadog(LookbackProvider[DatadogSettings]):
    """Reads one organization's security signals. Each signal becomes an incident."""

    permissions = (
        READ,
        f"{SEARCH} (unless log_search is off)",
        f"{WRITE} (if write_back_status or close_from_tickets is set)",
    )
    event_kinds = frozenset(LOG_FIELDS)
    record_contracts = CONTRACTS
    page_size = 200

    def __init__(self, settings: DatadogSettings, tools: Tools) -> None:
        """Store the dependencies. Performs no I/O."""
        super().__init__(settings, tools)
        self._client = DatadogClient(settings, tools)
        self._console = CONSOLES[settings.site]

    async def check(self) -> Health:
        """Return the permissions that the application key lacks."""
        now = self.tools.clock.now()
        recent = Window(now - _RECENT, now)
        await self._client.signals(recent, None, 1)
        tried: dict[str, PermissionProbe] = {}
        if self.settings.log_search:
            tried[SEARCH] = partial(self._client.logs, "*", recent, None, 1)
        if self.settings.sets_status:
            tried[WRITE] = self._change_nothing
        lacking = await find_refused(tried)
        problems = tuple(f"the application key lacks the permission {name}" for name in lacking)
        return Health(
            detail=f"Tocsin can read signals from {self.settings.site}", problems=problems
        )

    async def _change_nothing(self) -> None:
        """Set the state of a nonexistent signal, which only tests the permission."""
        await change_absent(self._client.set_state(_MISSING_SIGNAL, "open"))

    async def list_changes(self, stream: str, window: Window, token: Any, limit: int) -> Listing:
        """Return a page of the signals that were made or changed in the window.

        Signals are found by when they were made: for changes, all of `changes_for` is listed.
        """
        whole = self.listed_for(stream, window)
        cursor = SignalCursor.first(whole) if token is None else SignalCursor.decode(token)
        asked = partial(list_page, self._client, limit=limit)
        probed = partial(probe_page, self._client)
        cursor, found = await self.list_page(stream, cursor, asked, probed)
        following = cursor.following(found, whole)
        is_changed = partial(_changed_in, window=window)
        return self.build_listing(stream, cursor, found, following, is_changed)

    def to_incident(self, record: Mapping[str, Any]) -> Incident:
        """Return the incident of a signal. Raises ValueError if it is invalid."""
        return build_incident(record, self._console)

    async def incident(self, external_id: str) -> Incident | None:
        """Return the current signal, or None if it does not exist."""
        record = await self._client.signal(external_id)
        return build_from_answer(record, self.to_incident, f"GET {SIGNALS}")

    async def events(
        self, entity: Entity, window: Window, limit: int
    ) -> AsyncGenerator[SiemEvent, None]:
        """Yield the latest logs that name an entity; none if `log_search` is off."""
        if not self.settings.log_search:
            return
        async with aclosing(search_logs(self._client, entity, window, limit)) as events:
            async for event in events:
                yield event

    async def set_status(self, external_id: str, status: IncidentStatus) -> None:
        """Set the triage state of a signal, unless it has that state already."""
        record = await self._client.signal(external_id)
        if record is None:
            raise Refused(f"the signal {external_id} does not exist")
        if parse_state(record)[0] is not status:
            await self._client.set_state(external_id, STATE_WORDS[status])


def _changed_in(record: dict[str, Any], window: Window) -> bool:
    """Return whether a signal changed in a window after it was made, or may have."""
    with suppress(ValueError):
        made_at, changed_at = parse_times(record)
        return was_triaged(record) or (changed_at > made_at and changed_at in window)
    return False
