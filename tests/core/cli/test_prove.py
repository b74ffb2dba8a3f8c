"""`tocsin prove` and `tocsin trace`, as an operator runs them."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import shutil
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import URL, Connection, insert, update

from commands import ForkedCommand
from graph_rows import incident
from incident_rows import add_incidents
from session_rows import add_session
from tocsin.accounting import MAX_CHANGES
from tocsin.events import emit_events, mark_routed
from tocsin.knowledge import ObservedRelation, record_relations
from tocsin.model import ChangeType, Event, EventType, Node, NodeKind, RelationType
from tocsin.store import load_head, open_database
from tocsin.store.tables import attempts, coverage, deliveries, destinations, events

TITLE = "Sign-ins\x1b[2J from\tafar"


@pytest.fixture
def write(tmp_path, migrated_file) -> Callable:
    """Do something to the database of the folder in which commands are run."""
    path = tmp_path / "data" / "tocsin.db"
    path.parent.mkdir()
    shutil.copy(migrated_file, path)

    async def on_database(operation) -> None:
        database = open_database(URL.create("sqlite", database=str(path)))
        await database.write(operation)
        await database.close()

    return lambda operation: asyncio.run(on_database(operation))


def an_incident(connection: Connection) -> None:
    add_incidents(connection, now=datetime.now(UTC), title=TITLE)


def its_delivery(connection: Connection) -> None:
    now = datetime.now(UTC)
    kind = EventType.INCIDENT_ALERT
    event = Event(id="evt_1", event_type=kind, timestamp=now, data={}, subject="incident:1")
    emit_events(connection, [event])
    mark_routed(connection, [event])
    soar = {"name": "soar", "plugin": "webhook", "managed_by": "api", "settings": {}}
    counts = {"revision": 1, "failures": 0, "holds": 0}
    made = {"created_by": "ana", "created_at": now, "updated_at": now}
    connection.execute(insert(destinations).values(state="active", **soar, **counts, **made))
    delivery = {"id": "dlv_1", "event_id": "evt_1", "destination": "soar", "subject": "incident:1"}
    tried = {"state": "dead", "reason": "400: bad", "attempts": 1, "schedule_start": 0}
    moments = {"due_at": now, "created_at": now}
    connection.execute(insert(deliveries).values(**delivery, **tried, **moments))
    attempt = {"delivery_id": "dlv_1", "number": 1, "started_at": now, "duration_ms": 12}
    ended = {"outcome": "refused", "status": 400, "reason": "400: bad", "response": b""}
    connection.execute(insert(attempts).values(**attempt, **ended))


def its_changes(connection: Connection) -> None:
    changed = {"changes": {"status": {"from": "New", "to": "Closed"}}}
    members = {"event_type": ChangeType.INCIDENT_CHANGED, "subject": "incident:1", "data": changed}
    now = datetime.now(UTC)
    changes = [Event(id=f"evt_c{n:02}", timestamp=now, **members) for n in range(MAX_CHANGES + 1)]
    emit_events(connection, changes)
    mark_routed(connection, changes)
    first = update(events).where(events.c.id == "evt_c00")
    connection.execute(first.values(suppressed_by="known-scan"))


def its_investigation(connection: Connection) -> None:
    session_id = add_session(connection, now=datetime.now(UTC))
    examined = ObservedRelation(
        Node(NodeKind.SESSION, session_id), RelationType.EXAMINED, incident(1), datetime.now(UTC)
    )
    record_relations(connection, {f"session:{session_id}#1": [examined]})
    connection.execute(update(events).values(subject=f"session:{session_id}"))


def lines(out: str) -> list[list[str]]:
    return [line.split("\t") for line in out.splitlines()]


def test_where_everything_is_accounted_for_it_ends_with_0(tocsin, write):
    write(an_incident)
    write(its_delivery)
    status, out, errors = tocsin("prove")
    assert (status, errors) == (0, "everything is accounted for\n")
    told = {(part, what): detail for part, what, _, detail in lines(out)}
    assert told["incidents", "alerted"] == "1"
    assert told["events", "dead"] == "1"
    assert told["destination", "soar"] == "0 delivered, 0 pending, 0 on_hold, 1 dead"
    assert told["not delivered", "soar dlv_1 incident:1"] == "dead, 400: bad, attempts: 1"


@pytest.mark.parametrize(
    ("records", "told"),
    [
        (1, "1 interval, 1 record, 0 new, 0 rejected"),
        (2, "1 interval, 2 records, 0 new, 0 rejected"),
    ],
)
def test_what_was_read_is_counted_in_words(tocsin, write, records, told):
    def a_stretch(connection: Connection) -> None:
        an_incident(connection)
        connection.execute(update(coverage).values(outcome="read", unit="bytes", records=records))

    write(a_stretch)
    [[*_, detail]] = [line for line in lines(tocsin("prove")[1]) if line[0] == "coverage"]
    assert detail.endswith(f": {told}")


def test_where_anything_is_not_it_ends_with_1_and_says_what(tocsin, write):
    write(an_incident)
    status, out, errors = tocsin("prove", "--since", "7d")
    assert (status, errors) == (1, "unaccounted for: 1\n")
    [[_, what, _, detail]] = [line for line in lines(out) if line[0] == "UNACCOUNTED"]
    assert what == "incident:1"
    assert detail.startswith("no-event: ")


@pytest.fixture
def head(tmp_path, migrated_file) -> dict:
    """The head of the database as migrated, as a node has stored it."""

    async def load() -> dict:
        database = open_database(URL.create("sqlite", database=str(migrated_file)))
        stored = asdict(await database.read(load_head))
        await database.close()
        return stored

    place = {"location": "elsewhere", "stored_at": "2026-11-21T05:33:01.123Z"}
    stored = asyncio.run(load())
    return {**place, "database": stored["epoch_id"], **stored}


def test_a_database_behind_its_head_is_no_all_clear(tocsin, write, head, tmp_path):
    write(its_delivery)
    file = tmp_path / "data" / "head.json"
    status, out, errors = tocsin("prove", "--head")
    assert (status, out) == (2, "")
    assert "head.json: no record of this database" in errors
    file.write_text(json.dumps({"databases": [head]}))
    assert tocsin("prove")[0] == 0
    status, out, errors = tocsin("prove", "--head")
    assert (status, errors) == (0, "everything is accounted for\n")
    assert [line[:2] for line in lines(out)] == [
        ["epoch", "1"],
        ["head", "database"],
        ["head", "elsewhere"],
    ]
    file.write_text(json.dumps({"databases": [head | {"incident_number": 150}]}))
    for arguments in (["--head"], []):
        status, out, errors = tocsin("prove", *arguments)
        assert (status, errors) == (1, "unaccounted for: 1\n")
        [[_, what, _, detail]] = [line for line in lines(out) if line[0] == "UNACCOUNTED"]
        assert what == "head"
        assert detail.startswith("rolled-back: the database was rolled back: epoch 1 had reached")
    report = json.loads(tocsin("prove", "--head", "--json")[1])
    assert report["stored"][0]["incident_number"] == 150
    assert report["database"]["incident_number"] == 0


def test_check_names_a_database_that_is_behind_or_gone(tocsin, write, head, tmp_path):
    (tmp_path / "plugins.toml").write_text("")
    write(an_incident)
    path = tmp_path / "data" / "tocsin.db"
    named = head | {"incident_number": 150, "location": str(path)}
    (tmp_path / "data" / "head.json").write_text(json.dumps({"databases": [named]}))
    status, _, errors = tocsin("check")
    assert (status, "database: the database was rolled back" in errors) == (1, True)
    path.unlink()
    status, _, errors = tocsin("check")
    assert (status, "its newest incident at 2026-11-21" in errors) == (1, True)
    for make in (lambda: None, path.touch):  # missing, and without its log
        make()
        status, _, errors = tocsin("prove")
        assert (status, "its newest incident at 2026-11-21" in errors) == (2, True)


def test_as_json_it_is_what_the_api_answers(tocsin, write):
    write(an_incident)
    status, out, _ = tocsin("prove", "--json")
    assert status == 1
    assert json.loads(out)["incidents"]["alerted"] == 1


@pytest.mark.parametrize("since", ["1", "soon", "0s", "32d", "P1M"])
def test_a_period_that_is_none_is_refused(tocsin, since):
    status, out, errors = tocsin("prove", "--since", since)
    assert (status, out) == (2, "")
    assert errors.startswith(f"--since: found {since!r}; use ")


def test_a_trace_is_one_record_a_line(tocsin, write):
    write(an_incident)
    write(its_delivery)
    status, out, errors = tocsin("trace", "1")
    assert (status, errors) == (0, "")
    told = [[what, name, outcome] for what, name, outcome, *_ in lines(out)]
    assert told == [
        ["incident", "1", "created"],
        ["coverage", "sensors/sensors sensors", "sensors"],
        ["alert", "", "alerted"],
        ["event", "evt_1", "dead"],
        ["delivery", "soar dlv_1", "dead"],
        ["attempt", "1", "refused"],
    ]


def test_a_trace_tells_who_looked_into_it_and_what_was_told_of_that(tocsin, write):
    write(an_incident)
    write(its_delivery)
    write(its_investigation)
    told = lines(tocsin("trace", "1")[1])
    assert [line[0] for line in told[3:]] == ["investigation", "event", "delivery", "attempt"]
    assert told[3][2] == "malicious"
    assert "ana: what did 203.0.113.9 do?" in told[3][4]


def test_a_trace_shows_changes_and_counts_earlier_ones(tocsin, write):
    write(an_incident)
    write(its_delivery)
    write(its_changes)
    told = lines(tocsin("trace", "1")[1])[6:]
    assert told[0][:3] == ["earlier changes", "1", "suppressed"]
    assert {line[0] for line in told[1:]} == {"change"}
    assert told[-1][1:3] == ["evt_c50", "no-destination"]
    assert told[-1][4] == "incident-changed; status New to Closed"


def test_a_trace_as_json_is_what_the_api_answers(tocsin, write):
    write(an_incident)
    status, out, _ = tocsin("trace", "1", "--json")
    assert status == 0
    assert json.loads(out)["incident"]["number"] == 1


def test_an_unknown_incident_is_said_to_be_so(tocsin, write):
    write(an_incident)
    assert tocsin("trace", "2") == (2, "", "no incident with number 2\n")


def on_a_terminal(folder: Path, *arguments: str) -> str:
    """What a command writes there."""
    ours, theirs = pty.openpty()
    environment = {name: os.environ[name] for name in os.environ if not name.startswith("TOCSIN_")}
    environment |= {"NO_COLOR": "1", "COLUMNS": "200"}
    output, errors = Path(os.ttyname(theirs)), folder / "errors"
    command = ForkedCommand(arguments, folder, environment, output=output, errors=errors)
    assert command.join() == 0, errors.read_text()
    os.close(theirs)
    written = os.read(ours, 65_536).decode()
    os.close(ours)
    return written.replace("\r\n", "\n")


def test_on_a_terminal_a_trace_is_a_tree_that_steers_nothing(write, tmp_path):
    write(an_incident)
    write(its_delivery)
    written = on_a_terminal(tmp_path, "trace", "1")
    depths = [len(line) - len(line.lstrip()) for line in written.splitlines()]
    assert depths == [0, 2, 2, 2, 4, 6]
    assert r"Sign-ins\u001b[2J from afar" in written
    assert "\x1b" not in written
