"""Deliveries as they are read back."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import Connection, event, update

from delivery_rows import NOW, add_delivery, add_destination, add_event
from tocsin.delivery.history.filters import DeliveryFilter
from tocsin.delivery.history.repository import list_deliveries, load_delivery
from tocsin.delivery.queue.states import DeliveryState
from tocsin.model import EventType
from tocsin.store import statements as counting
from tocsin.store.tables import destinations

HOUR = timedelta(hours=1)


def add_some(connection: Connection) -> dict[str, str]:
    """Store a delivery in each state, to an active and a paused destination, and name them."""
    add_destination(connection, "soc")
    add_destination(connection, "slow", "paused")
    made = {state: add_delivery(connection, state) for state in DeliveryState}
    return made | {
        "held": add_delivery(connection, "pending", to="slow", at=NOW - HOUR),
        "other": add_delivery(
            connection, to="slow", number=7, kind=EventType.SCHEDULE_DISABLED, at=NOW + HOUR
        ),
    }


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, ["other", "held", "dead", "delivered", "on_hold", "pending"]),
        ({"state": DeliveryState.PENDING}, ["pending"]),
        ({"state": DeliveryState.ON_HOLD}, ["held", "on_hold"]),
        ({"state": DeliveryState.DELIVERED}, ["delivered"]),
        ({"state": DeliveryState.DEAD}, ["other", "dead"]),
        ({"wanted": DeliveryFilter(destination="slow")}, ["other", "held"]),
        ({"wanted": DeliveryFilter(destination="slow"), "state": DeliveryState.DEAD}, ["other"]),
        ({"wanted": DeliveryFilter(event_type=EventType.SCHEDULE_DISABLED)}, ["other"]),
        ({"wanted": DeliveryFilter(subject="incident:7")}, ["other"]),
        ({"wanted": DeliveryFilter(since=NOW + HOUR)}, ["other"]),
        ({"wanted": DeliveryFilter(until=NOW)}, ["held"]),
    ],
)
async def test_a_list_holds_what_matches_the_newest_first(database, query, expected):
    made = await database.write(add_some)
    page = await database.read(list_deliveries, **query)
    assert [delivery["id"] for delivery in page.deliveries] == [made[name] for name in expected]
    assert (page.total, page.exact, page.next) == (len(expected), True, None)


async def test_what_waits_for_its_destination_is_shown_as_on_hold_with_the_reason(database):
    made = await database.write(add_some)
    shown = await database.read(load_delivery, made["held"])
    assert (shown["state"], shown["reason"]) == ("on_hold", "its destination is paused")
    assert (await database.read(load_delivery, made["pending"]))["state"] == "pending"


async def test_why_a_destination_is_paused_is_said_once(database):
    words = "the receiver returned 500"

    def fail(connection):
        add_destination(connection, "slow", "paused")
        why = {"reason": "failing", "detail": words}
        connection.execute(update(destinations).values(why))
        return add_delivery(connection, "pending", to="slow", reason=words)

    shown = await database.read(load_delivery, await database.write(fail))
    assert shown["reason"] == f"its destination is paused after repeated failures: {words}"


async def test_pages_follow_each_other(database):
    def add_five(connection):
        return [add_delivery(connection) for _ in range(5)]

    made, found, before = await database.write(add_five), [], None
    while True:
        page = await database.read(list_deliveries, limit=2, before=before)
        found += [delivery["id"] for delivery in page.deliveries]
        assert page.total == 5
        if (before := page.next) is None:
            break
    assert found == made[::-1]


async def test_a_total_is_counted_so_far_and_no_further(database, monkeypatch):
    monkeypatch.setattr(counting, "MAX_COUNTED", 3)

    def add(connection):
        for _ in range(4):
            add_delivery(connection)

    await database.write(add)
    page = await database.read(list_deliveries, limit=1)
    assert (page.total, page.exact) == (3, False)


async def test_a_delivery_is_read_with_its_envelope_and_every_attempt(database):
    id_ = await database.write(add_delivery, tried=2)
    shown = await database.read(load_delivery, id_)
    assert shown["event"] == {
        "event_type": "incident-alert",
        "timestamp": "2026-11-21T12:00:00.000Z",
        "data": {"incident_number": 1},
    }
    assert [attempt["number"] for attempt in shown["attempts"]] == [1, 2]
    assert shown["attempts"][0]["response"] == "busy \N{REPLACEMENT CHARACTER}"


async def test_there_is_nothing_to_read_of_an_unknown_delivery(database):
    assert await database.read(load_delivery, "dlv_1") is None


def plan(connection: Connection, **query) -> list[str]:
    """Return the plan of every statement that a list executes."""
    statements = []

    def note(_connection, _cursor, statement, parameters, _context, _many):
        statements.append((statement, parameters))

    event.listen(connection, "before_cursor_execute", note)
    try:
        list_deliveries(connection, **query)
    finally:
        event.remove(connection, "before_cursor_execute", note)
    return [
        row[3]
        for statement, parameters in statements
        for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
    ]


DEAD, ON_HOLD, PENDING = DeliveryState.DEAD, DeliveryState.ON_HOLD, DeliveryState.PENDING


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("query", "index"),
    [
        ({"before": "dlv_2"}, "(id<?)"),
        ({"state": DEAD, "before": "dlv_2"}, "ix_deliveries_resting (state=? AND id<?)"),
        (
            {"state": DEAD, "wanted": DeliveryFilter(destination="soc")},
            "ix_deliveries_resting (state=?)",
        ),
        ({"state": DEAD, "wanted": DeliveryFilter(since=NOW)}, "ix_deliveries_resting (state=?)"),
        ({"state": ON_HOLD}, "ix_deliveries_resting (state=?)"),
        ({"state": PENDING}, "ix_deliveries_waiting (destination=?)"),
        ({"wanted": DeliveryFilter(subject="incident:7")}, "ix_events_subject (subject=?)"),
        (
            {"wanted": DeliveryFilter(since=NOW)},
            "ix_events_timestamp (timestamp>? AND timestamp<?)",
        ),
        (
            {"wanted": DeliveryFilter(until=NOW)},
            "ix_events_timestamp (timestamp>? AND timestamp<?)",
        ),
    ],
)
async def test_a_list_goes_by_an_index(database, query, index):
    steps = await database.read(plan, **query)
    assert any(index in step for step in steps), steps
    # destinations are few, and of what waits no more is walked than waits
    few = ("SCAN destinations", "SCAN anon_", "SCAN deliveries USING INDEX ix_deliveries_due")
    whole = [step for step in steps if step.startswith("SCAN") and not step.startswith(few)]
    # a count without conditions on deliveries stops after 10,001 of them
    assert "before" in query or whole == [], steps


async def test_an_event_that_nobody_wants_has_no_delivery(database):
    await database.write(add_event)
    assert (await database.read(list_deliveries)).total == 0


def test_the_former_name_of_on_hold_is_accepted():
    assert DeliveryState.parse("Parked") is DeliveryState.ON_HOLD
    assert DeliveryState.parse_replayable("parked") is DeliveryState.ON_HOLD


@pytest.mark.parametrize("word", ["pending", "lost", ""])
def test_bulk_replays_take_resting_states_alone(word):
    with pytest.raises(ValueError, match=r"^use one of: dead, on_hold, delivered$"):
        DeliveryState.parse_replayable(word)
