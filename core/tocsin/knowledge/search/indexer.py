"""Indexer of new and changed incidents."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from time import perf_counter
from typing import NoReturn

from sqlalchemy import Connection, RowMapping, bindparam, select

from tocsin.background import BackgroundWork
from tocsin.clock import Clock
from tocsin.events import Notifiers
from tocsin.knowledge.search.documents import (
    DOCUMENT_ID,
    WITHOUT_PREFIXES,
    SearchDocument,
    TokenizedDocument,
    add_prefixes,
    index_documents,
    store_tokenized,
    tokenize_document,
    uses_tsvector,
)
from tocsin.knowledge.search.entity_counts import EntityOccurrence, EntityRows
from tocsin.loops import beat, run_forever
from tocsin.model import Entity, EntityKind
from tocsin.store import (
    INCIDENT_CHANGE,
    Database,
    allot_numbers,
    force_index_scans,
    is_in,
    load_last_allotted,
    restart_sequences,
)
from tocsin.store.tables import (
    documents,
    incident_alerts,
    incident_comments,
    incident_entities,
    incidents,
)

INDEXED_CHANGES = "incidents_indexed"
"""Sequence of the last `change` of incidents that is indexed."""
INCIDENTS = "incidents"
"""Notification topic for stored incidents."""
BATCH = 100
"""The most incidents indexed in one transaction."""
MIN_BATCH = 10
MAX_SECONDS = 0.02
"""The time that a transaction is to take, since SQLite's other writers wait for it."""
ALERTS = 50
"""Number of different alert titles indexed per incident."""
COMMENTS = 50
"""Number of comments indexed per incident, the latest ones."""
_SLICE = 10  # incidents that are prepared without a rest, where the loop has other work
_IDLE_SLICE = 25
_POLL = timedelta(seconds=1)


class SearchIndexer:
    """Indexes incidents in the order of their changes, on one node at a time.

    The writer of SQLite only stores what a thread has prepared, which rests while callers and
    deliveries keep the event loop busy.
    """

    def __init__(self, database: Database, clock: Clock, bells: Notifiers) -> None:
        self._database = database
        self._clock = clock
        self._bell = bells[INCIDENTS]
        self._batch = BATCH
        self._work = BackgroundWork()
        self._may_lack_prefixes = True

    async def run(self) -> NoReturn:
        """Index changed incidents until cancelled."""
        await run_forever(self._step, self._clock, "search indexer")

    async def _step(self) -> None:
        if await self.catch_up() is None:
            await self._stand_by()
        elif self._may_lack_prefixes:
            self._may_lack_prefixes = await self._database.write_behind(add_prefixes, BATCH)
        else:
            await self._bell.wait(_POLL)

    async def _stand_by(self) -> None:
        """Return when incidents wait, and no node has indexed any for a second.

        Several nodes would prepare the same incidents, and all but one in vain.
        """
        before = None
        while True:
            await self._clock.sleep(_POLL)
            beat()
            reached = await self._database.lookup(_find_last_indexed)
            if reached is not None and reached == before:
                return
            before = reached

    async def catch_up(self) -> int | None:
        """Index all changed incidents, and return their number; None if another node does it."""
        done = 0
        while (batch := await self._database.read(load_batch, self._batch)) is not None:
            stored = await self._database.write_behind(_store_timed, await self._prepare(batch))
            beat()
            if stored is None:
                return None
            done += stored.count
            self._batch = adapt_batch(self._batch, stored)
            await self._work.rest(stored.seconds)
        return done

    async def _prepare(self, batch: IncidentBatch) -> PreparedBatch:
        tokenized: list[TokenizedDocument] = []
        while len(tokenized) < len(batch.rows):
            size = _SLICE if self._work.is_yielding else _IDLE_SLICE
            part = batch.rows[len(tokenized) : len(tokenized) + size]
            tokenized += await self._work.run(batch.tokenize, part)
        entities = await self._work.run(batch.count_entities)
        return PreparedBatch(batch, tokenized, entities)


