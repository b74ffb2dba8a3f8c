"""Graylog provider."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from datetime import timedelta
from functools import partial
from typing import Any

from tocsin import (
    Entity,
    Health,
    Incident,
    Listing,
    SiemEvent,
    Tools,
    Window,
    WindowedProvider,
)
from tocsin_connectors.responses import build_from_answer
from tocsin_connectors.siem.graylog.client import (
    SEARCH_EVENTS,
    GraylogClient,
    format_time,
)
from tocsin_connectors.siem.graylog.contract import CONTRACTS
from tocsin_connectors.siem.graylog.mapping import build_incident
from tocsin_connectors.siem.graylog.pagination import EventCursor
from tocsin_connectors.siem.graylog.search import MESSAGE_FIELDS, search_messages
from tocsin_connectors.siem.graylog.settings import GraylogSettings
from tocsin_connectors.siem.permissions import PermissionProbe, find_refused
from tocsin_connectors.siem.records import text
from tocsin_connectors.siem.retirements import load_retirements

READ = 'read access to the "All events" stream'
SEARCH = "permission to search messages (the Reader role)"
_RECENT = timedelta(minutes=1)


class Graylog(WindowedProvider[GraylogSettings]):
    """Reads the alerts of one Graylog server or cluster. Each alert becomes an incident."""

    permissions = (READ, SEARCH)
    record_contracts = CONTRACTS
    retirements = load_retirements("graylog")
    event_kinds = frozenset(MESSAGE_FIELDS)
    page_size = 200

    def __init__(self, settings: GraylogSettings, tools: Tools) -> None:
        """Store the dependencies. Performs no I/O."""
        super().__init__(settings, tools)
        self._client = GraylogClient(settings, tools)
        self._console = settings.console_url or settings.url

    async def check(self) -> Health:
        """Return the permissions that the token's user lacks."""
        now = self.tools.clock.now()
        recent = Window(now - _RECENT, now)
        tried: dict[str, PermissionProbe] = {
            READ: self._client.check_stream,
            SEARCH: partial(self._client.messages, "*", recent, ("timestamp",), 0, 1),
        }
        lacking = await find_refused(tried)
        await self._client.events(format_time(recent.start), recent.end, 1, 1)
        problems = tuple(f"the token's user lacks {name}" for name in lacking)
        return Health(detail=f"Tocsin can read events from {self.settings.url}", problems=problems)

    async def list_changes(
        self,
        stream: str,  # noqa: ARG002 - there is one
        window: Window,
        token: Any,
        limit: int,
    ) -> Listing:
        """Return a page of the events made in the window, oldest first."""
        cursor = EventCursor.first(window) if token is None else EventCursor.decode(token)
        size = min(limit, cursor.size or limit)
        found = await self._client.events(cursor.since, window.end, cursor.page, size)
        following = cursor.following(found, size)
        return Listing(
            records=found.records,
            next_token=following and following.encode(),
            server_time=found.server_time,
        )

    def record_version(self, record: Mapping[str, Any]) -> Any:
        """Return the event without its definition, which may be renamed later."""
        return {name: value for name, value in record.items() if name != "event_definition"}

    def to_incident(self, record: Mapping[str, Any]) -> Incident | None:
        """Return the incident of an event, or None for one of an excluded type.

        Raises ValueError if the event is invalid.
        """
        incident = build_incident(record, self._console)
        excluded = text(dict(record), "event_definition_type") in self.settings.excluded_types
        return None if excluded else incident

    async def incident(self, external_id: str) -> Incident | None:
        """Return the event, or None if it does not exist."""
        record = await self._client.event(external_id)
        build = partial(build_incident, console=self._console)
        return build_from_answer(record, build, f"POST {SEARCH_EVENTS}")

    def events(self, entity: Entity, window: Window, limit: int) -> AsyncGenerator[SiemEvent, None]:
        """Yield the latest messages that name an entity."""
        return search_messages(self._client, entity, window, limit)
