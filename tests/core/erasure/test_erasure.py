"""An erased value is nowhere: not in the database, the archive, or what is read afterwards."""

from __future__ import annotations

import asyncio
import gzip
from dataclasses import replace
from datetime import datetime, timedelta

import orjson
import pytest
from sqlalchemy import select, text, update

from delivery_rows import add_delivery, add_destination
from incident_rows import triage_incident
from session_rows import add_session
from stored_documents import compare_documents
from tocsin.accounting import Period, report_period
from tocsin.audit import AuditRecord, record, verify
from tocsin.clock import SystemClock
from tocsin.credentials import list_saved_views, save_view
from tocsin.erasure import TombstoneFile, follow_erasures
from tocsin.events import Notifiers
from tocsin.incidents.coverage import PUSH_STREAM, attach_push, list_quarantine, reject_push
from tocsin.incidents.coverage.positions import StreamKey, load_position
from tocsin.incidents.storage.store import (
    IncidentPolicy,
    store_batch,
    store_page,
)
from tocsin.incidents.triage import load_triage
from tocsin.investigations import load_steps, replace_steps
from tocsin.knowledge import ObservedRelation, SearchIndexer, record_relations
from tocsin.model import (
    MAX_QUARANTINED,
    Alert,
    Entity,
    EntityKind,
    Incident,
    Node,
    Page,
    Received,
    Rejected,
    RelationType,
    Severity,
)
from tocsin.stops import StopKind, StopOrder, begin_stop, find_stop
from tocsin.store import Archive, Erasure, Redactor, digest_value
from tocsin.store.tables import (
    attempts,
    entities,
    erasures,
    events,
    incidents,
    metadata,
    sessions,
)

from .conftest import NAME, PERSON

KEY = StreamKey("edge", "changed")
POLICY = IncidentPolicy("https://tocsin.example.org")


def build_alert(title: str, at: datetime) -> Alert:
    return Alert(external_id="a", title=title, severity=Severity.HIGH, occurred_at=at)


@pytest.fixture
def read(database, clock):
    async def read(name: str = "case-1") -> None:
        """A page that names the person is read and indexed."""
        incident = Incident(
            external_id=name,
            title=f"logon of CORP\\{NAME.upper()}",
            description=f"({NAME}) logged on; see /home/{NAME}/.ssh and {NAME}@corp.example.",
            severity=Severity.HIGH,
            occurred_at=clock.now(),
            entities=(PERSON, Entity(EntityKind.EMAIL, f"{NAME}@corp.example")),
            alerts=(build_alert(f"failed logon of {NAME}", clock.now()),),
        )
        content = f'{{"u": "{NAME}"}}'.encode()
        rejected = Rejected(source="", location="1", reason="bad", content=content, request=content)
        page = Page(next_position={}, incidents=(incident,), rejected=(rejected,), records=2)
        revision = (await database.read(load_position, KEY)).revision
        await database.write(
            store_page, KEY, page, revision=revision, policy=POLICY, now=clock.now()
        )
        await SearchIndexer(database, clock, Notifiers()).catch_up()

    return read


@pytest.fixture
def fill(database, read, clock, tmp_path):
    async def fill() -> None:
        """Everything that can name the person does."""
        await read()
        said = {"text": f"told {NAME}"}

        def add(connection) -> None:
            add_destination(connection)
            event = connection.scalars(select(events.c.id)).one()
            delivery = add_delivery(connection, "delivered", event=event, remote_id=f"T-{NAME}")
            answer = update(attempts).where(attempts.c.delivery_id == delivery)
            connection.execute(answer.values(response=f"hello {NAME}".encode()))
            session_id = add_session(connection, query=f"what did {NAME} do?", now=clock.now())
            steps = load_steps(connection, session_id)
            step = replace(steps[0], answer=orjson.dumps([f"CORP\\{NAME}"]).decode())
            replace_steps(connection, session_id, [step, *steps[1:]])
            edge = ObservedRelation(
                Node("user", NAME), RelationType.CONNECTED_TO, Node("host", "ws-1"), clock.now()
            )
            record_relations(connection, {f"session:{session_id}#1": [edge]})
            given = {"address": "", "request_id": "", "action": "x", "target": f"user:{NAME}"}
            record(connection, AuditRecord(at=clock.now(), actor=NAME, details=said, **given))
            given["target"] = "other"
            record(connection, AuditRecord(at=clock.now(), actor="ana", **given))
            save_view(connection, "oidc:00u1", "suspects", {"entity": NAME}, clock.now())

        await database.write(add)
        Archive(tmp_path / "archive").add(
            [(clock.now().date(), said), (clock.now().date(), {})], "x"
        )

    return fill