@dataclass(frozen=True, slots=True)
class TimedBatch:
    """A batch of indexed incidents, and the time for which other writers waited."""

    count: int
    seconds: float


def adapt_batch(size: int, batch: TimedBatch) -> int:
    """Return the size of the next batch: half or double, by how long this one took."""
    if batch.seconds > MAX_SECONDS:
        return max(MIN_BATCH, min(size, batch.count) // 2)
    return min(BATCH, size * 2) if batch.seconds < MAX_SECONDS / 2 else size


def _store_timed(connection: Connection, prepared: PreparedBatch) -> TimedBatch | None:
    began = perf_counter()
    if not prepared.store(connection):
        return None
    waited = perf_counter() - began if connection.dialect.name == "sqlite" else 0
    return TimedBatch(len(prepared.batch.rows), waited)


def count_unindexed(connection: Connection) -> int:
    """Return the number of incident changes that are not indexed yet."""
    return load_last_allotted(connection, INCIDENT_CHANGE) - load_last_allotted(
        connection, INDEXED_CHANGES
    )


def _find_last_indexed(connection: Connection) -> int | None:
    """Return the last change that is indexed, None if all are."""
    indexed = load_last_allotted(connection, INDEXED_CHANGES)
    return None if indexed == load_last_allotted(connection, INCIDENT_CHANGE) else indexed


def restart_index(connection: Connection) -> None:
    """Have all incidents indexed again, into an index that is empty."""
    restart_sequences(connection, INDEXED_CHANGES, DOCUMENT_ID, WITHOUT_PREFIXES)


def index_batch(connection: Connection, limit: int = BATCH) -> int:
    """Index the next changed incidents in this transaction; return their number, 0 for none."""
    batch = load_batch(connection, limit)
    if batch is None:
        return 0
    PreparedBatch(batch, batch.tokenize(batch.rows), batch.count_entities()).store(connection)
    return len(batch.rows)


@force_index_scans
def load_batch(connection: Connection, limit: int) -> IncidentBatch | None:
    """Return the next changed incidents, None if everything is indexed."""
    after = load_last_allotted(connection, INDEXED_CHANGES)
    last = load_last_allotted(connection, INCIDENT_CHANGE)  # read before the rows up to it
    if after == last:
        return None
    rows = connection.execute(_changed, {"after": after, "limit": limit}).mappings().all()
    until = rows[-1]["change"] if rows else last  # a new epoch leaves numbers out
    return IncidentBatch.load(connection, rows, after, until)


def reindex_incidents(connection: Connection, numbers: Sequence[int]) -> None:
    """Update the documents of incidents whose content was rewritten, if they have any.

    Each keeps the change that it reflects, so the indexer counts its entities as before.
    """
    query = select(incidents).where(incidents.c.number.in_(numbers))
    rows = connection.execute(query).mappings().all()
    index_documents(connection, IncidentBatch.load(connection, rows, 0, 0).rewrite_documents())


_changed = (
    select(
        *(
            incidents.c[name]
            for name in (
                "number",
                "change",
                "provider",
                "external_id",
                "external_number",
                "title",
                "description",
                "severity",
                "status",
                "occurred_at",
                "techniques",
            )
        )
    )
    .where(incidents.c.change > bindparam("after"))
    .order_by(incidents.c.change)
    .limit(bindparam("limit"))
)
_named = incident_entities.c
_entities = select(_named.incident_number, _named.kind, _named.value, _named.change).where(
    is_in(_named.incident_number, "numbers")
)
_alerts = (
    select(incident_alerts.c.incident_number, incident_alerts.c.title)
    .where(is_in(incident_alerts.c.incident_number, "numbers"))
    .distinct()
)
_comments = (
    select(incident_comments.c.incident_number, incident_comments.c.text)
    .where(is_in(incident_comments.c.incident_number, "numbers"))
    .order_by(incident_comments.c.incident_number, incident_comments.c.id)
)
_before = select(documents.c.record, documents.c.id, documents.c.change, documents.c.at).where(
    documents.c.kind == "incident", is_in(documents.c.record, "records")
)


@dataclass(frozen=True, slots=True)
class IndexedVersion:
    """An incident as it is in the index."""

    id: int
    change: int
    at: datetime


@dataclass(frozen=True, slots=True)
class IncidentBatch:
    """Changed incidents with all data to index, and their previous state in the index."""

    after: int
    """The last `change` that was indexed before."""
    until: int
    """The last one that is indexed with this batch."""
    postgres: bool
    rows: Sequence[RowMapping]
    entities: Mapping[int, list[tuple[Entity, int]]]
    """Each with the `change` at which it was first stored, 0 for the oldest."""
    alerts: Mapping[int, list[str]]
    comments: Mapping[int, list[str]]
    before: Mapping[int, IndexedVersion]

    @classmethod
    def load(
        cls, connection: Connection, rows: Sequence[RowMapping], after: int, until: int
    ) -> IncidentBatch:
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
        comments = defaultdict(list)
        for number, comment in connection.execute(_comments, numbers):
            comments[number].append(comment)
        before = connection.execute(_before, {"records": [str(number) for number in changes]})
        known = {
            int(record): IndexedVersion(id_, change or 0, at) for record, id_, change, at in before
        }
        postgres = uses_tsvector(connection)
        return cls(after, until, postgres, rows, found, alerts, comments, known)

    def tokenize(self, rows: Iterable[RowMapping]) -> list[TokenizedDocument]:
        """Return the documents of some of the incidents."""
        return [tokenize_document(self._document(row), postgres=self.postgres) for row in rows]

    def rewrite_documents(self) -> list[SearchDocument]:
        """Return new documents for those in the index, of the same changes."""
        return [
            replace(self._document(row), change=self.before[row["number"]].change)
            for row in self.rows
            if row["number"] in self.before
        ]

    def count_entities(self) -> EntityRows:
        """Return the rows that count the entities of the incidents."""
        return EntityRows.build(self._occurrences(), self._providers())

    def _document(self, row: RowMapping) -> SearchDocument:
        """Return the search document of an incident."""
        titles = sorted(self.alerts.get(row["number"], ()))[:ALERTS]
        comments = self.comments.get(row["number"], ())[-COMMENTS:]
        names = (row["external_id"], row["external_number"])
        return SearchDocument(
            kind="incident",
            record=str(row["number"]),
            title=row["title"],
            text="\n".join([row["description"], *titles, *comments]),
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

    def _providers(self) -> Iterator[tuple[Entity, str]]:
        """Yield each entity with the provider of its incident."""
        for row in self.rows:
            for entity, _ in self.entities.get(row["number"], ()):
                yield entity, row["provider"]

    def _occurrences(self) -> Iterator[EntityOccurrence]:
        """Yield the entities that are not counted yet, or now have an earlier time."""
        for row in self.rows:
            number, at = row["number"], row["occurred_at"]
            before = self.before.get(number) or IndexedVersion(0, -1, at)
            for entity, since in self.entities.get(number, ()):
                if since > before.change or at < before.at:
                    yield EntityOccurrence(entity, number, at, since > before.change)


@dataclass(frozen=True, slots=True)
class PreparedBatch:
    """A batch with everything to store of it."""

    batch: IncidentBatch
    documents: Sequence[TokenizedDocument]
    entities: EntityRows

    def store(self, connection: Connection) -> bool:
        """Store the batch; False if another node has indexed incidents since it was loaded.

        The transaction locks the sequence first, so that only one stores at a time.
        """
        if allot_numbers(connection, INDEXED_CHANGES, 0).stop - 1 != self.batch.after:
            return False
        self.entities.store(connection)
        before = self.batch.before.items()
        known = {("incident", str(number)): version.id for number, version in before}
        store_tokenized(connection, self.documents, known)
        allot_numbers(connection, INDEXED_CHANGES, self.batch.until - self.batch.after)
        return True
