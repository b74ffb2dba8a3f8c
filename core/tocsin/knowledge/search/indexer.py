"""Indexer of new and changed incidents."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from time import perf_counter
from typing import Any, NoReturn

from sqlalchemy import Connection, RowMapping, bindparam, select

from tocsin.clock import Clock
from tocsin.events import Notifiers
from tocsin.knowledge.search.documents import SearchDocument, index_documents
from tocsin.knowledge.search.entity_counts import EntityOccurrence, count_entities, note_providers
from tocsin.loops import beat, run_forever
from tocsin.model import Entity, EntityKind
from tocsin.store import INCIDENT_CHANGE, Database, allot_numbers, load_last_allotted
from tocsin.store.tables import (
    documents,
    incident_alerts,
    incident_entities,
    incidents,
)

INDEXED_CHANGES = "incidents_indexed"
"""Sequence of the last `change` of incidents that is indexed."""
INCIDENTS = "incidents"
"""Notification topic for stored incidents."""
BATCH = 100
"""The most incidents indexed in one transaction."""
MIN_BATCH = 5
MAX_SECONDS = 0.02
"""The time that a transaction is to take, since SQLite's other writers wait for it."""
ALERTS = 50
"""Number of different alert titles indexed per incident."""
_POLL = timedelta(seconds=1)


class SearchIndexer:
    """Indexes incidents in the order of their changes, on one node at a time."""

    def __init__(self, database: Database, clock: Clock, bells: Notifiers) -> None:
        self._database = database
        self._clock = clock
        self._bell = bells[INCIDENTS]
        self._batch = BATCH

    async def run(self) -> NoReturn:
        """Index changed incidents until cancelled."""
        await run_forever(self._step, self._clock, "indexing incidents")

    async def _step(self) -> None:
        await self.catch_up()
        await self._bell.wait(_POLL)

    async def catch_up(self) -> int:
        """Index all changed incidents, and return their number."""
        done = 0
        while await self._database.lookup(count_unindexed):
            batch = await self._database.write_behind(_index_timed, self._batch)
            count = batch.count
            done += count
            self._batch = adapt_batch(self._batch, batch)
            beat()
            if not count:
                break
        return done


@dataclass(frozen=True, slots=True)
class TimedBatch:
    """A batch of indexed incidents, and the time that it took."""

    count: int
    seconds: float


def adapt_batch(size: int, batch: TimedBatch) -> int:
    """Return the size of the next batch: half or double, by how long this one took."""
    if batch.seconds > MAX_SECONDS:
        return max(MIN_BATCH, min(size, batch.count) // 2)
    return min(BATCH, size * 2) if batch.seconds < MAX_SECONDS / 2 else size


def _index_timed(connection: Connection, limit: int) -> TimedBatch:
    began = perf_counter()
    count = index_batch(connection, limit)
    return TimedBatch(count, perf_counter() - began)


def count_unindexed(connection: Connection) -> int:
    """Return the number of incident changes that are not indexed yet."""
    return load_last_allotted(connection, INCIDENT_CHANGE) - load_last_allotted(
        connection, INDEXED_CHANGES
    )


def index_batch(connection: Connection, limit: int = BATCH) -> int:
    """Index the next changed incidents, and return their number; 0 if there are no more.

    The transaction locks the sequence before it reads, so that only one indexes at a time.
    """
    done = allot_numbers(connection, INDEXED_CHANGES, 0).stop - 1
    last = load_last_allotted(connection, INCIDENT_CHANGE)  # read before the rows up to it
    rows = connection.execute(_changed, {"after": done, "limit": limit}).mappings().all()
    if not rows:
        allot_numbers(connection, INDEXED_CHANGES, last - done)  # a new epoch leaves numbers out
        return 0
    batch = _IncidentBatch.load(connection, rows)
    note_providers(connection, batch.providers())
    count_entities(connection, batch.occurrences())
    index_documents(connection, [batch.document(row) for row in rows])
    allot_numbers(connection, INDEXED_CHANGES, rows[-1]["change"] - done)
    return len(rows)


_changed = (
    select(incidents)
    .where(incidents.c.change > bindparam("after"))
    .order_by(incidents.c.change)
    .limit(bindparam("limit"))
)
_numbers: Any = bindparam("numbers", expanding=True)
_named = incident_entities.c
_entities = select(_named.incident_number, _named.kind, _named.value, _named.change).where(
    _named.incident_number.in_(_numbers)
)
_alerts = (
    select(incident_alerts.c.incident_number, incident_alerts.c.title)
    .where(incident_alerts.c.incident_number.in_(_numbers))
    .distinct()
)
_before = select(documents.c.record, documents.c.change, documents.c.at).where(
    documents.c.kind == "incident", documents.c.record.in_(bindparam("records", expanding=True))
)


@dataclass(frozen=True, slots=True)
class _IncidentBatch:
    """Incidents with all data to index, and their previous state in the index."""

    rows: Sequence[RowMapping]
    entities: Mapping[int, list[tuple[Entity, int]]]
    """Each with the `change` at which it was first stored, 0 for the oldest."""
    alerts: Mapping[int, list[str]]
    before: Mapping[int, tuple[int, datetime]]

    @classmethod
    def load(cls, connection: Connection, rows: Sequence[RowMapping]) -> _IncidentBatch:
        """Return the incidents at the changes of these rows."""
        changes = {row["number"]: row["change"] for row in rows}
        numbers = {"numbers": list(changes)}
        found = defaultdict(list)
        for number, kind, value, change in connection.execute(_entities, numbers):
            # entities stored since the rows were read belong to the incident's next change
            if (change or 0) <= changes[number]:
                found[number].append((Entity(EntityKind(kind), value), change or 0))
        alerts = defaultdict(list)
        for number, title in connection.execute(_alerts, numbers):
            alerts[number].append(title)
        before = connection.execute(_before, {"records": [str(number) for number in changes]})
        known = {int(record): (change or 0, at) for record, change, at in before}
        return cls(rows, found, alerts, known)

    def document(self, row: RowMapping) -> SearchDocument:
        """Return the search document of an incident."""
        titles = sorted(self.alerts.get(row["number"], ()))[:ALERTS]
        names = (row["external_id"], row["external_number"])
        return SearchDocument(
            kind="incident",
            record=str(row["number"]),
            title=row["title"],
            text="\n".join([row["description"], *titles]),
            at=row["occurred_at"],
            facets={name: row[name] for name in ("severity", "status", "provider")},
            entities=sorted(
                (entity for entity, _ in self.entities.get(row["number"], ())),
                key=lambda entity: (entity.kind, entity.value),
            ),
            techniques=row["techniques"],
            identifiers=[name for name in dict.fromkeys(names) if name],
            change=row["change"],
        )

    def providers(self) -> Iterator[tuple[Entity, str]]:
        """Yield each entity with the provider of its incident."""
        for row in self.rows:
            for entity, _ in self.entities.get(row["number"], ()):
                yield entity, row["provider"]

    def occurrences(self) -> Iterator[EntityOccurrence]:
        """Yield the entities that are not counted yet, or now have an earlier time."""
        for row in self.rows:
            number, at = row["number"], row["occurred_at"]
            change, before = self.before.get(number, (-1, at))
            for entity, since in self.entities.get(number, ()):
                if since > change or at < before:
                    yield EntityOccurrence(entity, number, at, since > change)
