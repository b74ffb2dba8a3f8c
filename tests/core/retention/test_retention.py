"""What is old is removed, kind by kind, and the accounts still say that it was there."""

from __future__ import annotations

import gzip
import json
from datetime import datetime, timedelta
from functools import partial

import pytest
from sqlalchemy import func, insert, select

from delivery_rows import add_delivery, add_destination
from incident_rows import add_incidents, triage_incident
from session_rows import add_session
from tocsin.accounting import Period, report_period, trace_incident
from tocsin.audit import AuditRecord, Sealer, record, remove_entries, verify
from tocsin.cli.doctor.findings import Area
from tocsin.cli.doctor.findings import Severity as Urgency
from tocsin.cli.doctor.work import examine_retention
from tocsin.events import Notifiers
from tocsin.incidents import AlertDecision, find_removed
from tocsin.incidents.coverage.positions import StreamKey, load_position
from tocsin.incidents.storage.store import IncidentPolicy, store_page
from tocsin.knowledge import ObservedRelation, SearchIndexer, record_relations
from tocsin.model import Alert, Entity, EntityKind, Incident, Node, Page, RelationType, Severity
from tocsin.registry import RetentionSettings
from tocsin.retention import (
    Retention,
    RetentionRule,
    remove_coverage,
    remove_documents,
    remove_edges,
    remove_incidents,
    remove_sessions,
)
from tocsin.retention.growth import measure_growth
from tocsin.store import Archive
from tocsin.store.tables import (
    audit,
    coverage,
    documents,
    entities,
    entity_names,
    events,
    incident_alerts,
    incident_changes,
    incident_comments,
    incident_counts,
    incident_documents,
    incident_labels,
    incident_triage,
    incidents,
    metadata,
    quarantine,
    relations,
    remote_objects,
    session_steps,
    sessions,
)

KEEP = timedelta(days=40)
KEY = StreamKey("edge", "changed")
POLICY = IncidentPolicy("https://tocsin.example.org")
ANA, HOST = Entity(EntityKind.USER, "ana"), Entity(EntityKind.HOST, "ws-1")


def build_alert(title: str, at: datetime) -> Alert:
    return Alert(external_id="a", title=title, severity=Severity.HIGH, occurred_at=at)


@pytest.fixture
def store(database, clock):
    async def store(*names: str) -> None:
        """A page with these incidents is read and indexed now."""
        made = [
            Incident(
                external_id=name,
                title=f"logon of {name}",
                severity=Severity.HIGH,
                occurred_at=clock.now(),
                entities=(ANA, Entity(EntityKind.HOST, name)),
                techniques=("T1110",),
                alerts=(build_alert("failed logon", clock.now()),),
            )
            for name in names
        ]
        revision = (await database.read(load_position, KEY)).revision
        page = Page(next_position={}, incidents=tuple(made), records=len(made))
        await database.write(
            store_page, KEY, page, revision=revision, policy=POLICY, now=clock.now()
        )
        await SearchIndexer(database, clock, Notifiers()).catch_up()

    return store


@pytest.fixture
def remove(database, clock):
    async def remove(remover, archive=None) -> int:
        rules = [RetentionRule("kind", KEEP, remover)]
        return await Retention(database, clock, rules, archive).remove_old()

    return remove


@pytest.fixture
def count(database):
    async def count(table, *conditions) -> int:
        query = select(func.count()).select_from(table).where(*conditions)
        return await database.read(lambda connection: connection.scalar(query))

    return count


async def test_an_old_incident_goes_with_all_that_belongs_to_it(
    store, remove, count, clock, database
):
    await store("old")
    await database.write(triage_incident, 1, now=clock.now(), text="ben")
    clock.advance(days=41)
    await store("young")
    assert await remove(remove_incidents) == 1
    for table in (incident_triage, incident_labels, incident_comments, incident_changes):
        assert await count(table) == 0
    for table in (incidents, incident_documents, incident_alerts, documents):
        assert await count(table) == 1
    assert await count(entities) == 2
    assert await count(entity_names, entity_names.c.value == "old") == 0
    counted = select(entities.c.incident_count).where(entities.c.value == "ana")
    assert await database.read(lambda c: c.scalars(counted).all()) == [1]
    by_status = select(func.sum(incident_counts.c.count))
    assert await database.read(lambda c: c.scalar(by_status)) == 1


