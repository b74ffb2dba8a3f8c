"""Incident history of any size, written directly to the tables.

A few entities are in very many incidents, and most are in few, as in practice. Equal sizes give
equal histories.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

from sqlalchemy import Connection, Index, Table, func, insert, select, update
from sqlalchemy.schema import CreateIndex, DropIndex
from sqlalchemy.util import await_only

from tocsin.model import EntityKind, IncidentStatus, Severity
from tocsin.store import Database
from tocsin.store.statements import INCIDENT_CHANGE, INCIDENT_NUMBER, BulkStatement
from tocsin.store.tables import (
    EPOCH,
    coverage,
    entities,
    incident_entities,
    incident_techniques,
    incidents,
    sequences,
)

BEGIN = datetime(2024, 11, 1, tzinfo=UTC)
LENGTH = timedelta(days=730)
CHUNK = 10_000  # incidents of one transaction
PROVIDERS = ("sentinel", "edge", "crowdsec", "mail", "cloud")
TECHNIQUES = tuple(f"T{1001 + number}" for number in range(200))
_SYLLABLES = ("ba", "cor", "den", "fi", "gra", "lo", "mun", "per", "ri", "sol", "tek", "va", "zen")
_random_words = random.Random(1)
WORDS = tuple(
    sorted({"".join(_random_words.choices(_SYLLABLES, k=3)) for _ in range(10_000)})[:2_000]
)
Rows = list[tuple[Any, ...]]


async def fill(
    database: Database, count: int, begin: datetime = BEGIN, length: timedelta = LENGTH
) -> None:
    """Store `count` incidents with 5 entities each in a new database, at equal intervals."""
    by_value = next(index for index in incident_entities.indexes if "value" in index.name)
    await database.write(_prepare, by_value)
    for start in range(1, count + 1, CHUNK):
        end = min(start + CHUNK, count + 1)
        await database.write(_store, range(start, end), count, begin, length / count)
    await database.write(_finish, by_value, count)
    await database.write(_analyze)


def entity_of(kind: EntityKind, rank: int) -> str:
    """Return the entity of a kind by its frequency `rank`, from 0."""
    match kind:
        case EntityKind.IP:
            return f"10.{rank >> 16 & 255}.{rank >> 8 & 255}.{rank & 255}"
        case EntityKind.HOST:
            return f"ws-{rank:06}"
        case EntityKind.USER:
            return f"user{rank}@corp.example"
        case EntityKind.DOMAIN:
            return f"c{rank}.bad.example"
    return sha256(str(rank).encode()).hexdigest()


KINDS_OF_ENTITIES = (
    EntityKind.DOMAIN,
    EntityKind.FILE_HASH,
    EntityKind.HOST,
    EntityKind.IP,
    EntityKind.USER,
)


def skewed(chance: random.Random, count: int) -> int:
    """Return a number below `count`: the nth is drawn about 1/n as often as the first."""
    return int(count ** chance.random()) - 1


@dataclass(slots=True)
class _Chunk:
    incidents: Rows = field(default_factory=list)
    entities: Rows = field(default_factory=list)
    techniques: Rows = field(default_factory=list)


def _store(
    connection: Connection, numbers: range, count: int, begin: datetime, interval: timedelta
) -> None:
    rows = _Chunk()
    chance = random.Random(numbers.start)
    for number in numbers:
        _add(rows, number, begin + interval * number, count, chance)
    names = ("incident_number", "kind", "value", "change")
    load(connection, incidents, tuple(_COLUMNS), rows.incidents)
    load(connection, incident_entities, names, rows.entities)
    load(connection, incident_techniques, ("incident_number", "technique"), rows.techniques)


_COLUMNS = {
    "external_number": None,
    "raw_severity": None,
    "severity_assumed": False,
    "raw_status": None,
    "merged_into": None,
    "source_url": None,
    "source_changed_at": None,
    "alert_outcome": "quiet",
    "alert_count": 0,
    "coverage_id": 1,
    "number": None,
    "change": None,
    "provider": None,
    "external_id": None,
    "title": None,
    "description": None,
    "severity": None,
    "status": None,
    "techniques": None,
    "occurred_at": None,
    "created_at": None,
    "updated_at": None,
}
_USUAL = tuple(_COLUMNS.values())[:10]
_SEVERITIES, _WEIGHTS = tuple(Severity), (30, 30, 25, 12, 3)


def _add(rows: _Chunk, number: int, at: datetime, count: int, chance: random.Random) -> None:
    technique = TECHNIQUES[skewed(chance, len(TECHNIQUES))]
    rows.incidents.append(
        (
            *_USUAL,
            number,
            number,
            PROVIDERS[skewed(chance, len(PROVIDERS))],
            f"case-{number}",
            _words(chance, 6),
            _words(chance, 12),
            chance.choices(_SEVERITIES, _WEIGHTS)[0],
            IncidentStatus.NEW,
            [technique],
            at,
            at,
            at,
        )
    )
    rows.techniques.append((number, technique))
    pool = max(count // 2, 10)
    for kind in KINDS_OF_ENTITIES:
        rows.entities.append((number, kind, entity_of(kind, skewed(chance, pool)), number))


def _words(chance: random.Random, count: int) -> str:
    return " ".join(WORDS[skewed(chance, len(WORDS))] for _ in range(count))


def load(connection: Connection, table: Table, names: Sequence[str], rows: Rows) -> None:
    """Insert rows in the fastest way of the database."""
    if connection.dialect.name == "sqlite":
        BulkStatement(insert(table), names).run(connection, rows)
        return
    convert = [
        table.c[name].type.dialect_impl(connection.dialect).bind_processor(connection.dialect)
        for name in names
    ]
    driver: Any = connection.connection.driver_connection
    await_only(
        driver.copy_records_to_table(table.name, columns=names, records=_converted(rows, convert))
    )


def _converted(rows: Rows, convert: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    for row in rows:
        yield tuple(
            value if processor is None else processor(value)
            for value, processor in zip(row, convert, strict=True)
        )


def _prepare(connection: Connection, by_value: Index) -> None:
    """Drop the index of values until the end, where it is built at once."""
    connection.execute(DropIndex(by_value))
    words = dict.fromkeys(("provider", "stream", "source", "unit", "outcome"), "bench")
    counts = dict.fromkeys(("start", "end", "pages", "records", "new", "changed", "rejected"), 0)
    row = {"id": 1, **words, **counts, "past": False, "started_at": EPOCH, "finished_at": EPOCH}
    connection.execute(insert(coverage).values(row))


def _finish(connection: Connection, by_value: Index, count: int) -> None:
    connection.execute(CreateIndex(by_value))
    for name in (INCIDENT_NUMBER, INCIDENT_CHANGE):
        connection.execute(update(sequences).where(sequences.c.name == name).values(value=count))
    summary = (
        select(
            incident_entities.c.kind,
            incident_entities.c.value,
            func.count(),
            func.min(incidents.c.occurred_at),
            func.max(incidents.c.occurred_at),
            func.max(incidents.c.number),
        )
        .join(incidents, incidents.c.number == incident_entities.c.incident_number)
        .group_by(incident_entities.c.kind, incident_entities.c.value)
    )
    connection.execute(insert(entities).from_select(list(entities.c), summary))


def _analyze(connection: Connection) -> None:
    """Run what PostgreSQL does within minutes by itself."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("ANALYZE")
