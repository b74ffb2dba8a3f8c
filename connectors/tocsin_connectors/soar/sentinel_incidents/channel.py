"""The channel `sentinel-incidents`: https://learn.microsoft.com/rest/api/securityinsights/incidents."""

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
"""What a change has to repeat: a PUT replaces the whole incident."""


class SentinelIncidents(CaseChannel):
    """Makes incidents, whose GUIDs follow from what they are about, so that none is made twice."""

    class Settings(SentinelIncidentsSettings):
        """What a destination that is a workspace of Sentinel can be told."""

    settings: Settings

    def __init__(self, settings: Settings, tools: Tools) -> None:
        """Keep what is needed; do no I/O."""
        super().__init__(settings, tools)
        self._azure = WorkspaceClient(settings, tools)
        self.api = self._azure.api

    @property
    def home(self) -> str:
        """The workspace."""
        return self._azure.incidents

    async def check(self) -> Health:
        """Return which actions the app may not do, and that the workspace answers."""
        try:
            missing = list(find_missing_actions(await self._azure.roles(), REQUIRED_ACTIONS))
        except CredentialsRefused as refused:
            if refused.status != HTTPStatus.FORBIDDEN:
                raise
            missing = [READ_PERMISSIONS]
        if not missing:
            await self._azure.expect_incidents()
        return Health(
            detail=f"{self.settings.workspace} answers, and the app may write its incidents",
            problems=tuple(f"the app may not do {it}" for it in missing),
        )

    async def find(self, key: str) -> str | None:
        """Return the GUID that follows from the key, where there is such an incident."""
        identifier = _derive_guid(key)
        return None if await self._azure.get(self._path(identifier)) is None else identifier

    async def make(
        self, key: str, body: dict[str, Any], observables: Sequence[Observable]
    ) -> tuple[str, bool]:
        """Make the incident of this key, or return the one that is there as it is."""
        identifier = _derive_guid(key)
        path = self._path(identifier)
        try:
            made = await self._azure.put(path, body)
        except Refused as refused:
            if refused.is_missing:
                raise Misconfigured(f"there is no such workspace: {refused}") from refused
            raise
        if not made and await self._azure.get(path) is None:
            raise TryLater("the incident is refused as a conflict, though there is none")
        if made:
            await self.add_observables(identifier, observables)
        return identifier, made

    async def is_open(self, identifier: str) -> bool | None:
        """Return whether the incident is not closed."""
        incident = await self._azure.get(self._path(identifier))
        return None if incident is None else _get_properties(incident).get("status") != _CLOSED

    async def add_observables(self, identifier: str, observables: Sequence[Observable]) -> int:
        """List in a comment the entities that no comment lists: an incident itself takes none."""
        told = await self.notes(identifier) if observables else ()
        added = 0
        for lines in comments.split_listing(observables, told):
            await self._comment(identifier, comments.build_listing(lines))
            added += len(lines)
        return added

    async def notes(self, identifier: str) -> Sequence[str]:
        """Return the incident's comments."""
        found = await self._azure.members(f"{self._path(identifier)}/comments")
        return [str(_get_properties(it).get("message")) for it in found]

    async def add_note(self, identifier: str, title: str, text: str) -> None:
        """Add a comment."""
        await self._comment(identifier, comments.build_note(title, text))

    async def close(self, identifier: str, reason: str) -> None:
        """Close the incident with the classification, and leave the rest as it is."""
        classification, _, why = self.settings.closed_classification.partition("-")
        change = {"status": _CLOSED, "classification": classification}
        change |= {"classificationReason": why} if why else {}
        path = self._path(identifier)
        for _ in range(2):  # since somebody may change it at the same moment
            incident = await self._azure.get(path) or {}
            told = _get_properties(incident)
            if told.get("status", _CLOSED) == _CLOSED:
                return
            kept = {name: told[name] for name in _KEPT_PROPERTIES if name in told}
            body = {"properties": {**kept, **change, "classificationComment": reason}}
            if await self._azure.put(path, body, incident.get("etag")):
                return
        raise TryLater("somebody else is changing the incident")

    def link(self, identifier: str) -> str:
        """Return the incident's page in the Azure portal."""
        portal = self.settings.cloud_endpoints.azure_portal
        asset = "#asset/Microsoft_Azure_Security_Insights/Incident"
        return f"{portal}/{asset}{self._path(identifier)}"

    async def _comment(self, identifier: str, text: str) -> None:
        """Add a comment; one that is there already is the same."""
        path = f"{self._path(identifier)}/comments/{comments.derive_comment_name(identifier, text)}"
        made = await self._azure.put(path, {"properties": {"message": text}})
        if not made and await self._azure.get(path) is None:
            raise TryLater("the comment is refused as a conflict, though there is none")

    def _path(self, identifier: str) -> str:
        return f"{self._azure.incidents}/{quote(identifier, safe='')}"


def _derive_guid(key: str) -> str:
    return str(uuid5(NAMESPACE_URL, f"tocsin:{key}"))


def _get_properties(resource: Any) -> Mapping[str, Any]:
    match resource:
        case {"properties": dict(properties)}:
            return properties
    return {}