async def test_a_removed_incident_is_archived_first(store, remove, clock, tmp_path):
    await store("old")
    clock.advance(days=41)
    await remove(remove_incidents, Archive(tmp_path / "archive"))
    [file] = (tmp_path / "archive").iterdir()
    [line] = map(json.loads, gzip.decompress(file.read_bytes()).splitlines())
    assert (line["number"], line["title"]) == (1, "logon of old")
    assert [entity["value"] for entity in line["entities"]] == ["old", "ana"]
    assert line["alerts"][0]["title"] == "failed logon"


async def test_records_older_than_their_limit_are_found(store, clock, database):
    await store("old")
    for days, severity in ((41, Urgency.OK), (43, Urgency.WARNING)):
        area = Area("retention")
        now = clock.now() + timedelta(days=days)
        await database.read(examine_retention, area, RetentionSettings(incidents="40d"), now)
        [finding] = area
        assert finding.severity is severity


async def test_ticket_ids_go_with_their_incident_and_session(store, remove, count, clock, database):
    await store("old")
    await database.write(add_destination)
    session_id = await database.write(add_session, now=clock.now())
    subjects = ("incident:1", "incident:2", f"session:{session_id}")
    known = {"destination": "soc", "home": "", "event_id": "evt_1", "updated_at": clock.now()}
    rows = [{**known, "subject": subject, "remote_id": "T-1"} for subject in subjects]
    await database.write(lambda c: c.execute(insert(remote_objects), rows) and None)
    clock.advance(days=41)
    await remove(remove_incidents)
    await remove(remove_sessions)
    assert await count(remote_objects) == 1
    assert await count(remote_objects, remote_objects.c.subject == "incident:2") == 1


async def test_a_removed_incident_is_accounted_for_as_removed(store, remove, clock, database):
    await store("old", "older")
    period = Period(clock.now() - timedelta(days=1), clock.now())
    before = await database.read(report_period, period, clock.now())
    clock.advance(days=41)
    await remove(remove_incidents)
    after = await database.read(report_period, period, clock.now())
    assert before["incidents"]["alerted"] == after["incidents"]["alerted"] == 2
    assert after["incidents"]["removed"] == 2
    assert "removed" not in before["incidents"]
    assert [item for item in after["unaccounted"] if item["kind"] == "no-event"] == []
    assert await database.read(trace_incident, 1) is None
    removed = await database.read(find_removed, 1)
    assert (removed.number, removed.alert_outcome) == (1, AlertDecision.ALERTED)


async def test_an_incident_that_is_read_again_keeps_its_number_and_alerts_once(
    store, remove, count, clock, database
):
    await store("old")
    clock.advance(days=41)
    await remove(remove_incidents)
    await store("old", "new")
    assert await count(events) == 2
    numbers = select(incidents.c.number, incidents.c.external_id).order_by(incidents.c.number)
    found = await database.read(lambda c: c.execute(numbers).all())
    assert [tuple(row) for row in found] == [(1, "old"), (2, "new")]
    assert await database.read(find_removed, 1) is None


async def test_an_incident_with_a_pending_delivery_is_kept(store, remove, clock, database):
    await store("old")
    await database.write(add_delivery, "on_hold", number=1, at=clock.now())
    clock.advance(days=41)
    assert await remove(remove_incidents) == 0


