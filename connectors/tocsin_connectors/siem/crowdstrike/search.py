"""Event search in Next-Gen SIEM: jobs, their results, and the events in them.

Events of the sensor have names in CamelCase; events of other sources have the names of the Elastic
Common Schema, which CrowdStrike's parsing standard prescribes.
https://github.com/CrowdStrike/logscale-community-content and
https://library.humio.com/logscale-api/api-search-query.html
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

from tocsin import (
    Api,
    ApiResponse,
    Broken,
    Clock,
    Entity,
    EntityKind,
    PluginFailure,
    Refused,
    Relation,
    RelationType,
    SiemEvent,
    TryLater,
    Window,
)
from tocsin_connectors.siem.records import (
    child,
    children,
    contains_entity,
    describe_value,
    number,
    parse_entities,
    relate,
    text,
    texts,
    union,
)

EVENT_FIELDS: Mapping[EntityKind, tuple[str, ...]] = {
    EntityKind.IP: (
        *("RemoteAddressIP4", "RemoteAddressIP6", "LocalAddressIP4", "LocalAddressIP6", "aip"),
        *("source.ip", "destination.ip", "client.ip", "host.ip"),
    ),
    EntityKind.HOST: ("ComputerName", "host.name", "host.hostname"),
    EntityKind.USER: ("UserName", "UserPrincipal", "user.name", "user.email"),
    EntityKind.DOMAIN: ("DomainName", "dns.question.name", "url.domain", "destination.domain"),
    EntityKind.URL: ("url.full", "url.original"),
    EntityKind.FILE_HASH: (
        *("SHA256HashData", "MD5HashData"),
        *("file.hash.sha256", "file.hash.md5", "process.hash.sha256"),
    ),
    EntityKind.FILE: ("TargetFileName", "ImageFileName", "file.path"),
    EntityKind.PROCESS: ("FileName", "ContextBaseFileName", "ParentBaseFileName", "process.name"),
    EntityKind.EMAIL: ("email.from.address", "email.to.address", "user.email"),
}
_EVENT_NAME = "#event_simpleName"
_SHOWN_FIELDS = (
    *(_EVENT_NAME, "#repo", "#Vendor", "event.action", "event.outcome", "event_platform", "aid"),
    *(name for names in EVENT_FIELDS.values() for name in names),
    *("CommandLine", "RemotePort", "LocalPort", "destination.port", "message"),
)
"""Fields that an analyst would look at."""
_RELATIONS: tuple[tuple[str | None, str, RelationType, str], ...] = (
    ("NetworkConnectIP4", "ComputerName", RelationType.CONNECTED_TO, "RemoteAddressIP4"),
    ("NetworkConnectIP6", "ComputerName", RelationType.CONNECTED_TO, "RemoteAddressIP6"),
    ("UserLogon", "UserName", RelationType.LOGGED_ON_TO, "ComputerName"),
    ("ProcessRollup2", "FileName", RelationType.EXECUTED_ON, "ComputerName"),
    ("ProcessRollup2", "ParentBaseFileName", RelationType.STARTED, "FileName"),
    (None, "source.ip", RelationType.CONNECTED_TO, "destination.ip"),
)
"""Relations between fields: event name (None for any), source, type, target."""


def build_event(record: dict[str, Any]) -> SiemEvent:
    """Return an event. Raises ValueError if it has no time."""
    at = _parse_time(record)
    return SiemEvent(
        external_id=text(record, "@id"),
        occurred_at=at,
        summary=" ".join(_summarize(record).split()),
        entities=union(
            _parse_field(record, name) for names in EVENT_FIELDS.values() for name in names
        ),
        relations=union(_find_relations(record, at)),
        fields={
            name: str(record[name])[:1_000] for name in _SHOWN_FIELDS if _is_present(record, name)
        },
    )


def _is_present(record: dict[str, Any], name: str) -> bool:
    return text(record, name) is not None or number(record, name) is not None


def _parse_time(record: dict[str, Any]) -> datetime:
    """Return the time of an event: milliseconds since 1970, as a number or a string."""
    value = record.get("@timestamp")
    milliseconds = number(record, "@timestamp") or text(record, "@timestamp")
    try:
        return datetime.fromtimestamp(int(milliseconds or "") / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        raise ValueError(f"@timestamp is {describe_value(value)}") from None


def _summarize(record: dict[str, Any]) -> str:
    """Summarize an event: `NetworkConnectIP4: curl.exe, bastion, 203.0.113.7`."""
    what = text(record, _EVENT_NAME) or text(record, "event.action") or "an event"
    values = (text(record, name) for names in EVENT_FIELDS.values() for name in names)
    entities = ", ".join(dict.fromkeys(value for value in values if value))
    return (f"{what}: {entities}" if entities else what)[:1_000]


def _parse_field(record: dict[str, Any], name: str) -> list[Entity]:
    value = text(record, name)
    kinds = (kind for kind, names in EVENT_FIELDS.items() if name in names)
    return [entity for kind in kinds if value for entity in parse_entities(kind, value)]


def _find_relations(record: dict[str, Any], at: datetime) -> Iterator[Iterator[Relation]]:
    what = text(record, _EVENT_NAME)
    for of, source, kind, target in _RELATIONS:
        if of in (None, what):
            yield relate(_parse_field(record, source), kind, _parse_field(record, target), at)


_TIMEOUT = timedelta(seconds=90)
_PAUSES = timedelta(seconds=0.2), timedelta(seconds=5)
_MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class FalconSearchResult:
    """Result of a search."""

    events: Sequence[dict[str, Any]]
    warnings: str
    """Reasons why the result may be incomplete; empty if there are none."""


class FalconSearcher:
    """Searches in one view."""

    def __init__(self, api: Api, clock: Clock, repository: str) -> None:
        """Store the dependencies. Performs no I/O."""
        self._api = api
        self._clock = clock
        self._repository = repository
        self._jobs = f"/humio/api/v1/repositories/{quote(repository)}/queryjobs"

    async def events(
        self, entity: Entity, window: Window, limit: int
    ) -> AsyncGenerator[SiemEvent, None]:
        """Yield the latest events that name an entity.

        Raises `TryLater` at the end if the result may be incomplete, and `Refused` if no view is
        configured.
        """
        if not self._repository:
            raise Refused("event search is off: `event_repository` is empty")
        rows = await self.run(build_query(entity, window, limit), entity.value, window)
        for record in rows.events[-limit:]:
            with suppress(ValueError):  # skip invalid events
                event = build_event(record)
                if event.occurred_at in window and contains_entity(entity, event.entities):
                    yield event
        if rows.warnings:
            raise TryLater(f"the search results may be incomplete: {rows.warnings}")

    async def run(self, query: str, value: str, window: Window) -> FalconSearchResult:
        """Run a query and return its result. `value` is the parameter of the query."""
        body = {
            "queryString": query,
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
                raise Broken(f"POST {self._jobs} returned a response without `id`")
        path = f"{self._jobs}/{quote(identifier, safe='')}"
        try:
            return await self._wait_for_job(path)
        finally:
            with suppress(PluginFailure):  # the job expires if it is not polled
                await self._api.request("DELETE", path)

    async def _wait_for_job(self, path: str) -> FalconSearchResult:
        began, (shortest, longest) = self._clock.now(), _PAUSES
        while self._clock.now() - began <= _TIMEOUT:
            status = _parse_status(await self._api.get(path), path)
            if status.get("cancelled") is True:
                raise TryLater("the search was canceled")
            if status["done"]:
                return _parse_result(status, path)
            wanted = timedelta(milliseconds=number(child(status, "metaData"), "pollAfter") or 0)
            await self._clock.sleep(min(max(wanted, shortest), longest))
        raise TryLater(f"the search did not finish within {_TIMEOUT}")


def build_query(entity: Entity, window: Window, limit: int) -> str:
    """Return the query for the latest events of a window that name an entity.

    The value is the parameter `value`, not part of the query. Functions compare it literally, while
    `field = ?value` would treat `*` as a wildcard.
    """
    names = EVENT_FIELDS[entity.kind]
    wanted = " or ".join(f"test(lower({name}) == lower(?value))" for name in names)
    start, end = _to_milliseconds(window.start), _to_milliseconds(window.end)
    return f"{wanted} | @timestamp >= {start} | @timestamp < {end} | tail({limit})"


def _parse_result(status: dict[str, Any], path: str) -> FalconSearchResult:
    events = status.get("events")
    if not isinstance(events, list):
        raise Broken(f"GET {path} returned a response without `events`")
    reported = child(status, "metaData").get("warnings")
    warnings = [text(warning, "message") or "" for warning in children({"": reported}, "")]
    warnings += texts({"": reported}, "")
    return FalconSearchResult(
        [event for event in events if isinstance(event, dict)], "; ".join(warnings)[:300]
    )


def _parse_status(answer: ApiResponse, path: str) -> dict[str, Any]:
    match answer.json:
        case {"done": bool()} as status:
            return dict(status)
    raise Broken(f"GET {path} returned a response without `done`")


def _to_milliseconds(moment: datetime) -> int:
    """Return milliseconds since 1970, rounded up so that earlier events do not match."""
    return -int((datetime.fromtimestamp(0, moment.tzinfo) - moment) // _MILLISECOND)