@pytest.fixture
def dump(database, migrated_url, tmp_path):
    async def dump() -> str:
        """Return everything that is on the disk, in lower case."""
        found = [gzip.decompress(path.read_bytes()) for path in tmp_path.glob("archive/*.gz")]
        found += [path.read_bytes() for path in tmp_path.glob("*.jsonl")]
        if migrated_url.get_backend_name() == "sqlite":
            checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)"
            await database.read(lambda c: c.exec_driver_sql(checkpoint).all())
            found.append((tmp_path / migrated_url.database).read_bytes())
        else:
            names = [*metadata.tables]
            for name in names:
                query = text(f"SELECT t::text FROM {name} t")
                rows = await database.read(lambda c, query=query: c.scalars(query).all())
                found += [row.encode() for row in rows]
            blobs = "SELECT content || request FROM quarantine UNION SELECT response FROM attempts"
            found += await database.read(lambda c: c.scalars(text(blobs)).all())
        return b"\n".join(found).decode("utf-8", "replace").lower()

    return dump


def test_the_value_is_named_by_its_boundaries():
    key = b"k" * 32
    redactor = Redactor(key, [Erasure("user", digest_value(key, "j.doe"), 5, "X")])
    for before, after in {
        "J.Doe": "X",
        "xj.doe j.doe2 j-doe": "xj.doe j.doe2 j-doe",
        "CORP\\j.doe, j.doe@a (j.doe)": "CORP\\X, X@a (X)",
        "/home/j.doe/a\u0130 j.doe": "/home/X/a\u0130 X",
    }.items():
        assert redactor.redact_text(before) == after
    nested = {"j.doe": [b"\xff j.doe", ("j.doe", 1, None)]}
    assert redactor.redact(nested) == {"X": [b"\xff X", ("X", 1, None)]}


async def test_an_erased_value_is_nowhere(eraser, request_, fill, dump, database):
    clock = eraser._clock
    await fill()
    assert NAME in await dump()
    period = Period(clock.now() - timedelta(days=1), clock.now())
    before = await database.read(report_period, period, clock.now())
    receipt = await eraser.erase(request_)
    assert NAME not in await dump()
    [session_id] = await database.read(lambda c: c.scalars(select(sessions.c.id)).all())
    steps = await database.read(load_steps, session_id)  # compressed, so not in the dump
    assert NAME not in str(steps)
    assert receipt["pseudonym"] in steps[0].answer
    assert receipt["erased"].keys() >= {
        *("incidents", "incident_entities", "incident_alerts", "entities", "events", "attempts"),
        *("deliveries", "sessions", "session_messages", "session_steps", "relations"),
        *("quarantine", "audit", "saved_views"),
    }
    [sent] = receipt["sent"]
    assert (sent["destination"], sent["outcome"], sent["remote_id"]) == (
        *("soc", "delivered"),
        f"T-{NAME}",
    )
    assert await database.read(report_period, period, clock.now()) == before
    found = await database.read(verify, eraser._audit_key, now=clock.now())
    assert (found.problems, found.entries) == ([], 3)


async def test_a_value_is_erased_from_the_triage_and_tocsins_own_words_stay(
    eraser, request_, read, dump, database
):
    await read()
    clock = eraser._clock
    await database.write(triage_incident, 1, now=clock.now(), text=NAME)
    receipt = await eraser.erase(request_)
    assert NAME not in await dump()
    tables = ("incident_triage", "incident_labels", "incident_comments", "incident_changes")
    assert receipt["erased"].keys() >= set(tables)
    await eraser.erase(replace(request_, entity=Entity(EntityKind.USER, "watcher")))
    triage = (await database.read(load_triage, [1]))[1]
    pseudonym = receipt["pseudonym"]
    assert (triage["assignee"], triage["watchers"]) == (pseudonym, [pseudonym])
    assert triage["disposition"] == "false-positive"
    assert triage["disposition_reason"] == f"as {pseudonym} said"
    assert await database.read(compare_documents) == 1


async def test_views_with_the_value_are_deleted_and_others_stay(
    eraser, request_, database, clock, dump
):
    views = {
        "by entity": {"status": "New", "entity": f"CORP\\{NAME.upper()}"},
        "by line": {"title": f"a\n{NAME}"},
        f"of {NAME}": {"status": "New"},
        "all": {"columns": "tags"},
    }
    for owner in ("oidc:00u1", f"person:{NAME}"):
        for name, filters in views.items():
            await database.write(save_view, owner, name, filters, clock.now())
    assert (await eraser.erase(request_))["erased"] == {"saved_views": 7}
    assert NAME not in await dump()
    left = {"all": {"columns": "tags"}}
    assert await database.read(list_saved_views, "oidc:00u1") == left
    for kind_of_principal in ("oidc", "person"):
        entity = Entity(EntityKind.USER, kind_of_principal)
        assert (await eraser.erase(replace(request_, entity=entity)))["erased"] == {}
    entity = Entity(EntityKind.USER, f"CORP\\{NAME}")
    await database.write(save_view, "oidc:00u1", "again", views["by entity"], clock.now())
    assert (await eraser.erase(replace(request_, entity=entity)))["erased"] == {"saved_views": 1}


@pytest.mark.parametrize("value", ["edge", "provider"])
async def test_a_stop_stays_in_force_if_a_value_is_erased_from_its_words(
    eraser, request_, database, clock, value
):
    stop = StopOrder("ana", f"noise of {value}")
    await database.write(begin_stop, StopKind.PROVIDER, "edge", stop, clock.now())
    erased = await eraser.erase(replace(request_, entity=Entity(EntityKind.HOST, value)))
    found = await database.read(find_stop, StopKind.PROVIDER, "edge", clock.now())
    assert found.reason == f"noise of {erased['pseudonym']}"


