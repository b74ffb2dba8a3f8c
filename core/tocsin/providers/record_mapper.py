"""Record mapper: incidents and rejected records of one page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import orjson
from pydantic import ValidationError

from tocsin.errors import Broken, Misconfigured, PluginFailure, TryLater
from tocsin.hookspecs import Tools
from tocsin.model import MAX_QUARANTINED, Covered, Incident, Json, Page, Rejected, Window
from tocsin.providers.cursor import WindowCursor, compute_digest

_LONGEST_REASON = 300


class RecordSource(Protocol):
    """Record functions of a `WindowedProvider`."""

    page_size: ClassVar[int]
    settings: Any
    tools: Tools

    def record_version(self, record: Mapping[str, Json]) -> Json:
        """Return the part of a record that changes only when the incident changes."""
        ...

    def note_shapes(self, kind: str, records: Sequence[Mapping[str, Json]]) -> None:
        """Note the shapes of some raw records."""
        ...

    def to_incident(self, record: Mapping[str, Json]) -> Incident | None:
        """Return the incident of a record."""
        ...

    async def complete(self, incident: Incident, record: Mapping[str, Json]) -> Incident:
        """Return the incident with details that are not in the list."""
        ...


@dataclass(slots=True)
class MappedRecords:
    """Incidents and rejected records of one page."""

    incidents: list[Incident] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    brought: dict[str, int] = field(default_factory=dict)
    """The digests of new records, with their change times in seconds."""
    records: int = 0
    incomplete: list[str] = field(default_factory=list)
    """The IDs of incidents whose details could not be read."""
    stopped: PluginFailure | None = None
    """The error that stopped the rest of the page."""

    def page(self, cursor: WindowCursor, *covered: Covered) -> Page:
        """Return the page to store with this cursor."""
        return Page(
            next_position=cursor.encode(),
            incidents=tuple(self.incidents),
            rejected=tuple(self.rejected),
            covered=covered,
            records=self.records,
            incomplete=tuple(self.incomplete),
        )


class RecordMapper:
    """Maps the records of one stream; `past` for backfills, whose records may be old."""

    def __init__(self, source: RecordSource, stream: str, *, past: bool = False) -> None:
        self._source = source
        self._stream = stream
        self._past = past

    async def take(
        self, records: Sequence[Mapping[str, Json]], seen: Mapping[str, int], window: Window
    ) -> MappedRecords:
        """Map the records that were not seen before."""
        taken = MappedRecords(records=len(records))
        fresh: list[Mapping[str, Json]] = []
        for record in records:
            name = compute_digest(self._source.record_version(record))
            if name in seen or name in taken.brought:
                continue
            fresh.append(record)
            try:
                taken.brought[name] = await self._take(record, window, taken)
            except (TryLater, Misconfigured) as stopped:
                taken.stopped = stopped
                break
        if not self._past:
            self._source.note_shapes(self._stream, fresh)
        return taken

    async def _take(self, record: Mapping[str, Json], window: Window, taken: MappedRecords) -> int:
        """Map one record, and return its change time in seconds."""
        try:
            incident = self._source.to_incident(record)
        except Exception as error:  # noqa: BLE001 - a bug with one record must not stop the feed
            taken.rejected.append(self._aside(record, window, error))
            incident = None
        if incident is not None:
            taken.incidents.append(await self._complete(incident, record, window, taken))
        changed_at = window.end if incident is None else incident.changed_at or window.end
        return int(changed_at.timestamp())

    async def _complete(
        self, incident: Incident, record: Mapping[str, Json], window: Window, taken: MappedRecords
    ) -> Incident:
        """Return the incident with its details, without them where they cannot be read."""
        try:
            return await self._source.complete(incident, record)
        except (TryLater, Misconfigured):
            raise
        except Broken as error:
            message = "incident stored without details"
            facts = {"external_id": incident.external_id, "reason": str(error)}
            self._source.tools.log.warning(message, **facts)
            taken.incomplete.append(incident.external_id)
        except Exception as error:  # noqa: BLE001 - one incident must not stop the feed
            taken.rejected.append(self._aside(record, window, error, "details: "))
        return incident

    def _aside(
        self, record: Mapping[str, Json], window: Window, error: Exception, what: str = ""
    ) -> Rejected:
        reason = what + _describe_error(error)
        return Rejected(
            source=self._stream,
            location=f"changed from {window.start.isoformat()} to {window.end.isoformat()}",
            reason=reason[:_LONGEST_REASON],
            content=orjson.dumps(record)[:MAX_QUARANTINED],
        )


def _describe_error(error: Exception) -> str:
    match error:
        case ValidationError():
            details = error.errors(include_url=False, include_context=False, include_input=False)
            return "; ".join(
                f"{'.'.join(map(str, detail['loc']))}: {detail['msg']}" for detail in details
            )
        case ValueError() | PluginFailure():
            return str(error)
    return f"plugin bug: {error!r}"
