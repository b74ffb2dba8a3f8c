"""Channel `sentinel-incidents`: https://learn.microsoft.com/rest/api/securityinsights/incidents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any
from urllib.parse import quote
from uuid import NAMESPACE_URL, uuid5

from tocsin import (
    CaseChannel,
    CredentialsRefused,
    Health,
    IncidentDisposition,
    Misconfigured,
    Observable,
    Refused,
    Tools,
    TryLater,
)
from tocsin_connectors.microsoft.resources import READ_PERMISSIONS, find_missing_actions
from tocsin_connectors.soar.sentinel_incidents import comments
from tocsin_connectors.soar.sentinel_incidents.client import REQUIRED_ACTIONS, WorkspaceClient
from tocsin_connectors.soar.sentinel_incidents.settings import SentinelIncidentsSettings

_CLOSED = "Closed"
_KEPT_PROPERTIES = (
    "title",
    "description",
    "severity",
    "owner",
    "labels",
    "firstActivityTimeUtc",
    "lastActivityTimeUtc",
)
"""Properties that each change must repeat, because a PUT replaces the whole incident."""


class SentinelIncidents(CaseChannel[SentinelIncidentsSettings]):
    """Creates incidents whose GUIDs are derived from their subjects, to prevent duplicates."""

    def __init__(self, settings: SentinelIncidentsSettings, tools: Tools) -> None:
        """Store the settings and tools; perform no I/O."""
        super().__init__(settings, tools)
        self._azure = WorkspaceClient(settings, tools)
        self.api = self._azure.api

    @property
    def tenant_key(self) -> str:
        """Path of the workspace's incidents."""
        return self._azure.incidents

    async def check(self) -> Health:
        """Report missing permissions, and check that the workspace responds."""
        try:
            missing = list(find_missing_actions(await self._azure.roles(), REQUIRED_ACTIONS))
        except CredentialsRefused as refused:
            if refused.status != HTTPStatus.FORBIDDEN:
                raise
            missing = [READ_PERMISSIONS]
        if not missing:
            await self._azure.expect_incidents()
        return Health(
            detail=f"{self.settings.workspace} responds; the app can write incidents",
            problems=tuple(f"the app lacks the permission {action}" for action in missing),
        )

    async def find(self, key: str) -> str | None:
        """Return the GUID that is derived from the key; None if there is no such incident."""
        identifier = _derive_guid(key)
        return None if await self._azure.get(self._path(identifier)) is None else identifier

    async def create(
        self, key: str, body: dict[str, Any], observables: Sequence[Observable]
    ) -> tuple[str, bool]:
        """Create the incident with this key, or return the existing one without changes."""
        identifier = _derive_guid(key)
        path = self._path(identifier)
        try:
            made = await self._azure.put(path, body)
        except Refused as refused:
            if refused.is_missing:
                raise Misconfigured(f"the workspace does not exist: {refused}") from refused
            raise
        if not made and await self._azure.get(path) is None:
            raise TryLater("Azure reported a conflict for an incident that does not exist")
        if made:
            await self.add_observables(identifier, observables)
        return identifier, made

    async def is_open(self, identifier: str) -> bool | None:
        """Return whether the incident is not closed."""
        incident = await self._azure.get(self._path(identifier))
        return None if incident is None else _get_properties(incident).get("status") != _CLOSED

    async def add_observables(self, identifier: str, observables: Sequence[Observable]) -> int:
        """List new entities in a comment, because incidents do not accept entities."""
        notes = await self.list_notes(identifier) if observables else ()
        added = 0
        for lines in comments.split_listing(observables, notes):
            await self._comment(identifier, comments.build_listing(lines))
            added += len(lines)
        return added

    async def list_notes(self, identifier: str) -> Sequence[str]:
        """Return the incident's comments."""
        found = await self._azure.members(f"{self._path(identifier)}/comments")
        return [str(_get_properties(comment).get("message")) for comment in found]

    async def add_note(self, identifier: str, title: str, text: str) -> None:
        """Add a comment."""
        await self._comment(identifier, comments.build_note(title, text))

    async def close(self, identifier: str, reason: str) -> None:
        """Close the incident with the classification in `closed_classification`."""
        await self.close_as(identifier, reason, None)

    async def close_as(
        self, identifier: str, reason: str, disposition: IncidentDisposition | None
    ) -> None:
        """Close the incident with the classification for a disposition.

        The other properties do not change.
        """
        closed_as = self.settings.closed_classification
        if disposition is not None:
            closed_as = self.settings.close_as.get(disposition, closed_as)
        classification, _, why = closed_as.partition("-")
        change = {"status": _CLOSED, "classification": classification}
        change |= {"classificationReason": why} if why else {}
        path = self._path(identifier)
        for _ in range(2):  # retry after a concurrent change
            incident = await self._azure.get(path) or {}
            properties = _get_properties(incident)
            if properties.get("status", _CLOSED) == _CLOSED:
                return
            kept = {name: properties[name] for name in _KEPT_PROPERTIES if name in properties}
            body = {"properties": {**kept, **change, "classificationComment": reason}}
            if await self._azure.put(path, body, incident.get("etag")):
                return
        raise TryLater("someone else is changing the incident at the same time")

    def link(self, identifier: str) -> str:
        """Return the URL of the incident in the Azure portal."""
        portal = self.settings.cloud_endpoints.azure_portal
        asset = "#asset/Microsoft_Azure_Security_Insights/Incident"
        return f"{portal}/{asset}{self._path(identifier)}"

    async def _comment(self, identifier: str, text: str) -> None:
        """Add a comment, unless it already exists."""
        path = f"{self._path(identifier)}/comments/{comments.derive_comment_name(identifier, text)}"
        made = await self._azure.put(path, {"properties": {"message": text}})
        if not made and await self._azure.get(path) is None:
            raise TryLater("Azure reported a conflict for a comment that does not exist")

    def _path(self, identifier: str) -> str:
        return f"{self._azure.incidents}/{quote(identifier, safe='')}"


def _derive_guid(key: str) -> str:
    return str(uuid5(NAMESPACE_URL, f"tocsin:{key}"))


def _get_properties(resource: Any) -> Mapping[str, Any]:
    match resource:
        case {"properties": dict(properties)}:
            return properties
    return {}
