"""Indexer of new and changed incidents."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NoReturn

from sqlalchemy import Connection, RowMapping, bindparam, select

from tocsin.clock import Clock
from tocsin.events import Notifiers
from tocsin.knowledge.search.documents import SearchDocument, index_documents
from tocsin.knowledge.search.entity_counts import EntityOccurrence, count_entities, note_providers
from tocsin.loops import run_forever
from tocsin.model import Entity, EntityKind
from tocsin.store import Database
from tocsin.store.sequences import INCIDENT_CHANGE, allot_numbers, load_last_allotted
from tocsin.store.tables import (
    documents,
    incident_alerts,
    incident_entities,
    incidents,
)

INDEXED_CHANGES = "incidents_indexed"
"""The sequence that says up to which `change` incidents are indexed."""
INCIDENTS = "incidents"
"""The notifier that is rung when incidents were stored."""
BATCH = 100
"""So many incidents are indexed in one transaction, which keeps SQLite's writer some 30 ms."""
ALERTS = 50
"""So many different titles of alerts of an incident are indexed."""
_POLL = timedelta(seconds=1)


class SearchIndexer:
    """Indexes incidents in the order of their changes; of several nodes, one at a time."""

    def __init__(self, database: Database, clock: Clock, notifiers: Notifiers) -> None:
        self._database = database
        self._clock = clock
        self._notifier = notifiers[INCIDENTS]

    async def run(self) -> NoReturn:
        """Index what changes until cancelled."""
        await run_forever(self._step, self._clock, "indexing incidents")

    async def _step(self) -> None:
        await self.catch_up()
        await self._notifier.wait(_POLL)

    async def catch_up(self) -> int:
        """Index everything that has changed, and return how many incidents that were."""
        done = 0
        while await self._database.lookup(count_unindexed):
            count = await self._database.write(index_batch)
            done += count
            if not count:
                break
        return done


def count_unindexed(connection: Connection) -> int:
    """Return how many changes of incidents are not indexed yet."""
    return load_last_allotted(connection, INCIDENT_CHANGE) - load_last_allotted(
        connection, INDEXED_CHANGES
    )


def index_batch(connection: Connection, limit: int = BATCH) -> int:
    """Index the next incidents that changed, and return how many; 0 where there are no more.

    The transaction that holds the sequence before looking is the only one that indexes.
    """
    done = allot_numbers(connection, INDEXED_CHANGES, 0).stop - 1
    rows = connection.execute(_changed, {"after": done, "limit": limit}).mappings().all()
    if not rows:
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
_entities = select(incident_entities).where(incident_entities.c.incident_number.in_(_numbers))
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
    """Incidents with everything that is indexed of them, and how they were indexed before."""

    rows: Sequence[RowMapping]
    entities: Mapping[int, list[tuple[Entity, int]]]
    """With the `change` at which each was first stored, 0 for the oldest."""
    alerts: Mapping[int, list[str]]
    before: Mapping[int, tuple[int, datetime]]

    @classmethod
    def load(cls, connection: Connection, rows: Sequence[RowMapping]) -> _IncidentBatch:
        """Return the incidents as they were at the changes of these rows."""
        changes = {row["number"]: row["change"] for row in rows}
        numbers = {"numbers": list(changes)}
        found = defaultdict(list)
        for number, kind, value, change in connection.execute(_entities, numbers):
            # what was stored since the rows were read comes with the incident's next change
            if (change or 0) <= changes[number]:
                found[number].append((Entity(EntityKind(kind), value), change or 0))
        alerts = defaultdict(list)
        for number, title in connection.execute(_alerts, numbers):
            alerts[number].append(title)
        before = connection.execute(_before, {"records": [str(number) for number in changes]})
        known = {int(record): (change or 0, at) for record, change, at in before}
        return cls(rows, found, alerts, known)

    def document(self, row: RowMapping) -> SearchDocument:
        """Return an incident as it is searched for."""
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
        """Yield each entity with the provider that its incident is from."""
        for row in self.rows:
            for entity, _ in self.entities.get(row["number"], ()):
                yield entity, row["provider"]

    def occurrences(self) -> Iterator[EntityOccurrence]:
        """Yield the entities that do not count yet, or are known to be older now."""
        for row in self.rows:
            number, at = row["number"], row["occurred_at"]
            change, before = self.before.get(number, (-1, at))
            for entity, since in self.entities.get(number, ()):
                if since > change or at < before:
                    yield EntityOccurrence(entity, number, at, since > change)
