"""New offenses, read in the order of their IDs, which always increase.

The position is an ID, not a time. A settle delay holds back the newest offenses. The other streams
read changes to offenses, and new offenses that cannot be parsed.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, ClassVar, Protocol, Self

from pydantic import AwareDatetime, TypeAdapter, ValidationError

from tocsin import Broken, Covered, Incident, Page, Refused
from tocsin_connectors.siem.qradar.client import (
    OffenseClient,
    OffenseCursor,
    QRadarRecord,
    RecordRange,
    get_creation_field,
    iterate_ids,
)
from tocsin_connectors.siem.qradar.lookups import OffenseLookups
from tocsin_connectors.siem.qradar.values import parse_time

NEW = "new"
_MAX_FAILURES = 2
"""Consecutive failed reads after which the reader skips to the newest offense."""
_MAX_PAGES = 1_000


class OffenseMapper(Protocol):
    """Provider that maps offenses."""

    settings: Any
    page_size: ClassVar[int]

    def to_incident(self, record: Mapping[str, Any]) -> Incident | None:
        """Return the incident of an offense."""
        ...

    async def complete(self, incident: Incident, record: Mapping[str, Any]) -> Incident:
        """Return the incident with the names of its IDs."""
        ...


@dataclass(frozen=True, slots=True)
class OffensePosition:
    """ID and time up to which new offenses were read."""

    after: int
    reached: AwareDatetime

    def encode(self) -> dict[str, Any]:
        """Return the stored position; the inverse of `decode`."""
        return {"after": self.after, "reached": self.reached.isoformat()}

    @classmethod
    def decode(cls, position: Mapping[str, Any]) -> Self:
        """Parse a stored position. Raises `Refused` for one of another version."""
        try:
            return TypeAdapter(cls).validate_python(dict(position))
        except ValidationError:
            message = "this version of Tocsin cannot read the stored position; it stays unchanged"
            raise Refused(f"{message}: {dict(position)!r:.200}") from None

    def page(self, end: datetime, *incidents: Incident, lost: str | None = None) -> Page:
        """Return the page that is stored with this position and covers the time up to `end`."""
        reached = max(self.reached, end)
        covered = Covered(source=NEW, start=self.reached, end=reached, lost=lost)
        position = replace(self, reached=reached).encode()
        count = len(incidents)
        return Page(next_position=position, incidents=incidents, covered=(covered,), records=count)


class NewOffenseReader:
    """Reader of the new offenses of one console."""

    def __init__(
        self, mapper: OffenseMapper, offenses: OffenseClient, lookups: OffenseLookups
    ) -> None:
        """Store the dependencies. Performs no I/O."""
        self._mapper = mapper
        self._offenses = offenses
        self._lookups = lookups
        self._consecutive_failures = 0

    async def read(
        self, position: Mapping[str, Any] | None, until: datetime
    ) -> AsyncGenerator[Page, None]:
        """Yield the settled offenses after the last ID; at first, only the start position.

        Offenses that exist by then are read by their change time.
        """
        if position is None:
            newest, part = await self._offenses.newest()
            if newest is not None:
                current = OffensePosition(newest, self._settled_time(part, until))
                yield Page(next_position=current.encode())
            return
        current = OffensePosition.decode(position)
        try:
            async with aclosing(self._read_pages(current, until)) as pages:
                async for page in pages:
                    current = OffensePosition.decode(page.next_position)
                    yield page
        except Broken as error:
            self._consecutive_failures += 1
            if self._consecutive_failures <= _MAX_FAILURES:
                raise
            yield await self._skip_unreadable(current, until, error)
        self._consecutive_failures = 0

    async def _read_pages(
        self, current: OffensePosition, until: datetime
    ) -> AsyncGenerator[Page, None]:
        cursor: OffenseCursor | None = OffenseCursor(current.after)
        end: datetime | None = None
        for _ in range(_MAX_PAGES):
            if cursor is None:
                return
            found = await self._offenses.after_id(cursor, self._mapper.page_size)
            end = end or self._settled_time(found.part, until)
            records = list(_select_settled(found.part.records, end))
            self._lookups.expect(records)
            incidents = [incident async for incident in self._incidents(records)]
            following = None if len(records) < len(found.part.records) else found.following
            known = [identifier for _, identifier in iterate_ids(records)]
            if following is not None:  # unordered IDs advance only as far as the cursor
                known = [following.after]
            before, current = current.after, replace(current, after=max([current.after, *known]))
            if incidents or end > current.reached or current.after > before:
                yield current.page(current.reached if following else end, *incidents)
            cursor = following
        raise Broken(f"there are more than {_MAX_PAGES:,} pages of new offenses")

    async def _incidents(self, records: Sequence[QRadarRecord]) -> AsyncGenerator[Incident, None]:
        for record in records:
            with suppress(ValueError):
                if (incident := self._mapper.to_incident(record)) is not None:
                    yield await self._mapper.complete(incident, record)

    async def _skip_unreadable(
        self, current: OffensePosition, until: datetime, error: Broken
    ) -> Page:
        """Return a page after the offenses that cannot be listed, which are reported as lost.

        They are requested again by time, where each offense can be tried separately.
        """
        newest, part = await self._offenses.newest()
        if newest is None or newest <= current.after:
            raise error
        return replace(current, after=newest).page(self._settled_time(part, until), lost=str(error))

    def _settled_time(self, part: RecordRange, until: datetime) -> datetime:
        """Return the time up to which offenses are complete, by the console's clock if known."""
        now = part.server_time or until
        settled: datetime = now - self._mapper.settings.settle_delay
        return settled.astimezone(UTC).replace(microsecond=0)


def _select_settled(records: Sequence[QRadarRecord], end: datetime) -> Sequence[QRadarRecord]:
    """Return the offenses before the first one that was created later."""
    for index, record in enumerate(records):
        with suppress(ValueError):
            created_at = parse_time(record, get_creation_field(record))
            if created_at is not None and created_at >= end:
                return records[:index]
    return records
