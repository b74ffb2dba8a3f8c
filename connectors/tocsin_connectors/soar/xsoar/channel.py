"""The channel `xsoar`: https://docs-cortex.paloaltonetworks.com/r/Cortex-XSOAR-8-API.

What that leaves out is read from the integration XSOAR Mirroring of github.com/demisto/content.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any
from urllib.parse import quote

from pydantic import Field, SecretStr

from tocsin import CaseChannel, Health, Json, Observable, Refused, TryLater
from tocsin_connectors.soar.xsoar.permissions import find_missing_permissions, list_incident_types
from tocsin_connectors.soar.xsoar.responses import (
    KEY_LABEL,
    expect_object,
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


class Xsoar(CaseChannel):
    """Makes incidents; what comes later goes to the War Room."""

    class Settings(CaseChannel.Settings):
        """What a destination that is a Cortex XSOAR can be told."""

        template: str = Field(
            default="xsoar", description="The receiver whose templates render the incident."
        )
        api_key: SecretStr = Field(description="A key of the type Standard.")
        api_key_id: SecretStr | None = Field(
            default=None,
            description="The id of the key, which XSOAR 8 wants; none for XSOAR 6.",
        )
        incident_type: str = Field(
            default="Unclassified", min_length=1, description="The type of the incidents."
        )
        create_investigation: bool = Field(
            default=True,
            description="Begin to investigate at once, which runs the playbook of the type.",
        )
        close_reason: str = Field(
            default="Resolved",
            min_length=1,
            description="The reason of a closed incident: one of those that XSOAR knows.",
        )

    settling: timedelta | None = timedelta(seconds=60)

    settings: Settings

    def authorization(self) -> Mapping[str, str]:
        """Return the key, and its id where there is one."""
        identifier = self.settings.api_key_id
        return {
            "Authorization": self.settings.api_key.get_secret_value(),
            **({"x-xdr-auth-id": identifier.get_secret_value()} if identifier else {}),
        }

    async def ask(self, method: str, path: str, **options: Any) -> Json:
        """Return what XSOAR answers; `TryLater` where somebody else changed it meanwhile."""
        prefix = _V8 if self.settings.api_key_id else ""
        try:
            return await super().ask(method, f"{prefix}{path}", **options)
        except Refused as refused:
            if is_stale(refused):
                raise TryLater("XSOAR has a newer version", status=refused.status) from refused
            raise

    async def check(self) -> Health:
        """Return which of the permissions are missing, and whether the type exists."""
        closes = bool(self.settings.close_when or self.settings.close_recovered)
        missing = [
            permission async for permission in find_missing_permissions(self.ask, closes=closes)
        ]
        problems = [f"the role of the key has not {it}" for it in missing]
        types = await list_incident_types(self.ask)
        if types and self.settings.incident_type not in types:
            problems.append(f"there is no incident type {self.settings.incident_type!r}")
        seen = "" if types else "; whether the incident type exists cannot be seen"
        return Health(detail=f"Cortex XSOAR answers{seen}", problems=tuple(problems))

    async def find(self, key: str) -> str | None:
        """Return the id of the first incident that has this key, None where there is none."""
        text = quote_phrase(key)
        first = [{"field": "created", "asc": True}]
        query = {"query": f"dbotMirrorId:{text} or {text}", "size": _MAX_FOUND, "sort": first}
        match await self.ask("POST", "/incidents/search", json={"filter": query}):
            case {"data": [*found]}:
                return next(
                    (get_incident_id(it) for it in map(expect_object, found) if has_key(it, key)),
                    None,
                )
        return None

    async def make(
        self, key: str, body: dict[str, Any], observables: Sequence[Observable]
    ) -> tuple[str, bool]:
        """Make an incident with a label for each observable."""
        own = {KEY_LABEL: key, "tocsin_event": body.get("event_id"), "tocsin": body.get("url")}
        told = [(get_type(observable), observable.value) for observable in observables]
        labels = [{"type": kind, "value": value} for kind, value in (*own.items(), *told) if value]
        incident = {
            **{name: body[name] for name in _BODY_MEMBERS if name in body},
            "type": self.settings.incident_type,
            "createInvestigation": self.settings.create_investigation,
            "dbotMirrorId": key,
            "labels": labels,
        }
        if made := await self.ask("POST", "/incident", json=incident):
            return get_incident_id(made), True
        raise Refused("a pre-process rule of XSOAR has kept the incident from being made")

    async def is_open(self, identifier: str) -> bool | None:
        """Return whether the incident is pending or active."""
        try:
            return (await self._incident(identifier)).get("status") in _OPEN_STATUSES
        except Refused as refused:
            if is_not_found(refused):
                return None
            raise

    async def add_observables(self, identifier: str, observables: Sequence[Observable]) -> int:
        """List those in the War Room that neither the labels nor its entries have.

        XSOAR makes indicators of what it recognises there. Labels are not added: an update takes
        the whole incident, and would undo what others change meanwhile.
        """
        if not observables:
            return 0
        labels = (await self._incident(identifier)).get("labels") or ()
        known = {format_line(str(label.get("type")), str(label.get("value"))) for label in labels}
        for text in await self.notes(identifier):
            known.update(text.splitlines())
        wanted = dict.fromkeys(
            format_line(get_type(observable), observable.value) for observable in observables
        )
        if unlisted := [it for it in wanted if it not in known]:
            listed = "\n".join(unlisted)
            await self._write(identifier, f"**Tocsin: entities**\n\n```\n{listed}\n```")
        return len(unlisted)

    async def notes(self, identifier: str) -> Sequence[str]:
        """Return the latest entries of the War Room; none before there is an investigation."""
        path, page = f"/investigation/{quote(identifier, safe='')}", {"pageSize": _MAX_ENTRIES}
        try:
            found = expect_object(await self.ask("POST", path, json=page))
        except Refused as refused:
            if has_no_war_room(refused):
                return ()
            raise
        return [str(expect_object(entry).get("contents")) for entry in found.get("entries") or ()]

    async def add_note(self, identifier: str, title: str, text: str) -> None:
        """Add an entry to the War Room."""
        await self._write(identifier, f"**{title}**\n\n{text}")

    async def close(self, identifier: str, reason: str) -> None:
        """Close the incident as it was just read."""
        version = (await self._incident(identifier)).get("version")
        why = {"closeReason": self.settings.close_reason, "closeNotes": reason}
        await self.ask("POST", "/incident/close", json={"id": identifier, "version": version} | why)

    def link(self, identifier: str) -> str:
        """Return the page of the incident, which XSOAR 8 has at another host than its API."""
        if self.settings.api_key_id:
            console = self.settings.url.replace("://api-", "://", 1)
            return f"{console}/Custom/caseinfoid/{quote(identifier, safe='')}"
        return f"{self.settings.url}/#/Details/{quote(identifier, safe='')}"

    async def _incident(self, identifier: str) -> dict[str, Any]:
        return expect_object(await self.ask("GET", f"/incident/load/{quote(identifier, safe='')}"))

    async def _write(self, identifier: str, text: str) -> None:
        """Add an entry, and begin the investigation whose War Room it is where there is none.

        Not by `/entry`, which would execute a text that begins like a command.
        """
        entry = {"investigationId": identifier, "contents": text, "format": "markdown"}
        try:
            await self.ask("POST", "/entry/formatted", json=entry)
        except Refused as refused:
            if not has_no_war_room(refused):
                raise
            await self.ask("POST", "/incident/investigate", json={"id": identifier})
            await self.ask("POST", "/entry/formatted", json=entry)
