"""Documents of incidents: that they are what the rows say, are rebuilt, and counted."""

from __future__ import annotations

import hashlib
import random
from datetime import timedelta

import pytest
from sqlalchemy import delete, func, select, update

from incident_rows import NOW, add_incidents, change_incident
from stored_documents import compare_documents
from tocsin import Entity, EntityKind, Incident, IncidentStatus, Page
from tocsin.clock import SystemClock
from tocsin.incidents.coverage.positions import StreamKey
from tocsin.incidents.documents import (
    COLUMNS,
    DOCUMENT_VERSION,
    DocumentRebuild,
    rebuild_documents,
    render_document,
)
from tocsin.incidents.storage.alerts import IncidentPolicy
from tocsin.incidents.storage.store import store_page
from tocsin.model import Severity
from tocsin.store.tables import (
    incident_counts,
    incident_documents,
    incident_entities,
    incidents,
    sequences,
)

KEY, POLICY = StreamKey("edge", "changed"), IncidentPolicy("https://tocsin.example.org")
FORM = "b73263"
"""The start of the digest of a document of version 1."""


def any_incident(draw: random.Random) -> Incident:
    names = [f"192.0.2.{number}" for number in range(6)] + ["2001:db8::1", "Ä"]
    kinds = [EntityKind.IP, EntityKind.USER, EntityKind.HOST]
    entities = [Entity(draw.choice(kinds), name) for name in draw.sample(names, draw.randint(0, 4))]
    return Incident(
        external_id=str(draw.randint(1, 6)),
        title=draw.choice(["a", 'quote " and \\', "emoji 🔔", "line\nbreak", "nul\0"]),
        description=draw.choice(["", "ü" * 50]),
        severity=draw.choice(list(Severity)),
        status=draw.choice(list(IncidentStatus)),
        raw_status=draw.choice([None, "open"]),
        occurred_at=NOW + timedelta(microseconds=draw.randint(0, 10**9)),
        techniques=tuple(draw.sample(["T1110", "T1059.001"], draw.randint(0, 2))),
        entities=tuple(entities),
    )


@pytest.mark.parametrize("seed", range(3))
async def test_a_stored_document_is_what_the_rows_say(database, seed):
    draw = random.Random(seed)
    for revision in range(8):
        page = tuple(any_incident(draw) for _ in range(draw.randint(1, 5)))
        page = Page(next_position={"at": revision}, incidents=page)
        now = NOW + timedelta(seconds=revision)
        await database.write(store_page, KEY, page, revision=revision, policy=POLICY, now=now)
        stored = await database.read(compare_documents)
        assert stored == await database.read(
            lambda c: c.scalar(select(func.count(incidents.c.number)))
        )


async def test_a_changed_form_needs_a_new_version():
    row = {name: name for name in COLUMNS} | dict.fromkeys(COLUMNS[-3:], NOW)
    entities = [("user", "ana", None), ("ip", "192.0.2.1", "source")]
    document = render_document(row, entities, None)
    digest = hashlib.sha256(f"{DOCUMENT_VERSION}{document}".encode()).hexdigest()
    assert digest.startswith(FORM), "increase DOCUMENT_VERSION, and then change FORM"


async def test_missing_and_outdated_documents_are_rebuilt(database):
    await database.write(add_incidents, 7, entities=[("ip", "192.0.2.1")])
    documents = incident_documents.c

    def spoil(connection):
        connection.execute(delete(incident_documents).where(documents.number == 2))
        outdated = update(incident_documents).where(documents.number == 3)
        connection.execute(outdated.values(version=DOCUMENT_VERSION - 1, document="old"))
        changed = update(incidents).where(incidents.c.number == 4)
        connection.execute(changed.values(change=1_000, title="new"))

    await database.write(spoil)
    last, steps = 0, 0
    while last is not None:  # in batches, as after an upgrade
        last = await database.write(rebuild_documents, last, 3)
        steps += 1
    assert (await database.read(compare_documents), steps) == (7, 4)


async def test_documents_are_rebuilt_once_for_each_version(database):
    def forget(connection):
        connection.execute(delete(incident_documents))

    rebuild = DocumentRebuild(database, SystemClock())
    await database.write(add_incidents, 2)
    for rebuilt in (2, 0):
        await database.write(forget)
        await rebuild.rebuild()
        assert await database.read(compare_documents) == rebuilt
    version = sequences.c.name == "incident_documents_version"
    await database.write(lambda c: c.execute(update(sequences).where(version).values(value=0)))
    await rebuild.rebuild()
    assert await database.read(compare_documents) == 2


@pytest.mark.parametrize("seed", range(3))
async def test_incidents_are_counted_exactly(database, seed):
    draw = random.Random(seed)

    def count(connection):
        by = (incidents.c.severity, incidents.c.status)
        rows = connection.execute(select(*by, func.count()).group_by(*by)).all()
        counted = connection.execute(select(incident_counts).where(incident_counts.c.count != 0))
        return sorted(map(tuple, rows)), sorted(map(tuple, counted))

    def remove(connection, number):
        for table in (incident_entities, incidents):
            column = table.c[0]
            connection.execute(delete(table).where(column == number))

    def fail(connection):
        add_incidents(connection, 3)
        raise LookupError

    present: list[int] = []
    for _ in range(25):
        values = {
            "severity": draw.choice(list(Severity)),
            "status": draw.choice(list(IncidentStatus)),
        }
        match draw.choice(["add", "add", "change", "remove", "fail"]):
            case "add":
                present += await database.write(add_incidents, draw.randint(1, 4), **values)
            case "change" if present:
                number = draw.choice(present)
                await database.write(change_incident, number, now=NOW, **values)
            case "remove" if present:
                number = present.pop(draw.randrange(len(present)))
                await database.write(remove, number)
            case "fail":
                with pytest.raises(LookupError):
                    await database.write(fail)
        rows, counted = await database.read(count)
        assert rows == counted
    assert await database.read(compare_documents) == len(present)
