"""CrowdStrike provider."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import replace
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
    WindowedProvider,
)
from tocsin_connectors.responses import build_from_answer
from tocsin_connectors.siem.crowdstrike.client import BY_ID, FalconClient, FalconRecord
from tocsin_connectors.siem.crowdstrike.contract import CONTRACTS
from tocsin_connectors.siem.crowdstrike.mapping import STATUS_WORDS, STATUSES, build_incident
from tocsin_connectors.siem.crowdstrike.pagination import AlertCursor
from tocsin_connectors.siem.crowdstrike.permissions import (
    READ,
    SEARCH,
    WRITE,
    find_permission_problems,
)
from tocsin_connectors.siem.crowdstrike.search import EVENT_FIELDS, FalconSearcher
from tocsin_connectors.siem.crowdstrike.settings import FALCON_CLOUDS, CrowdStrikeSettings
from tocsin_connectors.siem.idempotency_marker import add_marker, has_marker, read_comments
from tocsin_connectors.siem.records import children, text
from tocsin_connectors.siem.retirements import load_retirements


class CrowdStrike(WindowedProvider[CrowdStrikeSettings]):
    """Reads the alerts of one CrowdStrike customer. Each alert becomes an incident."""

    permissions = (
        READ,
        f"{SEARCH} (unless event_repository is empty)",
        f"{WRITE} (if write_back or close_from_tickets is on)",
    )
    record_contracts = CONTRACTS
    retirements = load_retirements("crowdstrike")
    event_kinds = frozenset(EVENT_FIELDS)
    page_size = 200

    def __init__(self, settings: CrowdStrikeSettings, tools: Tools) -> None:
        """Store the dependencies. Performs no I/O."""
        super().__init__(settings, tools)
        self._client = FalconClient(settings, tools)
        self._searcher = FalconSearcher(self._client.api, tools.clock, settings.event_repository)
        self._console = FALCON_CLOUDS[settings.cloud].console

    async def check(self) -> Health:
        """Return the scopes that the API client lacks."""
        searcher = self._searcher if self.settings.event_repository else None
        lacking = await find_permission_problems(
            self._client, searcher, self.tools.clock.now(), writes=self.settings.writes
        )
        return Health(
            detail=f"Tocsin can read alerts from {self.settings.url}", problems=tuple(lacking)
        )

    async def list_changes(
        self,
        stream: str,  # noqa: ARG002 - there is one
        window: Window,
        token: Any,
        limit: int,
    ) -> Listing:
        """Return a page of the alerts updated in the window, oldest first."""
        cursor = AlertCursor.first(window) if token is None else AlertCursor.decode(token)
        found = await self._client.alerts(cursor, window.end, limit)
        following = cursor.following(found)
        return Listing(
            records=found.records,
            next_token=following and following.encode(),
            server_time=found.server_time,
        )

    def to_incident(self, record: Mapping[str, Any]) -> Incident | None:
        """Return the incident of an alert, or None for one that the settings leave out.

        A hidden alert changes the incident that was stored before it was hidden, and makes no new
        one: hiding (`show_in_ui`) is an action on an alert, which keeps its status and can be shown
        again. Raises ValueError if the alert is invalid.
        https://developer.crowdstrike.com/api-reference/collections/alerts/
        """
        incident = build_incident(record, self._console)
        if self._is_excluded(dict(record)):
            return None
        is_hidden = record.get("show_in_ui") is False
        return replace(incident, only_if_stored=is_hidden and not self.settings.hidden_alerts)

    def _is_excluded(self, alert: FalconRecord) -> bool:
        """Return whether an alert is of an excluded product or type."""
        products, types = self.settings.excluded_products, self.settings.excluded_types
        return text(alert, "product") in products or text(alert, "type") in types

    async def incident(self, external_id: str) -> Incident | None:
        """Return the current alert, or None if it does not exist."""
        record = await self._client.alert(external_id)
        build = partial(build_incident, console=self._console)
        return build_from_answer(record, build, f"POST {BY_ID}")

    def events(self, entity: Entity, window: Window, limit: int) -> AsyncGenerator[SiemEvent, None]:
        """Yield the latest events in Next-Gen SIEM that name an entity."""
        return self._searcher.events(entity, window, limit)

    async def comment(self, external_id: str, text: str, key: str) -> None:
        """Write a comment to an alert, unless a comment with this key exists.

        Comments have no keys, so each ends with a marker of its key.
        """
        alert = await self._existing(external_id)
        if not has_marker(key, read_comments(children(alert, "comments"), "value")):
            await self._client.change([external_id], {"append_comment": add_marker(text, key)})

    async def set_status(self, external_id: str, status: IncidentStatus) -> None:
        """Set the status of an alert, unless it has that status already."""
        alert = await self._existing(external_id)
        if STATUSES.get((text(alert, "status") or "").casefold()) is not status:
            await self._client.change([external_id], {"update_status": STATUS_WORDS[status]})

    async def _existing(self, identifier: str) -> FalconRecord:
        """Return the current alert. Raises `Refused` if it does not exist."""
        alert = await self._client.alert(identifier)
        if alert is None:
            raise Refused(f"the alert {identifier} does not exist")
        return alert
