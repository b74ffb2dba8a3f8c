"""Event search in Ariel: jobs, their results, and the events in the rows.

If the same query was submitted a short while ago, QRadar returns the existing search. Deleting a
shared search would take it away from the other caller, so Tocsin never submits the same query
twice.

https://www.ibm.com/docs/en/qradar-common?topic=endpoints-ariel-endpoints
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import count
from secrets import randbelow
from typing import Any
from urllib.parse import quote

from tocsin import (
    Broken,
    Clock,
    Entity,
    EntityKind,
    Misconfigured,
    PluginFailure,
    Refused,
    Relation,
    RelationType,
    SiemEvent,
    TryLater,
    Window,
)
from tocsin_connectors.siem.qradar import aql
from tocsin_connectors.siem.qradar.aql import ADDRESS_FIELDS, ENTITY_FIELDS
from tocsin_connectors.siem.qradar.client import QRadarClient, QRadarRecord
from tocsin_connectors.siem.qradar.settings import QRadarSettings
from tocsin_connectors.siem.qradar.values import parse_time, text_or_number
from tocsin_connectors.siem.records import (
    children,
    contains_entity,
    describe_value,
    number,
    parse_entities,
    relate,
    text,
    union,
)

EventProperties = Mapping[EntityKind, Sequence[str]]
_EVENT_FIELDS = (
    *("event_name", "category_name", "log_source", "protocol", "sourceip", "sourcev6"),
    *("sourceport", "destinationip", "destinationv6", "destinationport", "username"),
    *("identityip", "identityhostname", "eventcount", "magnitude", "devicetime", "payload"),
)
_NO_ADDRESSES = frozenset({"0.0.0.0", "::"})  # noqa: S104 - what stands where there is none
_SOURCES, _TARGETS = ("sourceip", "sourcev6"), ("destinationip", "destinationv6")


def build_event(row: dict[str, Any], properties: EventProperties) -> SiemEvent:
    """Return the event of a row. Raises ValueError if it has no time.

    `properties` are the requested custom properties, by the kind of entity that they hold.
    """
    at = parse_time(row, "starttime")
    if at is None:
        raise ValueError(f"starttime is {describe_value(row.get('starttime'))}")
    names = [*_EVENT_FIELDS, *(name for its in properties.values() for name in its)]
    shown = {name: value for name in names if (value := text_or_number(row, name))}
    return SiemEvent(
        external_id=None,
        occurred_at=at,
        summary=" ".join(_summarize(row).split())[:1_000],
        entities=union([_find_entities(row, properties)]),
        relations=union([_find_relations(row, at)]),
        fields={name: value[:1_000] for name, value in shown.items()},
    )


def _find_entities(row: dict[str, Any], properties: EventProperties) -> Iterator[Entity]:
    for names in ADDRESS_FIELDS.values():
        yield from _find_hosts(row, names)
    named = (*ENTITY_FIELDS.items(), *properties.items())
    for kind, its in named:
        for name in its:
            yield from parse_entities(kind, text(row, name) or "")


def _find_hosts(row: dict[str, Any], names: Sequence[str]) -> list[Entity]:
    """Return the addresses in fields; a missing address is all zeros."""
    found = (
        entity for name in names for entity in parse_entities(EntityKind.IP, text(row, name) or "")
    )
    return [entity for entity in found if entity.value not in _NO_ADDRESSES]


def _find_relations(row: dict[str, Any], at: datetime) -> Iterator[Relation]:
    sources, targets = _find_hosts(row, _SOURCES), _find_hosts(row, _TARGETS)
    yield from relate(sources, RelationType.CONNECTED_TO, targets, at)


def _summarize(row: dict[str, Any]) -> str:
    """Summarize an event: `Firewall Permit of ann from 203.0.113.7, reported by fw`."""
    what = text(row, "event_name") or text(row, "category_name") or "an event"
    source, target = (
        next((host.value for host in _find_hosts(row, names)), None)
        for names in (_SOURCES, _TARGETS)
    )
    parts = {
        " of ": text(row, "username"),
        " from ": source,
        " to ": target,
        ", reported by ": text(row, "log_source"),
    }
    return what + "".join(f"{word}{value}" for word, value in parts.items() if value)


SEARCHES = "/ariel/searches"
_PAGE_SIZE = 500
_FIRST_PAUSE, _LONGEST_PAUSE = timedelta(seconds=0.5), timedelta(seconds=5)
_RUNNING = frozenset({"WAIT", "EXECUTE", "SORTING"})
_MAX_OFFSET = 60_000
"""Maximum offset of STOP in milliseconds, which only affects what Ariel opens."""


@dataclass(frozen=True, slots=True)
class ArielResult:
    """Result of a search."""

    events: Sequence[QRadarRecord]
    problems: str
    """Reasons why the result may be incomplete; empty if there are none."""


class ArielSearcher:
    """Searches of one console, with limited concurrency."""

    def __init__(self, console: QRadarClient, clock: Clock, settings: QRadarSettings) -> None:
        """Store the dependencies. Performs no I/O."""
        self._console = console
        self._clock = clock
        self._settings = settings
        self._free = asyncio.Semaphore(settings.most_searches)
        self._numbers = count(randbelow(_MAX_OFFSET))  # different on each node

    async def events(
        self, entity: Entity, window: Window, limit: int
    ) -> AsyncGenerator[SiemEvent, None]:
        """Yield the latest events that name an entity.

        Raises `TryLater` or `Refused` at the end if the result may be incomplete, and `Refused` if
        event search is not possible.
        """
        settings = self._settings
        if not settings.search_events:
            raise Refused("event search is off: `search_events` is false")
        properties = settings.event_properties
        own = properties.get(entity.kind, ())
        if entity.kind not in (*aql.ENTITY_FIELDS, EntityKind.IP) and not own:
            raise Refused(
                f"no event field contains entities of the kind {entity.kind}; add one to "
                "`event_properties`"
            )
        try:
            query = aql.build_entity_query(entity, own, settings.properties, window, limit)
        except ValueError:  # an invalid address is in no address field
            return
        rows, left = await self.run(query), limit
        for row in rows.events:
            with suppress(ValueError):  # skip invalid events
                event = build_event(row, properties)
                if event.occurred_at in window and contains_entity(entity, event.entities):
                    left -= 1
                    yield event
        if rows.problems:
            raise TryLater(f"the search results may be incomplete: {rows.problems}")
        if left and len(rows.events) >= limit:
            raise Refused(
                f"more events may exist: {left} of the latest {limit} results did not match"
            )

    async def run(self, query: str) -> ArielResult:
        """Run a query, which must end with its STOP, and return the result.

        Raises `TryLater` if the search is canceled or takes too long.
        """
        async with self._free:
            path = await self._start_search(query)
            try:
                job = await self._wait_for_job(path)
                return ArielResult(await self._results(path, job), _join_problems(job))
            except Misconfigured:
                raise
            except Refused as refused:
                if refused.is_missing:
                    raise TryLater(f"the search was deleted by another client: {refused}") from None
                raise
            finally:
                with suppress(PluginFailure):  # QRadar deletes it after a day
                    await self._console.request("DELETE", path)

    async def _start_search(self, query: str) -> str:
        """Return the path of a new search."""
        answer = await self._console.request(
            "POST", SEARCHES, query_expression=self._make_unique(query)
        )
        match answer.json:
            case {"search_id": str(identifier)} if identifier:
                return f"{SEARCHES}/{quote(identifier, safe='')}"
        raise Broken(f"POST {SEARCHES} returned a response without `search_id`")

    def _make_unique(self, query: str) -> str:
        """Return the query with a unique STOP, some milliseconds later."""
        start, _, stop = query.rpartition(" ")
        return f"{start} {int(stop) + next(self._numbers) % _MAX_OFFSET}"

    async def _wait_for_job(self, path: str) -> QRadarRecord:
        """Wait for a search to finish, and return its status."""
        began, pause = self._clock.now(), _FIRST_PAUSE
        while self._clock.now() - began <= self._settings.search_timeout:
            job = _parse_status(await self._console.request("GET", path), path)
            if job["status"] == "COMPLETED":
                return job
            if job["status"] == "CANCELED":
                raise TryLater("the search was canceled")
            if job["status"] not in _RUNNING:
                raise Broken(f"the search failed: {_join_problems(job) or job['status']:.300}")
            await self._clock.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        raise TryLater(f"the search did not finish within {self._settings.search_timeout}")

    async def _results(self, path: str, job: QRadarRecord) -> list[QRadarRecord]:
        """Return the rows of a finished search."""
        total = number(job, "record_count")
        if total is None:
            raise Broken(f"GET {path} returned a response without `record_count`")
        found = list[QRadarRecord]()
        while len(found) < total:
            span = f"{len(found)}-{len(found) + _PAGE_SIZE - 1}"
            answer = await self._console.request("GET", f"{path}/results", span=span)
            match answer.json:
                case {"events": [_, *_] as rows}:
                    found += [row if isinstance(row, dict) else {} for row in rows]
                case _:
                    left = total - len(found)
                    raise Broken(f"GET {path}/results returned none of the {left} remaining events")
        return found


def _parse_status(answer: Any, path: str) -> QRadarRecord:
    match answer.json:
        case {"status": str()} as job:
            return dict(job)
    raise Broken(f"GET {path} returned a response without `status`")


def _join_problems(job: QRadarRecord) -> str:
    """Return the error messages of a search."""
    errors = children(job, "error_messages")
    return "; ".join(
        text(message, "message") or "" for message in errors if message.get("severity") != "INFO"
    )[:300]
