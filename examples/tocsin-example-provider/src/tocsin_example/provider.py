"""Provider for Example, which lists changes by time and signs in with client credentials."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import quote

from pydantic import Field, SecretStr

from tocsin import (
    Api,
    ApiSettings,
    Broken,
    Entity,
    Grant,
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
from tocsin_example.cases import ENTITIES, WRITTEN, incident_of
from tocsin_example.log import events_of

NOT_FOUND = 404
LOG = "/api/v1/log"
MOST_ENTRIES = 100
WORDS = {kind: word for word, kind in ENTITIES.items()}


class ExampleSettings(WindowedProvider.Settings, ApiSettings):
    """Settings under [providers.<name>]."""

    client_id: str = Field(description="ID of an API client in Example.")
    client_secret: SecretStr = Field(description="Secret of the API client.")


class ExampleProvider(WindowedProvider[ExampleSettings]):
    """Reads cases and their changes from one Example server."""

    permissions = (
        "cases:read",
        "log:read",
        "comments:write, if write_back is enabled",
        "cases:write, if write_back_status is set or close_from_tickets is enabled",
    )

    def __init__(self, settings: ExampleSettings, tools: Tools) -> None:
        """Store the arguments; perform no I/O."""
        super().__init__(settings, tools)
        self._api = Api(tools, settings, sign_in=self._sign_in)

    async def check(self) -> Health:
        """Return whether cases can be listed."""
        await self._list(limit=1)
        return Health(detail="cases are readable")

    async def list_changes(
        self,
        stream: str,  # noqa: ARG002 - there is one
        window: Window,
        token: Any,
        limit: int,
    ) -> Listing:
        """Return a page of the cases that changed in the window, the oldest first."""
        return await self._list(
            changed_from=window.start.isoformat(),
            changed_to=window.end.isoformat(),
            limit=limit,
            page_token=token,
        )

    def to_incident(self, record: Mapping[str, Any]) -> Incident:
        """Return the incident of a case; ValueError for malformed records."""
        return incident_of(record, self.settings.url)

    async def incident(self, external_id: str) -> Incident | None:
        """Return the current version of a case, None if it was deleted."""
        try:
            answer = await self._api.get(f"/api/v1/cases/{quote(external_id, safe='')}")
        except Refused as refused:
            if refused.status == NOT_FOUND:
                return None
            raise
        return self.to_incident(answer.json)

    async def events(
        self, entity: Entity, window: Window, limit: int
    ) -> AsyncGenerator[SiemEvent, None]:
        """Yield the log entries of an entity in the window, the latest first."""
        token: str | None = None
        while entity.kind in WORDS and limit > 0:
            answer = await self._api.get(
                LOG,
                entity_type=WORDS[entity.kind],
                entity_value=entity.value,
                logged_from=window.start.isoformat(),
                logged_to=window.end.isoformat(),
                limit=min(limit, MOST_ENTRIES),
                page_token=token,
            )
            match answer.json:
                case {"entries": list(records), "next_page_token": str() | None as token}:
                    for event in events_of(records):
                        yield event
                case _:
                    raise Broken(f"GET {LOG}: the response lacks `entries`")
            limit = limit - len(records) if records and token else 0

    async def comment(self, external_id: str, text: str, key: str) -> None:
        """Write a comment to a case, unless there is one that ends with the marker of this key.

        The call is repeated after a lost response or a crash.
        """
        mark = f"[tocsin {key}]"
        path = f"/api/v1/cases/{quote(external_id, safe='')}/comments"
        match (await self._api.get(path)).json:
            case {"comments": list(comments)}:
                written = [str(comment["text"]) for comment in comments if "text" in comment]
            case _:
                raise Broken(f"GET {path}: the response lacks `comments`")
        if not any(text.endswith(f"\n{mark}") for text in written):
            await self._api.request("POST", path, json={"text": f"{text}\n\n{mark}"})

    async def set_status(self, external_id: str, status: IncidentStatus) -> None:
        """Set the status of a case, unless it already has it."""
        found = await self.incident(external_id)
        if found is None:
            raise Refused(f"no case {external_id}")
        if found.status is not status:
            path = f"/api/v1/cases/{quote(external_id, safe='')}"
            await self._api.request("PATCH", path, json={"status": WRITTEN[status]})

    async def _list(self, **query: Any) -> Listing:
        answer = await self._api.get("/api/v1/cases", **query)
        match answer.json:
            case {"cases": list(records), "next_page_token": str() | None as token}:
                return Listing(records=records, next_token=token, server_time=answer.server_time)
        raise no_cases(answer.json)

    async def _sign_in(self) -> Grant:
        answer = await self._api.request(
            "POST",
            "/oauth/token",
            form={
                "grant_type": "client_credentials",
                "client_id": self.settings.client_id,
                "client_secret": self.settings.client_secret.get_secret_value(),
            },
            signed=False,
        )
        match answer.json:
            case {"access_token": str(token), "expires_in": int(seconds)}:
                ends = self.tools.clock.now() + timedelta(seconds=seconds)
                return Grant(f"Bearer {token}", ends)
        raise Broken("POST /oauth/token: the response lacks `access_token` and `expires_in`")


def no_cases(content: Any) -> Broken:
    """Return the error for a response without a list of cases, and Example's own error if any."""
    match content:
        case {"error": error}:
            return Broken(f"GET /api/v1/cases returned the error {error!r:.200}")
    return Broken("GET /api/v1/cases: the response lacks `cases` and `next_page_token`")