async def test_an_old_session_goes_with_its_steps(remove, count, clock, database, tmp_path):
    await database.write(add_session, now=clock.now())
    clock.advance(days=41)
    await database.write(add_session, now=clock.now())
    assert await remove(remove_sessions, Archive(tmp_path / "archive")) == 1
    assert (await count(sessions), await count(session_steps)) == (1, 2)
    [file] = (tmp_path / "archive").iterdir()
    [line] = map(json.loads, gzip.decompress(file.read_bytes()).splitlines())
    assert line["query"] == "what did 203.0.113.9 do?"
    assert line["steps"][0]["question"] == {"numbers": [1]}


async def test_old_edges_and_documents_go(store, remove, count, clock, database):
    await store("old")
    at = clock.now()
    seen = ObservedRelation(
        Node("user", "ana"), RelationType.CONNECTED_TO, Node("host", "ws-1"), at
    )
    await database.write(record_relations, {"enricher:lists": [seen]})
    clock.advance(days=41)
    assert (await remove(remove_edges), await count(relations)) == (1, 0)
    assert (await remove(remove_documents), await count(documents)) == (1, 0)
    assert await count(incidents) == 1


async def test_coverage_is_kept_where_gaps_or_incidents_need_it(
    store, remove, count, clock, database
):
    await store("old")
    for _ in range(3):
        clock.advance(hours=2)
        await store()
        await store("old")
    row = {"provider": "edge", "stream": "s", "source": "", "location": "", "reason": "bad"}
    row |= {"content": b"x", "created_at": clock.now()}
    await database.write(lambda c: c.execute(insert(quarantine).values(row)) and None)
    kept = await count(coverage)
    clock.advance(days=41)
    removed = await remove(remove_coverage)
    assert removed == kept - 2 + 1
    assert await count(coverage) == 2
    used = select(incidents.c.coverage_id)
    first = await database.read(lambda c: c.scalar(used))
    assert await count(coverage, coverage.c.id == first) == 1


async def test_the_audit_log_is_cut_and_still_verifies(remove, count, clock, database, tmp_path):
    key = b"k" * 32
    sealer = Sealer(database, key, clock)

    async def enter(*actions: str) -> None:
        for action in actions:
            given = {"actor": "ana", "address": "", "request_id": "", "details": {"a": 1}}
            entry = AuditRecord(at=clock.now(), action=action, **given)
            await database.write(record, entry)
        await sealer.seal()

    check = partial(database.read, verify, key, now=clock.now())
    await enter("a", "b")
    first = await check()
    await enter("c")
    clock.advance(days=41)
    await enter("d", "e")
    head = await check()
    witnessed = (head.head_position, head.head_seal)
    assert await remove(partial(remove_entries, key), Archive(tmp_path / "archive")) == 3
    found = await check(head=witnessed)
    assert (found.entries, found.problems) == (2, [])
    assert (await check(head=(first.head_position, first.head_seal))).problems == []
    assert (
        len(gzip.decompress(next((tmp_path / "archive").iterdir()).read_bytes()).splitlines()) == 3
    )
    # nobody else can cut, and a cut hides nothing that follows it
    assert (await database.read(verify, b"x" * 32, now=clock.now())).problems[0] == (
        "position 3: the cut was not made by Tocsin"
    )
    with pytest.raises(Exception, match="append-only"):
        await database.write(lambda c: c.execute(audit.delete().where(audit.c.position == 4)))


async def test_what_is_kept_is_measured(store, database, clock):
    await store("old")
    growth = await database.read(measure_growth)
    assert growth.oldest["incidents"] == clock.now()
    assert growth.oldest["sessions"] is None
    assert growth.bytes.keys() == metadata.tables.keys()
    assert growth.bytes["documents"] > growth.bytes["replays"] > 0


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_space_goes_back_to_the_file_system(database, migrated_url, store, remove, clock):
    def pages(connection) -> int:
        return connection.exec_driver_sql("PRAGMA page_count").scalar()

    await database.write(lambda c: add_incidents(c, 300, now=clock.now(), description="x" * 4000))
    await SearchIndexer(database, clock, Notifiers()).catch_up()
    full = await database.read(pages)
    clock.advance(days=41)
    assert await remove(remove_incidents) == 300
    assert await database.read(pages) < full / 2