@pytest.mark.parametrize("is_erased_first", [True, False])
async def test_a_request_that_was_too_large_is_so_after_its_redaction(
    eraser, request_, database, clock, is_erased_first
):
    host = Entity(EntityKind.HOST, "h" * 200)
    request = f'["{host.value}", "{"x" * MAX_QUARANTINED}"]'.encode()[: MAX_QUARANTINED + 50]
    one = Rejected(source="push", location="incident 2 of 2", reason="bad", content=b"{}")
    cut = replace(one, request=request[:MAX_QUARANTINED])
    parts = [
        attach_push(Received(rejected=(one,)), request, clock.now()),
        attach_push(Received(rejected=(cut,)), b"[]", clock.now()),
        reject_push(request, "bad", clock.now()),
    ]
    if is_erased_first:
        await eraser.erase(replace(request_, entity=host))
    key = StreamKey("edge", PUSH_STREAM)
    await database.write(store_batch, key, parts, policy=POLICY, now=clock.now())
    if not is_erased_first:
        await eraser.erase(replace(request_, entity=host))
    found = (await database.read(list_quarantine, "edge", 10)).records
    assert ["16 KiB" in (record["retry_obstacle"] or "") for record in found] == [True] * 3


async def test_what_is_read_afterwards_names_the_pseudonym(eraser, request_, read, dump, database):
    await read()
    pseudonym = (await eraser.erase(request_))["pseudonym"]
    await read()
    await read("case-2")
    assert NAME not in await dump()
    numbers = select(incidents.c.number, incidents.c.title)
    found = await database.read(lambda c: c.execute(numbers.order_by(incidents.c.number)).all())
    assert [tuple(row) for row in found] == [(n, f"logon of CORP\\{pseudonym}") for n in (1, 2)]
    counted = select(entities.c.incident_count).where(entities.c.value == pseudonym)
    assert await database.read(lambda c: c.scalars(counted).all()) == [2]


async def test_a_dry_run_changes_nothing(eraser, request_, fill, database):
    def load(connection) -> list:
        return [connection.execute(select(table)).all() for table in metadata.sorted_tables]

    await fill()
    before = await database.read(load)
    tried = await eraser.erase(replace(request_, dry_run=True))
    assert await database.read(load) == before
    done = await eraser.erase(request_)
    assert tried["sent"] == done["sent"]
    # an unsealed entry is sealed first, and then found
    assert {**tried["erased"], "audit": 1} == done["erased"]
    assert (await eraser.erase(request_))["erased"] == {}


async def test_values_are_erased_again_from_an_older_backup(eraser, request_, fill, dump):
    await eraser.erase(request_)  # of a database that does not hold it, as if before the backup
    await eraser._database.write(lambda c: c.execute(text("DELETE FROM erasures")) and None)
    await fill()
    assert NAME in await dump()
    await eraser.reapply()
    assert NAME not in await dump()


async def test_an_investigation_that_runs_is_named(eraser, request_, fill, database):
    await fill()
    running = update(sessions).values(status="running")
    await database.write(lambda c: c.execute(running) and None)
    assert (await eraser.erase(request_))["active_investigations"] == 1


async def test_a_redacted_entry_is_changed_by_nobody_else(eraser, request_, fill, database):
    await fill()
    await eraser.erase(request_)
    changed = text("UPDATE audit SET actor = 'eve' WHERE position = 1")
    await database.write(lambda c: c.execute(changed) and None)
    found = await database.read(verify, eraser._audit_key, now=eraser._clock.now())
    [problem] = found.problems
    assert problem.startswith("position 1 (row 1): the seal does not match")
    with pytest.raises(Exception, match="append-only"):
        await database.write(lambda c: c.execute(text("UPDATE audit SET actor = 'eve'")) and None)


async def test_nothing_that_is_left_tells_the_value_without_the_key(eraser, request_, database):
    await eraser.erase(request_)
    [left] = await database.read(lambda c: c.execute(select(erasures)).mappings().all())
    assert left["digest"] == digest_value(eraser._key, NAME.upper())
    assert left["digest"] != digest_value(b"another key", NAME)
    assert left["pseudonym"] == f"erased-{left['digest'][:12]}"


async def test_a_node_remembers_what_was_erased_on_another(eraser, request_, database, tmp_path):
    """Whichever node is left after a loss can restore an older backup."""
    await eraser.erase(request_)
    other = TombstoneFile(tmp_path / "other")
    following = asyncio.create_task(follow_erasures(database, SystemClock(), other))
    async with asyncio.timeout(10):
        while not other.load():  # noqa: ASYNC110 - a file is what is waited for
            await asyncio.sleep(0.01)
    following.cancel()
    assert other.load() == TombstoneFile(tmp_path).load()
    [path] = (tmp_path / "other").iterdir()
    assert path.stat().st_mode & 0o777 == 0o600
    written = path.stat().st_mtime_ns
    other.add(other.load().values())
    assert path.stat().st_mtime_ns == written
