"""What an earlier version stored is still there after the upgrade."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from alembic import command
from sqlalchemy import URL, Connection, insert, make_url, text

from stored_documents import compare_documents
from tocsin.clock import SystemClock
from tocsin.credentials import list_api_keys, load_api_key
from tocsin.delivery import (
    DeliveryState,
    list_deliveries,
    load_applied_from,
    requeue_on_hold,
)
from tocsin.events import emit_events, mark_routed
from tocsin.incidents import DocumentRebuild
from tocsin.knowledge import SearchDocument, index_document, search_documents
from tocsin.knowledge.search.documents import DOCUMENT_ID, add_prefixes
from tocsin.model import Event, EventType
from tocsin.store import allot_numbers, load_epochs, open_database, upgrade
from tocsin.store.schema import configure_alembic
from tocsin.store.tables import (
    EPOCH,
    documents,
    entity_providers,
    incident_counts,
    incident_techniques,
)


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_url(request, tmp_path) -> URL:
    if request.param == "sqlite":
        return make_url(f"sqlite:///{tmp_path}/old.db")
    return make_url(request.getfixturevalue("postgres").create(f"old_{tmp_path.name}"[:60]))


def as_of_the_spine(connection: Connection) -> None:
    config = configure_alembic()
    config.attributes["connection"] = connection
    command.upgrade(config, "0001")
    row = {"id": "1", "key_id": "0123456789ABCDEF", "now": 1_000_000, "end": 9_000_000}
    scopes = '["incidents:read"]'
    connection.execute(
        text(
            "INSERT INTO api_keys VALUES (:id, :key_id, 'Nächte', 'Shift', "
            f"'{scopes}', 'a hash', 'ana', :now, :end)"
        ),
        row,
    )


async def test_a_key_of_the_first_version_is_still_one(empty_url):
    database = open_database(empty_url)
    await database.write(as_of_the_spine)
    await upgrade(database)
    key = await database.read(load_api_key, "0123456789ABCDEF")
    assert key is not None
    assert (key.prefix, key.scopes, key.secret_hash) == ("sk_live_", ("incidents:read",), "a hash")
    assert key.updated_at == key.created_at == EPOCH + timedelta(seconds=1)
    assert key.disabled_at is key.last_used_at is key.previous_hash is None
    for words in ("NÄCHTE", "shift", "ana", "incidents:read"):
        assert (await database.read(list_api_keys, search=words)).total == 1
    await database.close()


def as_of_the_sync(connection: Connection) -> None:
    """Leave incidents with techniques and entities, as the version before investigations did."""
    config = configure_alembic()
    config.attributes["connection"] = connection
    command.upgrade(config, "0004")
    dialect = connection.dialect.name
    as_json = "CAST(:techniques AS JSONB)" if dialect == "postgresql" else ":techniques"
    counts = "0, 0, 0, 0, 0, 0, 0"
    connection.execute(
        text(
            'INSERT INTO coverage (id, provider, stream, source, unit, outcome, start, "end", '
            "pages, records, new, changed, rejected, past, started_at, finished_at) "
            f"VALUES (1, 's', 's', 's', 's', 'whole', {counts}, :no, 0, 0)"
        ),
        {"no": False},
    )
    names = ["[]", '["T1110", "T1110", "T1059.001"]', '["\\u00e9\'\\"", "T1110"]']
    for number, techniques in enumerate(names, start=1):
        connection.execute(
            text(
                "INSERT INTO incidents (number, provider, external_id, title, description, "
                "severity, severity_assumed, status, alert_count, techniques, occurred_at, "
                "created_at, updated_at, change, "
                "alert_outcome, coverage_id) VALUES (:number, :provider, :number_text, 't', '', "
                f"'High', :no, 'New', 0, {as_json}, 0, 0, 0, :number, 'alerted', 1)"
            ),
            {
                "number": number,
                "number_text": str(number),
                "provider": f"siem-{number % 2}",
                "techniques": techniques,
                "no": False,
            },
        )
        connection.execute(
            text("INSERT INTO incident_entities VALUES (:number, 'ip', '192.0.2.1')"),
            {"number": number},
        )


async def test_what_incidents_name_is_in_the_graph_after_the_upgrade(empty_url):
    database = open_database(empty_url)
    await database.write(as_of_the_sync)
    await upgrade(database)

    def read(connection: Connection, table) -> list[tuple]:
        return sorted(tuple(row) for row in connection.execute(table.select()))

    assert await database.read(read, incident_techniques) == [
        (2, "T1059.001"),
        (2, "T1110"),
        (3, "T1110"),
        (3, "\u00e9'\""),
    ]
    assert await database.read(read, entity_providers) == [
        ("ip", "192.0.2.1", "siem-0"),
        ("ip", "192.0.2.1", "siem-1"),
    ]
    await database.close()


async def test_incidents_are_counted_and_get_documents_after_the_upgrade(empty_url):
    database = open_database(empty_url)
    await database.write(as_of_the_sync)
    await upgrade(database)

    def count(connection: Connection) -> list[tuple]:
        return [tuple(row) for row in connection.execute(incident_counts.select())]

    assert await database.read(count) == [("High", "New", 3)]
    assert await database.read(compare_documents) == 0
    await DocumentRebuild(database, SystemClock()).rebuild()
    assert await database.read(compare_documents) == 3
    await database.close()


def as_of_parked_deliveries(connection: Connection) -> None:
    """Leave a parked and a dead delivery, as the version before the state `on_hold` did."""
    config = configure_alembic()
    config.attributes["connection"] = connection
    command.upgrade(config, "0009")
    connection.execute(
        text(
            "INSERT INTO events (id, event_type, timestamp, data, subject, routed, related,"
            " context) VALUES ('evt_01', 'incident-alert', 1000000, '{}', 'incident:1', TRUE,"
            " '[]', '{}')"
        )
    )
    for number, state in enumerate(("parked", "dead")):
        connection.execute(
            text(
                "INSERT INTO deliveries (id, event_id, destination, subject, state, attempts,"
                " schedule_start, due_at, created_at)"
                f" VALUES ('dlv_0{number}', 'evt_01', 'soc{number}', 'incident:1', '{state}', 1, 0,"
                " 1000000, 1000000)"
            )
        )


async def test_parked_deliveries_are_on_hold_after_the_upgrade(empty_url):
    database = open_database(empty_url)
    await database.write(as_of_parked_deliveries)
    await upgrade(database)
    page = await database.read(list_deliveries, state=DeliveryState.ON_HOLD)
    assert [delivery["id"] for delivery in page.deliveries] == ["dlv_00"]
    assert await database.write(requeue_on_hold, EPOCH) == 1
    await database.close()


def before_epochs(made: bool) -> Callable[[Connection], None]:
    """Leave the version before epochs, with or without a destination that was made at second 5."""

    def leave(connection: Connection) -> None:
        config = configure_alembic()
        config.attributes["connection"] = connection
        command.upgrade(config, "0010")
        if made:
            columns = "name, plugin, managed_by, settings, revision, state, created_by, created_at"
            values = "'soc', 'webhook', 'file', '{}', 1, 'active', 'file', 5000000"
            connection.execute(
                text(
                    f"INSERT INTO destinations ({columns}, updated_at, failures, holds) "
                    f"VALUES ({values}, 5000000, 0, 0)"
                )
            )

    return leave


@pytest.mark.parametrize("made", [False, True])
async def test_after_the_upgrade_it_is_known_when_something_was_first_applied(empty_url, made):
    database = open_database(empty_url)
    await database.write(before_epochs(made))
    await upgrade(database)
    alone = empty_url.get_backend_name() == "sqlite"
    first = EPOCH if alone else EPOCH + timedelta(seconds=5) if made else None
    assert await database.read(load_applied_from) == first
    [epoch] = await database.read(load_epochs)
    assert (epoch.number, epoch.first_number, epoch.reason) == (1, 1, None)
    await database.close()


def with_an_event_that_concerned_nobody(connection: Connection) -> None:
    config = configure_alembic()
    config.attributes["connection"] = connection
    command.upgrade(config, "0024")
    connection.execute(text("DELETE FROM sequences WHERE name = 'configuration_applied_from'"))
    data = {"event_type": EventType.INCIDENT_ALERT, "data": {}, "subject": "incident:1"}
    event = Event(id="evt_01", timestamp=EPOCH + timedelta(seconds=5), **data)
    emit_events(connection, [event])
    mark_routed(connection, [event])


async def test_an_installation_without_destinations_goes_on_routing_after_the_upgrade(empty_url):
    database = open_database(empty_url)
    await database.write(with_an_event_that_concerned_nobody)
    await upgrade(database)
    after = EPOCH + timedelta(seconds=5, microseconds=1)
    assert await database.read(load_applied_from) == after
    await database.close()


def with_an_index_without_prefixes(connection: Connection) -> None:
    config = configure_alembic()
    config.attributes["connection"] = connection
    command.upgrade(config, "0018")
    found = SearchDocument(
        kind="incident", record="1", title="Powershell", text="An encoded command", at=EPOCH
    )
    index_document(connection, found)


async def test_what_was_indexed_without_prefixes_is_found_by_them(empty_url, monkeypatch):
    database = open_database(empty_url)
    with monkeypatch.context() as without_function:
        without_function.setattr("tocsin.knowledge.search.documents._flush", text("SELECT 1"))
        await database.write(with_an_index_without_prefixes)
    await upgrade(database)
    for beginning in ("pow*", "powe*", "enc*", "comma*", "an encod*"):
        page = await database.read(search_documents, beginning, limit=9)
        assert [result.id for result in page.results] == ["1"]
    definitions = await database.read(
        lambda c: (
            c.scalars(text("SELECT sql FROM sqlite_master WHERE name = 'documents_index'")).all()
            if c.dialect.name == "sqlite"
            else c.scalars(
                text("SELECT indexdef FROM pg_indexes WHERE indexname = 'ix_documents_tokens'")
            ).all()
        )
    )
    assert "prefix=" in definitions[0] or "fastupdate='on'" in definitions[0]
    await database.close()


def with_documents_without_prefixes(connection: Connection) -> None:
    config = configure_alembic()
    config.attributes["connection"] = connection
    command.upgrade(config, "0026")
    connection.execute(text("UPDATE sequences SET value = 1 WHERE name = 'document_id'"))
    store_as_before(connection, 1)


def store_as_before(connection: Connection, number: int) -> None:
    """Index a document as nodes of 0026 do."""
    tokens = "an encoded _ =ip:192.0.2.1"
    if connection.dialect.name == "postgresql":
        tokens = "'an':1 'encoded':2 'an+encoded':16383 '=ip:192.0.2.1':16383 '#12:0':16383"
    row = {"id": number, "kind": "incident", "record": str(number), "at": EPOCH, "change": 1}
    texts = {"title": "an encoded", "entities": "", "text": "", "tokens": tokens}
    connection.execute(insert(documents).values(**row, **texts))


async def test_prefixes_find_what_nodes_of_the_version_before_index(empty_url):
    database = open_database(empty_url)
    await database.write(with_documents_without_prefixes)
    await upgrade(database)
    await database.write(store_as_before, 2)
    await database.write(allot_numbers, DOCUMENT_ID, 1)
    while True:
        for beginning in ("enc*", "an enco*", "encoded ip:192.0*"):
            page = await database.read(search_documents, beginning, limit=9)
            assert sorted(result.id for result in page.results) == ["1", "2"]
        if not await database.write(add_prefixes, 100):
            break
    await database.close()
