"""Channel `xsoar`: https://docs-cortex.paloaltonetworks.com/r/Cortex-XSOAR-8-API.

The XSOAR Mirroring integration in github.com/demisto/content shows the undocumented parts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Annotated, Any
from urllib.parse import quote

from pydantic import Field, SecretStr

from tocsin import CaseChannel, Health, IncidentDisposition, Json, Observable, Refused, TryLater
from tocsin_connectors.responses import expect_object, expect_objects
from tocsin_connectors.soar.xsoar.permissions import find_missing_permissions, list_incident_types
from tocsin_connectors.soar.xsoar.responses import (
    KEY_LABEL,
    format_line,
    get_incident_id,
    get_type,
    has_key,
    has_no_war_room,
    is_not_found,
    is_stale,
    quote_phrase,
)

_V8 = "/xsoar/public/v1"
_BODY_MEMBERS = ("name", "occurred", "severity", "details")
_OPEN_STATUSES = (0, 1)  # pending and active; then done and archived
_MAX_ENTRIES = 1_000
_MAX_FOUND = 10


CloseReason = Annotated[str, Field(min_length=1)]


class XsoarSettings(CaseChannel.Settings):
    """Settings of an `xsoar` destination."""

    template: str = Field(
        default="xsoar", description="Receiver whose templates render the incident."
    )
    api_key: SecretStr = Field(description="API key with the type Standard.")
    api_key_id: SecretStr | None = Field(
        default=None,
        description="The API key's ID. Required for XSOAR 8. Omit it for XSOAR 6.",
    )
    incident_type: str = Field(
        default="Unclassified", min_length=1, description="XSOAR type that new incidents get."
    )
    create_investigation: bool = Field(
        default=True,
        description="Whether XSOAR starts an investigation as soon as Tocsin creates an incident. "
        "The investigation runs the incident type's playbook.",
    )
    close_reason: CloseReason = Field(
        default="Resolved",
        description="Close reason that an XSOAR incident gets when Tocsin closes it. This reason "
        "must be configured in XSOAR.",
    )
    close_as: Mapping[IncidentDisposition, CloseReason] = Field(
        default={},
        description="Overrides `close_reason` for incidents with certain dispositions, for "
        'example `{ "false-positive" = "False Positive" }`.',
    )


class Xsoar(CaseChannel[XsoarSettings]):
    """Creates incidents, and adds updates to their War Rooms."""

    settling: timedelta | None = timedelta(seconds=60)

    def authorization(self) -> Mapping[str, str]:
        """Return the API key headers."""
        identifier = self.settings.api_key_id
        return {
            "Authorization": self.settings.api_key.get_secret_value(),
            **({"x-xdr-auth-id": identifier.get_secret_value()} if identifier else {}),
        }

    async def ask(self, method: str, path: str, **options: Any) -> Json:
        """Return the response; raises `TryLater` if someone changed the incident meanwhile."""
        prefix = _V8 if self.settings.api_key_id else ""
        try:
            return await super().ask(method, f"{prefix}{path}", **options)
        except Refused as refused:
            if is_stale(refused):
                raise TryLater(
                    "the incident was changed concurrently", status=refused.status
                ) from refused
            raise

    async def check(self) -> Health:
        """Report missing permissions and a missing incident type."""
        closes = bool(self.settings.close_when or self.settings.close_recovered)
        missing = [
            permission async for permission in find_missing_permissions(self.ask, closes=closes)
        ]
        problems = [f"the key's role lacks the permission {permission}" for permission in missing]
        types = await list_incident_types(self.ask)
        if types and self.settings.incident_type not in types:
            problems.append(f"the incident type {self.settings.incident_type!r} does not exist")
        seen = "" if types else "; the incident types are not visible, so the type was not checked"
        return Health(detail=f"Cortex XSOAR responds{seen}", problems=tuple(problems))

    async def find(self, key: str) -> str | None:
        """Return the ID of the first incident with this key, or None."""
        text = quote_phrase(key)
        first = [{"field": "created", "asc": True}]
        query = {"query": f"dbotMirrorId:{text} or {text}", "size": _MAX_FOUND, "sort": first}
        match await self.ask("POST", "/incidents/search", json={"filter": query}):
            case {"data": [*found]}:
                return next(
                    (
                        get_incident_id(incident)
                        for incident in expect_objects(found, "XSOAR")
                        if has_key(incident, key)
                    ),
                    None,
                )
        return None

    async def create(
        self, key: str, body: dict[str, Any], observables: Sequence[Observable]
    ) -> tuple[str, bool]:
        """Create an incident with a label for each observable."""
        own = {KEY_LABEL: key, "tocsin_event": body.get("event_id"), "tocsin": body.get("url")}
        entities = [(get_type(observable), observable.value) for observable in observables]
        labels = [
            {"type": kind, "value": value} for kind, value in (*own.items(), *entities) if value
        ]
        incident = {
            **{name: body[name] for name in _BODY_MEMBERS if name in body},
            "type": self.settings.incident_type,
            "createInvestigation": self.settings.create_investigation,
            "dbotMirrorId": key,
            "labels": labels,
        }
        if made := await self.ask("POST", "/incident", json=incident):
            return get_incident_id(made), True
        raise Refused("an XSOAR pre-process rule dropped the incident")

    async def is_open(self, identifier: str) -> bool | None:
        """Return whether the incident is pending or active."""
        try:
            return (await self._incident(identifier)).get("status") in _OPEN_STATUSES
        except Refused as refused:
            if is_not_found(refused):
                return None
            raise

    async def add_observables(self, identifier: str, observables: Sequence[Observable]) -> int:
        """Add an entry with the observables that neither the labels nor the entries contain yet.

        XSOAR creates indicators from entries that it recognizes. Labels do not change, because an
        update replaces the whole incident and would undo concurrent changes.
        """
        if not observables:
            return 0
        labels = (await self._incident(identifier)).get("labels") or ()
        known = {format_line(str(label.get("type")), str(label.get("value"))) for label in labels}
        for text in await self.list_notes(identifier):
            known.update(text.splitlines())
        wanted = dict.fromkeys(
            format_line(get_type(observable), observable.value) for observable in observables
        )
        if unlisted := [line for line in wanted if line not in known]:
            listed = "\n".join(unlisted)
            await self._write(identifier, f"**Tocsin: entities**\n\n```\n{listed}\n```")
        return len(unlisted)

    async def list_notes(self, identifier: str) -> Sequence[str]:
        """Return the latest War Room entries; none before the investigation starts."""
        path, page = f"/investigation/{quote(identifier, safe='')}", {"pageSize": _MAX_ENTRIES}
        try:
            found = expect_object(await self.ask("POST", path, json=page), "XSOAR")
        except Refused as refused:
            if has_no_war_room(refused):
                return ()
            raise
        return [
            str(expect_object(entry, "XSOAR").get("contents"))
            for entry in found.get("entries") or ()
        ]

    async def add_note(self, identifier: str, title: str, text: str) -> None:
        """Add an entry to the War Room."""
        await self._write(identifier, f"**{title}**\n\n{text}")

    async def close(self, identifier: str, reason: str) -> None:
        """Close the incident with the reason in `close_reason`."""
        await self.close_as(identifier, reason, None)

    async def close_as(
        self, identifier: str, reason: str, disposition: IncidentDisposition | None
    ) -> None:
        """Close the current version of the incident with the close reason for a disposition."""
        close_reason = self.settings.close_reason
        if disposition is not None:
            close_reason = self.settings.close_as.get(disposition, close_reason)
        version = (await self._incident(identifier)).get("version")
        closing = {"closeReason": close_reason, "closeNotes": reason}
        await self.ask(
            "POST", "/incident/close", json={"id": identifier, "version": version} | closing
        )

    def link(self, identifier: str) -> str:
        """Return the incident's URL; in XSOAR 8, its host differs from the API's host."""
        if self.settings.api_key_id:
            console = self.settings.url.replace("://api-", "://", 1)
            return f"{console}/Custom/caseinfoid/{quote(identifier, safe='')}"
        return f"{self.settings.url}/#/Details/{quote(identifier, safe='')}"

    async def _incident(self, identifier: str) -> dict[str, Any]:
        return expect_object(
            await self.ask("GET", f"/incident/load/{quote(identifier, safe='')}"), "XSOAR"
        )

    async def _write(self, identifier: str, text: str) -> None:
        """Add a War Room entry, and start the investigation if needed.

        This method does not use `/entry`, which would run texts that look like commands.
        """
        entry = {"investigationId": identifier, "contents": text, "format": "markdown"}
        try:
            await self.ask("POST", "/entry/formatted", json=entry)
        except Refused as refused:
            if not has_no_war_room(refused):
                raise
            await self.ask("POST", "/incident/investigate", json={"id": identifier})
            await self.ask("POST", "/entry/formatted", json=entry)
