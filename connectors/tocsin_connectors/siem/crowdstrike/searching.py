"""Searches in Next-Gen SIEM: begun, waited for, and cleared away.

https://library.humio.com/logscale-api/api-search-query.html
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

from tocsin import (
    Api,
    ApiResponse,
    Broken,
    Clock,
    Entity,
    PluginFailure,
    Refused,
    SiemEvent,
    TryLater,
    Window,
)
from tocsin_connectors.siem.crowdstrike.events import EVENT_FIELDS, build_event
from tocsin_connectors.siem.matching import contains_entity
from tocsin_connectors.siem.records import child, children, number, text, texts

_TIMEOUT = timedelta(seconds=90)
_PAUSES = timedelta(seconds=0.2), timedelta(seconds=5)
_MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class FalconSearchResult:
    """What a search came to."""

    events: Sequence[dict[str, Any]]
    warnings: str
    """Why that may not be all; empty where nothing is said."""


class FalconSearcher:
    """The searches of one view."""

    def __init__(self, api: Api, clock: Clock, repository: str) -> None:
        """Keep what is needed; do no I/O."""
        self._api = api
        self._clock = clock
        self._repository = repository
        self._jobs = f"/humio/api/v1/repositories/{quote(repository)}/queryjobs"

    async def events(
        self, entity: Entity, window: Window, limit: int
    ) -> AsyncGenerator[SiemEvent, None]:
        """Yield the latest events that name an entity.

        Raises `TryLater` at the end where that may not be all that there is, and `Refused` where
        there is no view to look into.
        """
        if not self._repository:
            raise Refused("`event_repository` is empty, so that no events can be asked for")
        rows = await self.run(build_query(entity, window, limit), entity.value, window)
        for record in rows.events[-limit:]:
            with suppress(ValueError):  # what cannot be understood costs no other
                event = build_event(record)
                if event.occurred_at in window and contains_entity(entity, event.entities):
                    yield event
        if rows.warnings:
            raise TryLater(f"the search may not be whole: {rows.warnings}")

    async def run(self, words: str, value: str, window: Window) -> FalconSearchResult:
        """Return what a query finds; `value` is its parameter."""
        body = {
            "queryString": words,
            "arguments": {"value": value.replace("\0", "")},
            "start": _to_milliseconds(window.start),
            "end": _to_milliseconds(window.end) + 1,
            "isLive": False,
        }
        answer = await self._api.request("POST", self._jobs, json=body)
        match answer.json:
            case {"id": str(identifier)} if identifier:
                pass
            case _:
                raise Broken(f"POST {self._jobs} answered without `id`")
        path = f"{self._jobs}/{quote(identifier, safe='')}"
        try:
            return await self._done(path)
        finally:
            with suppress(PluginFailure):  # it ends by itself when nobody asks for it any more
                await self._api.request("DELETE", path)

    async def _done(self, path: str) -> FalconSearchResult:
        began, (shortest, longest) = self._clock.now(), _PAUSES
        while self._clock.now() - began <= _TIMEOUT:
            told = _parse_status(await self._api.get(path), path)
            if told.get("cancelled") is True:
                raise TryLater("the search was cancelled")
            if told["done"]:
                return _parse_result(told, path)
            wanted = timedelta(milliseconds=number(child(told, "metaData"), "pollAfter") or 0)
            await self._clock.sleep(min(max(wanted, shortest), longest))
        raise TryLater(f"a search was not done after {_TIMEOUT}")


def build_query(entity: Entity, window: Window, limit: int) -> str:
    """Return the query for the latest events of a window that name an entity.

    The value itself is the parameter `value`: it is no part of the query. Functions compare it as
    it is, while `field = ?value` would take `*` for anything.
    """
    names = EVENT_FIELDS[entity.kind]
    wanted = " or ".join(f"test(lower({name}) == lower(?value))" for name in names)
    start, end = _to_milliseconds(window.start), _to_milliseconds(window.end)
    return f"{wanted} | @timestamp >= {start} | @timestamp < {end} | tail({limit})"


def _parse_result(told: dict[str, Any], path: str) -> FalconSearchResult:
    events = told.get("events")
    if not isinstance(events, list):
        raise Broken(f"GET {path} answered without `events`")
    said = child(told, "metaData").get("warnings")
    warnings = [text(it, "message") or "" for it in children({"": said}, "")]
    warnings += texts({"": said}, "")
    return FalconSearchResult(
        [it for it in events if isinstance(it, dict)], "; ".join(warnings)[:300]
    )


def _parse_status(answer: ApiResponse, path: str) -> dict[str, Any]:
    match answer.json:
        case {"done": bool()} as told:
            return dict(told)
    raise Broken(f"GET {path} answered without `done`")


def _to_milliseconds(moment: datetime) -> int:
    """Return a time as the events have it, rounded up: what is at it or later is what is meant."""
    return -int((datetime.fromtimestamp(0, moment.tzinfo) - moment) // _MILLISECOND)
