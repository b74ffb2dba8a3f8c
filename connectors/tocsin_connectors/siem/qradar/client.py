"""QRadar client: requests to the console, lists in ranges, and offenses.

https://www.ibm.com/docs/en/qradar-common?topic=versions-paging-syntax and
https://www.ibm.com/docs/en/qradar-common?topic=endpoints-siem-endpoints
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from http import HTTPStatus
from itertools import pairwise
from typing import Any, Self, TypeVar

from tocsin import Api, ApiResponse, Broken, Refused, Tools, Window
from tocsin_connectors.siem.qradar.settings import QRadarSettings
from tocsin_connectors.siem.qradar.values import to_milliseconds
from tocsin_connectors.siem.records import number, text

QRadarRecord = dict[str, Any]
MAX_RANGES = 200
"""Maximum number of ranges in a list that ends."""
_VERSION_REFUSED = (
    HTTPStatus.NOT_FOUND,
    HTTPStatus.NOT_ACCEPTABLE,
    HTTPStatus.UNPROCESSABLE_ENTITY,
)
"""Statuses with which a console may refuse a version that it does not have."""
_VERSION = re.compile(r"\d{1,3}\.\d{1,3}")
_TOTAL = re.compile(r"items (?:\d+-\d+|\*)/(\d+)")


@dataclass(frozen=True, slots=True)
class RecordRange:
    """Records in one range of a list."""

    records: Sequence[QRadarRecord]
    total: int | None
    """Total number of records, or None if the console does not return it."""
    server_time: datetime | None

    def ends(self, first: int, asked: int) -> bool:
        """Return whether the list ends with this range.

        IBM does not document whether the total counts the list or the range, so a full range is
        never the last one.
        """
        count = len(self.records)
        return not count or (
            count < asked and self.total is not None and self.total <= first + count
        )


class QRadarClient:
    """Requests to one console. All raise what `Api.request` raises."""

    def __init__(self, tools: Tools, settings: QRadarSettings) -> None:
        """Store the dependencies. Performs no I/O."""
        self._api = Api(tools, settings)
        self._token = settings.token
        self._log = tools.log
        self._version = settings.api_version
        self._is_version_known = False

    @property
    def version(self) -> str:
        """API version of the requests."""
        return self._version

    async def request(
        self, method: str, path: str, *, span: str | None = None, **query: Any
    ) -> ApiResponse:
        """Send a request to a path below `/api`. `span` is a range such as `0-49`."""
        bounds = {} if span is None else {"Range": f"items={span}"}
        headers = {"SEC": self._token.get_secret_value(), **bounds}
        asked = partial(self._api.request, method, f"/api{path}", query=query)
        try:
            answer = await asked(headers=headers | {"Version": self._version})
        except Refused as refused:
            if not await self._choose_version(refused):
                raise
            answer = await asked(headers=headers | {"Version": self._version})
        self._is_version_known = True
        return answer

    async def _choose_version(self, refused: Refused) -> bool:
        """Choose the latest version up to the configured one that the console supports.

        Returns whether there is another one than the refused version. Consoles below update package
        12 of version 7.5.0 do not support 26.0.
        """
        if self._is_version_known or refused.status not in _VERSION_REFUSED:
            return False
        try:
            versions = await self.versions()
        except (Broken, Refused):
            return False
        listed = (version for version in versions if version.get("removed") is not True)
        known = [name for version in listed if (name := text(version, "version"))]
        usable = [name for name in known if _rank(name) <= _rank(self._version)]
        if not usable or self._version in known:
            return False
        found = max(usable, key=_rank)
        self._log.warning("API version not supported", version=self._version, instead=found)
        self._version = found
        return True

    async def versions(self) -> Sequence[QRadarRecord]:
        """Return the API versions that the console supports. The request names none."""
        headers = {"SEC": self._token.get_secret_value()}
        path = "/api/help/versions"
        answer = await self._api.request("GET", path, headers=headers)
        return _parse_records(answer.json, path)

    async def part(self, path: str, first: int, count: int, **query: Any) -> RecordRange:
        """Return at most `count` records of a list, from `first` on."""
        answer = await self.request("GET", path, span=f"{first}-{first + count - 1}", **query)
        found = _TOTAL.fullmatch(answer.headers.get("Content-Range", "").strip())
        total = int(found[1]) if found else None
        return RecordRange(_parse_records(answer.json, path), total, answer.server_time)

    async def all(
        self, path: str, count: int, most: int | None = None, **query: Any
    ) -> list[QRadarRecord]:
        """Return all records of a list that does not change, at most `most`.

        `count` is the size of a range. Raises `Broken` if the list does not end.
        """
        found = list[QRadarRecord]()
        for _ in range(MAX_RANGES):
            first = len(found)
            part = await self.part(path, first, count, **query)
            found += part.records
            if part.ends(first, count) or len(found) == most:
                return found
        raise Broken(f"GET {path} has more than {MAX_RANGES} ranges")


def _rank(version: str) -> tuple[int, ...]:
    """Return a version as numbers; one that is none comes first."""
    return tuple(int(part) for part in version.split(".")) if _VERSION.fullmatch(version) else ()


def is_earlier(version: str, than: str) -> bool:
    """Return whether a version of the API is earlier than another one."""
    return _rank(version) < _rank(than)


def _parse_records(content: Any, path: str) -> list[QRadarRecord]:
    if not isinstance(content, list) or not all(isinstance(record, dict) for record in content):
        raise Broken(f"GET {path} did not return a list of objects")
    return content


@dataclass(frozen=True, slots=True)
class OffenseCursor:
    """Request for the offenses after an ID, except the first `skipped`, which have no usable ID."""

    after: int = 0
    skipped: int = 0

    def following(self, part: RecordRange, asked: int) -> OffenseCursor | None:
        """Return the next cursor, or None at the end.

        If the IDs are missing or unordered, it is the next offset in the same list.
        """
        if part.ends(self.skipped, asked):
            return None
        known = list(iterate_ids(part.records))
        reached = [self.after, *(identifier for _, identifier in known)]
        if not known or any(one >= next_one for one, next_one in pairwise(reached)):
            return OffenseCursor(self.after, self.skipped + len(part.records))
        index, last = known[-1]
        return OffenseCursor(last, len(part.records) - index - 1)

    def encode(self) -> list[int]:
        """Return the page token; the inverse of `decode`."""
        return [self.after, self.skipped]

    @classmethod
    def decode(cls, token: Any) -> Self:
        """Return the cursor of a page token; the inverse of `encode`."""
        return cls(*token)


def iterate_ids(records: Sequence[QRadarRecord]) -> Iterator[tuple[int, int]]:
    """Yield the offset and ID of the offenses that have an ID."""
    for index, record in enumerate(records):
        identifier = number(record, "id")
        if identifier is not None:
            yield index, identifier


OFFENSES = "/siem/offenses"
CLOSED, STARTED = "close_time", "start_time"
PERSISTED, UPDATED, FIRST_PERSISTED = (
    "last_persisted_time",
    "last_updated_time",
    "first_persisted_time",
)
_FIELDS = (
    *("id", "description", "status", "magnitude", "severity", "offense_type", "offense_source"),
    *("assigned_to", "follow_up", "closing_user", "closing_reason_id", "domain_id", "categories"),
    *("source_network", "destination_networks", "source_address_ids"),
    *("local_destination_address_ids", STARTED, CLOSED, UPDATED),
    *("rules(id,type)", "log_sources(id,name,type_name)"),
)
_LATER_FIELDS = (FIRST_PERSISTED, PERSISTED)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class OffensePage:
    """A page of offenses, and the next cursor, or None at the end."""

    part: RecordRange
    following: OffenseCursor | None


class OffenseClient:
    """Requests for offenses. Because consoles are slow, they list only the needed fields.

    Older API versions have no `last_persisted_time`, which changes with every change;
    `last_updated_time` changes only with new events. A request shows which one exists.
    """

    def __init__(self, console: QRadarClient, tools: Tools) -> None:
        """Store the dependencies. Performs no I/O."""
        self._console = console
        self._log = tools.log
        self._is_old = False

    @property
    def clock(self) -> str:
        """Field with the time of the last change."""
        return UPDATED if self._is_old else PERSISTED

    async def changed(self, window: Window, cursor: OffenseCursor, limit: int) -> OffensePage:
        """Return a page of the offenses that changed in a window, by the console's clock."""
        return await self._with_fallback(
            lambda: self._page(_build_time_filter(self.clock, window), cursor, limit)
        )

    async def created(self, window: Window, cursor: OffenseCursor, limit: int) -> OffensePage:
        """Return a page of the offenses that were created or began in a window."""
        return await self._with_fallback(
            lambda: self._page(self._build_creation_filter(window), cursor, limit)
        )

    async def closed(self, window: Window, cursor: OffenseCursor, limit: int) -> OffensePage:
        """Return a page of the offenses that were closed in a window."""
        return await self._with_fallback(
            lambda: self._page(_build_time_filter(CLOSED, window), cursor, limit)
        )

    async def after_id(self, cursor: OffenseCursor, limit: int) -> OffensePage:
        """Return a page of the offenses after an ID."""
        return await self._with_fallback(lambda: self._page("", cursor, limit))

    async def newest(self) -> tuple[int | None, RecordRange]:
        """Return the highest offense ID, and the response.

        The ID is 0 without offenses, and None if the newest one has no ID.
        """
        part = await self._console.part(OFFENSES, 0, 1, sort="-id", fields="id")
        known = [identifier for _, identifier in iterate_ids(part.records)]
        return (max(known, default=None) if part.records else 0), part

    async def one(self, identifier: str) -> QRadarRecord | None:
        """Return an offense by ID, or None if it does not exist."""
        if not (identifier.isascii() and identifier.isdecimal()):
            return None
        try:
            return await self._with_fallback(lambda: self._get(f"{OFFENSES}/{int(identifier)}"))
        except Refused as refused:
            if refused.is_missing:
                return None
            raise

    async def _page(self, clause: str, cursor: OffenseCursor, limit: int) -> OffensePage:
        wanted = " and ".join(filter(None, [clause, f"id > {cursor.after}"]))
        query = {"filter": wanted, "sort": "+id", "fields": self._fields}
        part = await self._console.part(OFFENSES, cursor.skipped, limit, **query)
        return OffensePage(part, cursor.following(part, limit))

    async def _get(self, path: str) -> QRadarRecord:
        answer = await self._console.request("GET", path, fields=self._fields)
        if not isinstance(answer.json, dict) or "id" not in answer.json:
            raise Broken(f"GET {path} returned a response without `id`")
        return answer.json

    def _build_creation_filter(self, window: Window) -> str:
        """Return the filter for creation time; older versions only have the start time."""
        began = _build_time_filter(STARTED, window)
        return (
            began if self._is_old else f"({_build_time_filter(FIRST_PERSISTED, window)} or {began})"
        )

    @property
    def _fields(self) -> str:
        return ",".join(_FIELDS if self._is_old else (*_FIELDS, *_LATER_FIELDS))

    async def _with_fallback(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Send a request, and repeat it with the fields of older API versions if refused."""
        try:
            return await ask()
        except Refused as refused:
            if self._is_old or refused.status != HTTPStatus.UNPROCESSABLE_ENTITY:
                raise
            self._is_old = True
            try:
                answered = await ask()
            except Refused:
                self._is_old = False
                raise refused from None
        message = "this API version does not return the time of manual offense changes"
        self._log.warning(message, missing_field=PERSISTED)
        return answered


def _build_time_filter(field: str, window: Window) -> str:
    start, end = to_milliseconds(window.start), to_milliseconds(window.end)
    return f"{field} >= {start} and {field} < {end}"


def get_creation_field(record: dict[str, Any]) -> str:
    """Return the field with the creation time of an offense."""
    return FIRST_PERSISTED if record.get(FIRST_PERSISTED) else STARTED
