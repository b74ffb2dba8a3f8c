"""Client of one Exabeam subscription: cases and alerts of Threat Center, and events.

https://developers.exabeam.com/exabeam/reference
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

from tocsin import Api, ApiResponse, Broken, CredentialsRefused, Grant, Refused, Tools, Window
from tocsin_connectors.responses import expect_object
from tocsin_connectors.siem.creation_time import CreatedPage
from tocsin_connectors.siem.exabeam.settings import ExabeamSettings
from tocsin_connectors.siem.records import children, number

TOKEN = "/auth/v1/token"  # noqa: S105 - a path
SEARCH, READ, CHANGE = "/threat-center/v1/search", "/threat-center/v1", "/threat-center/v2/cases"
EVENTS = "/search/v2/events"
MAX_ROWS = 3_000
SECOND = timedelta(seconds=1)
CREATED = {"cases": "caseCreationTimestamp", "alerts": "alertCreationTimestamp"}
_BREAK = re.compile(r"<br\s*/?>|</(?:p|div|li|h[1-6])>", re.IGNORECASE)
_TAG = re.compile(r"</?[a-z][^<>]{0,1000}>", re.IGNORECASE)
ExabeamRecord = dict[str, Any]


class ExabeamClient:
    """Requests to one subscription. All raise what `Api.request` raises."""

    def __init__(self, settings: ExabeamSettings, tools: Tools) -> None:
        """Store the dependencies. Performs no I/O."""
        self._settings = settings
        self._clock = tools.clock
        self._api = Api(tools, settings, sign_in=self._sign_in)

    async def search(self, since: datetime, until: datetime, limit: int) -> CreatedPage:
        """Return cases or alerts created from `since` on, up to `until`, oldest first.

        Searches are precise to the second, and have no pages.
        """
        kind = self._settings.records
        body = {
            "fields": ["*"],
            "filter": self._settings.filter,  # some tenants require it
            "startTime": format_time(since),
            "endTime": format_time(until - timedelta(microseconds=1) + SECOND),
            "orderBy": [f"{CREATED[kind]} ASC"],
            "limit": limit,
        }
        answer = await self._api.request("POST", f"{SEARCH}/{kind}", json=body)
        found = _parse_object(answer, f"{SEARCH}/{kind}")
        rows = _list_rows(found, f"{SEARCH}/{kind}")
        total = number(found, "totalRows") or 0
        return CreatedPage(rows, len(rows) >= limit or total > len(rows), answer.server_time)

    async def record(self, identifier: str) -> ExabeamRecord | None:
        """Return a case or an alert by its ID, or None if it does not exist."""
        path = f"{READ}/{self._settings.records}"
        try:
            answer = await self._api.request("GET", f"{path}/{quote(identifier, safe='')}")
        except Refused as refused:
            if refused.is_missing:
                return None
            raise
        return _parse_object(answer, path)

    async def events(
        self, query: str, window: Window, fields: Sequence[str], limit: int
    ) -> Sequence[ExabeamRecord]:
        """Return the latest events of a window that match a query."""
        body = {
            "filter": query,
            "startTime": format_time(window.start),
            "endTime": format_time(window.end + SECOND),
            "fields": list(fields),
            "orderBy": ["approxLogTime DESC"],
            "distinct": False,
            "limit": limit,
        }
        answer = await self._api.request("POST", EVENTS, json=body)
        return _list_rows(_parse_object(answer, EVENTS), EVENTS)

    async def set_stage(self, identifier: str, **attributes: str) -> None:
        """Set the stage of a case, and what goes with it."""
        path = f"{CHANGE}/{quote(identifier, safe='')}"
        _parse_object(await self._api.request("POST", path, json=attributes), path)

    async def notes(self, identifier: str) -> Sequence[str]:
        """Return the texts of the notes of a case."""
        path = _build_notes_path(identifier)
        match (await self._api.request("GET", path)).json:
            case {"notes": list(notes)} | {"rows": list(notes)} | list(notes):
                return [
                    strip_markup(text)
                    for note in children({"": notes}, "")
                    if isinstance(text := note.get("note"), str)
                ]
        raise Broken(f"GET {path} returned a response without the list `notes`")

    async def write_note(self, identifier: str, text: str) -> None:
        """Write a note to a case. Notes are HTML."""
        markup = html.escape(text, quote=False).replace("\n", "<br>")
        path = _build_notes_path(identifier)
        _parse_object(await self._api.request("POST", path, json={"note": markup}), path)

    async def _sign_in(self) -> Grant:
        """Request a grant with client credentials (RFC 6749 section 4.4)."""
        body = {
            "grant_type": "client_credentials",
            "client_id": self._settings.client_id,
            "client_secret": self._settings.client_secret.get_secret_value(),
        }
        try:
            answer = await self._api.request("POST", TOKEN, json=body, signed=False)
        except Refused as refused:
            raise CredentialsRefused(
                str(refused), status=refused.status, response=refused.response
            ) from refused
        match answer.json:
            case {"access_token": str(token), "expires_in": int(seconds)} if token:
                return Grant(f"Bearer {token}", self._clock.now() + timedelta(seconds=seconds))
        raise Broken(f"POST {TOKEN} returned a response without `access_token` and `expires_in`")


def format_time(moment: datetime) -> str:
    """Format a time for searches, in seconds, rounded down."""
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def strip_markup(text: str) -> str:
    """Return a text without HTML, whose paragraphs become lines."""
    return html.unescape(_TAG.sub("", _BREAK.sub("\n", text)))


def _build_notes_path(identifier: str) -> str:
    return f"{READ}/cases/{quote(identifier, safe='')}/notes"


def _parse_object(answer: ApiResponse, path: str) -> ExabeamRecord:
    """Return the object in a response. Raises `Broken` if it reports errors despite its status."""
    found = expect_object(answer.json, path)
    if errors := found.get("errors"):
        raise Broken(f"{path} returned errors: {errors!r:.300}")
    return found


def _list_rows(found: ExabeamRecord, path: str) -> list[ExabeamRecord]:
    rows = found.get("rows")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise Broken(f"POST {path} returned a response without the list `rows`")
    return rows
