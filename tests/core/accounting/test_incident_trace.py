"""The chain of one incident."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from graph_rows import Graph
from graph_rows import incident as incident_node
from session_rows import add_session
from tocsin.accounting import MAX_CHANGES
from tocsin.channels import list_updated_objects
from tocsin.delivery.destinations.repository import DestinationState
from tocsin.events import hold_events
from tocsin.investigations.write_backs import plan_write_backs
from tocsin.model import ChangeType, Incident, Node, NodeKind, RelationType, Severity
from tocsin.stops import StopKind, StopOrder, begin_stop, end_stop

FILE = "/var/log/eve.json"
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def incident(severity: Severity = Severity.HIGH) -> Incident:
    return Incident(external_id="a", title="Sign-ins", severity=severity, occurred_at=NOON)


async def test_the_stretch_that_brought_it_and_its_event_are_told(happened):
    await happened.read((FILE, 0, 100), incidents=(incident(),), records=1)
    found = await happened.trace(1)
    assert found["incident"] == {
        "number": 1,
        "provider": "edge",
        "external_id": "a",
        "title": "Sign-ins",
        "severity": "High",
        "created_at": "2026-11-21T12:00:00.000Z",
    }
    assert found["coverage"] == {
        "provider": "edge",
        "stream": "changed",
        "source": FILE,
        "from": 0,
        "to": 100,
        "outcome": "read",
        "reason": None,
        "started_at": "2026-11-21T12:00:00.000Z",
        "finished_at": "2026-11-21T12:00:00.000Z",
    }
    assert found["alert"]["outcome"] == "alerted"
    [event] = found["events"]
    assert event.pop("id").startswith("evt_")
    assert event == {
        "event_type": "incident-alert",
        "timestamp": "2026-11-21T12:00:00.000Z",
        "outcome": "not-routed",
        "reason": None,
        "suppressed_by": None,
        "deliveries": [],
    }


async def test_an_event_on_hold_is_traced_with_its_reason(happened):
    await happened.sync()
    event = await happened.emit(routed=False)
    await happened.database.write(hold_events, {event: "no type of this name"})
    [traced] = (await happened.trace(1))["events"]
    assert (traced["outcome"], traced["reason"]) == ("on-hold", "no type of this name")


async def test_of_what_is_pushed_no_later_push_is_told(happened, clock):
    first = clock.now()
    await happened.read(("pushed", first, first), incidents=(incident(),), records=1)
    clock.advance(minutes=5)
    later = clock.now()
    await happened.read(("pushed", later, later), records=1)
    told = (await happened.trace(1))["coverage"]
    assert (told["from"], told["to"]) == ("2026-11-21T12:00:00.000Z", "2026-11-21T12:05:00.000Z")


async def test_every_delivery_is_told_with_every_attempt(happened, clock):
    await happened.sync()
    await happened.destination("soc")
    await happened.destination("chat", state=DestinationState.PAUSED)
    event = await happened.emit("incident:1")
    first = await happened.deliver(
        event, "delivered", "soc", attempts=2, remote_id="T-1", finished_at=clock.now()
    )
    await happened.attempt(first, 1, "later", status=503, reason="busy")
    await happened.attempt(first, 2, "delivered", status=200)
    second = await happened.deliver(event, "pending", "chat")
    [told] = (await happened.trace(1))["events"]
    noon = "2026-11-21T12:00:00.000Z"
    usual = {"started_at": noon, "duration_ms": 12}
    assert told["outcome"] == "on-hold"
    assert told["deliveries"] == [
        {
            "id": first,
            "destination": "soc",
            "state": "delivered",
            "reason": None,
            "due_at": None,
            "remote_id": "T-1",
            "remote_url": None,
            "finished_at": noon,
            "attempts": [
                {"number": 1, "outcome": "later", "status": 503, "reason": "busy", **usual},
                {"number": 2, "outcome": "delivered", "status": 200, "reason": None, **usual},
            ],
        },
        {
            "id": second,
            "destination": "chat",
            "state": "on_hold",
            "reason": "its destination is paused",
            "due_at": noon,
            "remote_id": None,
            "remote_url": None,
            "finished_at": None,
            "attempts": [],
        },
    ]


CHANGE = ChangeType.INCIDENT_CHANGED
CLOSED = {"status": {"from": "New", "to": "Closed"}}


async def test_a_change_is_traced_with_its_deliveries_apart_from_events(happened, clock):
    await happened.sync()
    await happened.destination("jira")
    await happened.emit()
    change = await happened.emit(event_type=CHANGE, changes=CLOSED)
    await happened.emit("incident:11", event_type=CHANGE, changes=CLOSED)
    delivery = await happened.deliver(
        change, "delivered", "jira", attempts=1, remote_id="SEC-7", finished_at=clock.now()
    )
    closed = b'{"objects":[{"id":"SEC-7","made":false,"noted":false,"closed":true}]}'
    await happened.attempt(delivery, 1, "delivered", status=204, response=closed)
    await happened.attempt(delivery, 2, "delivered", response=closed.replace(b"true", b"false"))
    found = await happened.trace(1)
    assert [event["event_type"] for event in found["events"]] == ["incident-alert"]
    [traced] = found["changes"]
    assert (traced["id"], traced["event_type"], traced["outcome"]) == (change, CHANGE, "arrived")
    assert traced["members"] == [{"name": "status", "from": "New", "to": "Closed"}]
    [told] = traced["deliveries"]
    assert (told["id"], told["destination"], told["remote_id"]) == (delivery, "jira", "SEC-7")
    assert [attempt["status"] for attempt in told["attempts"]] == [204, None]
    assert traced["objects"] == [{"destination": "jira", "id": "SEC-7", "closed": True}]
    assert set(found["earlier_changes"].values()) == {0}


@pytest.mark.parametrize(
    "response", [b"", b"ok", b"[]", b'{"objects":7}', b'{"objects":["T-1"]}', b'{"objects":[{"id"']
)
def test_a_response_of_another_form_names_no_object(response):
    assert list_updated_objects(response) == {}


async def test_changes_on_hold_are_traced_with_the_stop_that_delays_them(happened, clock):
    await happened.sync()
    await happened.destination("jira", state=DestinationState.DISABLED)
    write = happened.database.write
    await write(begin_stop, StopKind.DESTINATION, "jira", StopOrder("ben"), clock.now())
    held = await happened.emit(event_type=CHANGE, changes=CLOSED)
    await happened.deliver(held, "pending", "jira")
    found = await happened.trace(1)
    [traced] = found["changes"]
    assert (traced["outcome"], traced["deliveries"][0]["state"]) == ("on-hold", "on_hold")
    assert [stop["name"] for stop in found["stops"]] == ["jira"]


async def test_the_newest_changes_are_listed_and_the_others_counted_by_outcome(happened):
    await happened.sync()
    await happened.destination("jira")
    ids = [await happened.emit(event_type=CHANGE, changes=CLOSED) for _ in range(MAX_CHANGES + 2)]
    await happened.deliver(ids[0], "dead", "jira", reason="403: forbidden")
    found = await happened.trace(1)
    assert [traced["id"] for traced in found["changes"]] == ids[2:]
    counts = {outcome: count for outcome, count in found["earlier_changes"].items() if count}
    assert counts == {"dead": 1, "no-destination": 1}


async def test_an_event_that_concerned_nobody_says_so(happened):
    await happened.sync()
    await happened.emit("incident:1")
    [event] = (await happened.trace(1))["events"]
    assert (event["outcome"], event["deliveries"]) == ("no-destination", [])


async def test_what_is_about_another_incident_is_left_out(happened):
    await happened.sync()
    await happened.emit("incident:11")
    assert (await happened.trace(1))["events"] == []


@pytest.mark.parametrize(
    ("severity", "outcome", "words"),
    [(Severity.LOW, "below-threshold", "below Medium"), (Severity.MEDIUM, "alerted", "event")],
)
async def test_what_was_said_of_its_alert_is_told_in_words(happened, severity, outcome, words):
    await happened.read((FILE, 0, 9), incidents=(incident(severity),))
    alert = (await happened.trace(1))["alert"]
    assert alert["outcome"] == outcome
    assert words in alert["detail"]


async def test_that_it_was_closed_when_first_seen_is_told_in_words(happened):
    await happened.sync(alert_outcome="first-seen-closed", status="Closed")
    alert = (await happened.trace(1))["alert"]
    assert alert["outcome"] == "first-seen-closed"
    assert "`alert_when_first_seen_closed` was off" in alert["detail"]


async def test_there_is_nothing_to_tell_of_an_unknown_number(happened):
    assert await happened.trace(1) is None


async def test_who_looked_into_it_is_told_with_what_came_of_that(happened, database, clock):
    number = await happened.sync()
    other = await happened.sync()
    examined = await database.write(add_session, now=clock.now())
    await database.write(add_session, now=clock.now())
    graph = Graph(database)
    session = Node(NodeKind.SESSION, examined)
    await graph.tell(session, RelationType.EXAMINED, incident_node(number))
    await database.write(
        plan_write_backs,
        session_id=examined,
        run=1,
        text="It is malicious.",
        incidents=[(number, "sensors", "a"), (other, "sensors", "b")],
        now=clock.now(),
    )
    event = await happened.emit(f"session:{examined}")
    finished = ChangeType.INVESTIGATION_FINISHED
    change = await happened.emit(f"session:{examined}", event_type=finished)
    [told] = (await happened.trace(number))["investigations"]
    assert (told["id"], told["verdict"], told["created_by"]) == (examined, "malicious", "ana")
    assert [each["id"] for each in told["events"]] == [event]
    assert [(each["id"], each["members"]) for each in told["changes"]] == [(change, [])]
    assert [(each["run"], each["state"]) for each in told["write_backs"]] == [(1, "pending")]
    assert (await happened.trace(other))["investigations"] == []


async def test_stops_that_delayed_the_read_or_a_delivery_are_named(happened, clock):
    edge, soc = (StopKind.PROVIDER, "edge"), (StopKind.DESTINATION, "soc")
    write = happened.database.write
    await write(begin_stop, *edge, StopOrder("ana"), clock.now())
    await write(begin_stop, StopKind.PROVIDER, "other", StopOrder("ana"), clock.now())
    clock.advance(hours=1)
    await write(end_stop, *edge, "ana", clock.now())
    await happened.read((FILE, 0, 100), incidents=(incident(),), records=1)
    [event] = (await happened.trace(1))["events"]
    await happened.destination("soc", state=DestinationState.DISABLED)
    await write(begin_stop, *soc, StopOrder("ben"), clock.now())
    await happened.deliver(event["id"], "pending")
    clock.advance(hours=1)
    await write(begin_stop, *edge, StopOrder("ana", "later"), clock.now())
    stops = (await happened.trace(1))["stops"]
    assert [(stop["name"], stop["by"], stop["reason"]) for stop in stops] == [
        ("soc", "ben", None),
        ("edge", "ana", None),
    ]
