"""What the account says of incidents, events and deliveries."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tocsin.delivery import record_application
from tocsin.delivery.destinations.repository import DestinationState, StopReason
from tocsin.events import hold_events
from tocsin.incidents import Author, TriageUpdate, add_comment, update_triage
from tocsin.model import DispositionSource, IncidentDisposition
from tocsin.stops import StopKind, StopOrder, begin_stop, end_stop
from tocsin.store.statements import record_events_kept_from
from tocsin.store.tables import sequences

MINUTE = timedelta(minutes=1)
on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


async def test_incidents_are_counted_by_what_was_said_of_their_alert(happened):
    await happened.emit(f"incident:{await happened.sync()}")
    for outcome in ("quiet", "quiet", "rose-unalerted", "first-seen-closed"):
        await happened.sync(alert_outcome=outcome)
    assert (await happened.prove())["incidents"] == {
        "alerted": 1,
        "below-threshold": 0,
        "first-seen-closed": 1,
        "quiet": 2,
        "rose-unalerted": 1,
    }


async def test_what_people_did_to_incidents_is_counted(happened, clock):
    numbers = [await happened.sync() for _ in range(3)]
    ana = Author("ana", "oidc:1", DispositionSource.PERSON)
    ben = Author("ben", "key:2", DispositionSource.PLAYBOOK)
    duplicate = TriageUpdate(disposition=IncidentDisposition.DUPLICATE)

    async def change(number, update, author):
        await happened.database.write(
            update_triage, number, update, author, clock.now(), public_url=""
        )

    await change(numbers[0], TriageUpdate(disposition=IncidentDisposition.TRUE_POSITIVE), ana)
    clock.advance(hours=2)
    await happened.database.write(add_comment, numbers[0], "seen", ana, clock.now())
    await change(numbers[1], duplicate, ana)
    await change(numbers[1], TriageUpdate(assignee="ben"), ana)
    await change(numbers[2], duplicate, ben)
    triage = (await happened.prove(back=timedelta(hours=1)))["triage"]
    assert triage["authors"] == [
        {"by": "ben", "actor": "key:2", "changes": 1, "incidents": 1},
        {"by": "ana", "actor": "oidc:1", "changes": 3, "incidents": 2},
    ]
    assert {name: count for name, count in triage["dispositions"].items() if count} == {
        "duplicate": 2
    }
    earlier = await happened.prove(ended=timedelta(hours=1))
    assert [each["changes"] for each in earlier["triage"]["authors"]] == [1]
    assert earlier["triage"]["dispositions"]["true-positive"] == 1


async def test_an_event_is_as_badly_off_as_its_worst_delivery(happened):
    for name in ("soc", "chat", "mail"):
        await happened.destination(name)
    for states in (
        ["delivered", "delivered"],
        ["delivered", "pending"],
        ["pending", "on_hold", "delivered"],
        ["on_hold", "dead", "pending"],
        [],
    ):
        event = await happened.emit()
        for name, state in zip(("soc", "chat", "mail"), states, strict=False):
            await happened.deliver(event, state, name)
    await happened.emit(routed=False)
    proof = await happened.prove()
    outcomes = ("arrived", "pending", "on-hold", "dead", "no-destination", "not-routed")
    assert proof["events"] == dict.fromkeys(outcomes, 1) | {"suppressed": 0}
    assert proof["unaccounted"] == []
    assert proof["destinations"] == [
        {"destination": "chat", "delivered": 1, "pending": 1, "on_hold": 1, "dead": 1},
        {"destination": "mail", "delivered": 1, "pending": 1, "on_hold": 0, "dead": 0},
        {"destination": "soc", "delivered": 2, "pending": 1, "on_hold": 1, "dead": 0},
    ]
    assert len(proof["not_arrived"]) == proof["not_arrived_total"] == 6


async def test_what_is_dead_is_told_with_its_reason(happened):
    await happened.destination()
    event = await happened.emit("incident:7")
    facts = {"reason": "400: no such field", "attempts": 3, "subject": "incident:7"}
    delivery = await happened.deliver(event, "dead", **facts)
    [missing] = (await happened.prove())["not_arrived"]
    assert missing == {
        "id": delivery,
        "destination": "soc",
        "state": "dead",
        "reason": "400: no such field",
        "due_at": None,
        "remote_id": None,
        "remote_url": None,
        "finished_at": None,
        "event_id": event,
        "event_type": "incident-alert",
        "subject": "incident:7",
        "timestamp": "2026-11-21T12:00:00.000Z",
        "attempts": 3,
    }


async def test_what_waits_is_told_with_its_next_attempt(happened, clock):
    await happened.destination()
    event = await happened.emit()
    due = clock.now() + 30 * MINUTE
    await happened.deliver(event, "pending", due=due, reason="503", attempts=1)
    [missing] = (await happened.prove())["not_arrived"]
    told = (missing["state"], missing["reason"], missing["due_at"])
    assert told == ("pending", "503", "2026-11-21T12:30:00.000Z")


@pytest.mark.parametrize(
    ("members", "reason", "due_at"),
    [
        (
            {"state": DestinationState.PAUSED, "reason": StopReason.FAILING, "detail": "timed out"},
            "its destination is paused after repeated failures: timed out; last attempt: 503",
            "2026-11-21T12:10:00.000Z",
        ),
        (
            {"state": DestinationState.DISABLED, "reason": StopReason.MANUAL},
            "its destination is disabled; last attempt: 503",
            None,
        ),
        (
            {
                "state": DestinationState.DISABLED,
                "reason": StopReason.MANUAL,
                "detail": "by alice, until someone enables it",
            },
            "its destination is disabled by alice, until someone enables it; last attempt: 503",
            None,
        ),
        (
            {"state": DestinationState.DELETED},
            "its destination is deleted; last attempt: 503",
            None,
        ),
    ],
)
async def test_what_waits_for_its_destination_is_on_hold(happened, clock, members, reason, due_at):
    await happened.destination(held_until=clock.now() + 10 * MINUTE, **members)
    await happened.deliver(await happened.emit(), "pending", reason="503")
    clock.advance(minutes=12)
    proof = await happened.prove()
    [missing] = proof["not_arrived"]
    told = (missing["state"], missing["reason"], missing["due_at"])
    assert told == ("on_hold", reason, due_at)
    assert proof["events"]["on-hold"] == 1
    assert proof["unaccounted"] == []


async def test_only_the_periods_events_are_told_the_oldest_first(happened, clock):
    await happened.destination()
    ids = []
    for _ in range(3):
        ids.append(await happened.deliver(await happened.emit(), "dead", reason="x"))
        clock.advance(hours=1)
    proof = await happened.prove(back=timedelta(hours=2, minutes=30))
    assert [missing["id"] for missing in proof["not_arrived"]] == ids[1:]
    assert proof["events"]["dead"] == proof["not_arrived_total"] == 2


async def test_periods_that_follow_each_other_share_nothing(happened, clock):
    await happened.sync(alert_outcome="quiet")
    await happened.emit()
    clock.advance(hours=1)
    hour = timedelta(hours=1)
    before, after = await happened.prove(ended=hour), await happened.prove(back=hour)
    assert (before["events"]["no-destination"], before["incidents"]["quiet"]) == (1, 1)
    assert (after["events"]["no-destination"], after["incidents"]["quiet"]) == (0, 0)


@on_sqlite
async def test_a_long_list_is_cut_and_its_length_told(happened, monkeypatch):
    monkeypatch.setattr("tocsin.accounting.delivery_outcomes.MAX_LISTED", 2)
    await happened.destination()
    for _ in range(3):
        await happened.deliver(await happened.emit(), "dead", reason="x")
    proof = await happened.prove()
    assert (len(proof["not_arrived"]), proof["not_arrived_total"]) == (2, 3)


# What nothing explains


async def test_an_alerted_incident_without_an_event_is_unaccounted_for(happened):
    numbers = [await happened.sync() for _ in range(3)]
    await happened.emit(f"incident:{numbers[1]}")
    expected = [("no-event", f"incident:{number}") for number in (numbers[0], numbers[2])]
    assert await happened.unaccounted() == expected


async def test_an_incident_that_was_not_to_be_alerted_needs_no_event(happened):
    await happened.sync(alert_outcome="below-threshold", severity="Low")
    await happened.sync(alert_outcome="quiet")
    assert await happened.unaccounted() == []


async def test_an_event_that_nobody_looked_at_is_unaccounted_for_after_five_minutes(
    happened, clock
):
    event = await happened.emit(routed=False)
    clock.advance(minutes=4, seconds=59)
    assert await happened.unaccounted() == []
    clock.advance(seconds=1)
    assert await happened.unaccounted() == [("not-routed", event)]
    clock.advance(days=3)
    assert await happened.unaccounted() == [("not-routed", event)]
    assert await happened.unaccounted(back=9 * 24 * 60 * MINUTE, ended=4 * 24 * 60 * MINUTE) == []


async def test_an_event_on_hold_is_unaccounted_for_at_once(happened):
    event = await happened.emit(routed=False)
    await happened.database.write(hold_events, {event: "no type of this name"})
    assert await happened.unaccounted() == [("not-routed", event)]
    assert (await happened.prove())["events"]["on-hold"] == 1


async def test_a_due_delivery_that_is_not_tried_is_unaccounted_for_after_five_minutes(
    happened, clock
):
    await happened.destination()
    delivery = await happened.deliver(await happened.emit(), "pending")
    clock.advance(minutes=5)
    assert await happened.unaccounted() == []
    clock.advance(seconds=1)
    assert await happened.unaccounted() == [("overdue", delivery)]
    clock.advance(days=3)
    assert await happened.unaccounted() == [("overdue", delivery)]


async def test_a_lease_that_ran_out_long_ago_explains_nothing(happened, clock):
    await happened.destination()
    event = await happened.emit()
    delivery = await happened.deliver(event, "pending", lease="lease_1", holder=1)
    clock.advance(minutes=6)
    assert await happened.unaccounted() == [("overdue", delivery)]


async def test_a_delivery_that_waits_behind_an_older_one_of_its_subject_is_not_overdue(
    happened, clock
):
    await happened.destination()
    later = clock.now() + timedelta(hours=5)
    await happened.deliver(await happened.emit(), "pending", due=later)
    await happened.deliver(await happened.emit(), "pending")
    clock.advance(hours=1)
    assert await happened.unaccounted() == []


@pytest.mark.parametrize("name", ["held_until", "free_at"])
async def test_a_destination_that_may_send_nothing_now_makes_nothing_overdue(happened, clock, name):
    await happened.destination(**{name: clock.now() + 60 * MINUTE})
    delivery = await happened.deliver(await happened.emit(), "pending")
    clock.advance(minutes=65)
    assert await happened.unaccounted() == []
    clock.advance(seconds=1)
    assert await happened.unaccounted() == [("overdue", delivery)]


async def test_what_waits_for_a_destination_that_there_is_not_is_unaccounted_for(happened):
    pending = await happened.deliver(await happened.emit(), "pending", "gone")
    held = await happened.deliver(await happened.emit(), "on_hold", "gone")
    await happened.deliver(await happened.emit(), "delivered", "gone")
    await happened.deliver(await happened.emit(), "dead", "gone", reason="x")
    proof = await happened.prove()
    kinds = [(item["kind"], item["what"]) for item in proof["unaccounted"]]
    assert kinds == [("no-destination", pending), ("no-destination", held)]
    assert proof["not_arrived"][0]["reason"] == "there is no destination with this name"


async def test_a_database_in_which_nothing_happened_is_accounted_for(happened):
    proof = await happened.prove()
    assert (proof["since"], proof["until"]) == (
        "2026-11-20T12:00:00.000Z",
        "2026-11-21T12:00:00.000Z",
    )
    assert proof["unaccounted"] == proof["coverage"] == proof["not_arrived"] == []


async def test_incidents_of_before_what_is_kept_are_not_missed(happened, clock):
    await happened.sync()
    clock.advance(seconds=1)
    await happened.database.write(record_events_kept_from, clock.now())
    clock.advance(seconds=1)
    later = await happened.sync()
    assert await happened.unaccounted() == [("no-event", f"incident:{later}")]


async def test_a_paused_destination_that_nobody_tries_is_missed(happened, clock):
    paused = {"state": DestinationState.PAUSED, "reason": StopReason.FAILING}
    await happened.destination(held_until=clock.now(), **paused)
    due = clock.now() + timedelta(hours=9)
    await happened.deliver(await happened.emit(), "pending", due=due)
    clock.advance(minutes=4)
    assert await happened.unaccounted() == []
    clock.advance(minutes=2)
    assert await happened.unaccounted() == [("overdue", "destination:soc")]


def forget_application(connection):
    name = sequences.c.name == "configuration_applied_from"
    connection.execute(sequences.delete().where(name))


async def test_events_that_nobody_got_because_nothing_was_applied_are_unaccounted_for(
    happened, database, clock
):
    await database.write(forget_application)
    missed = await happened.emit()
    waiting = await happened.emit(routed=False)
    both = [("not-applied", missed), ("not-applied", waiting)]
    assert await happened.unaccounted() == both
    await database.write(record_application)
    clock.advance(minutes=1)
    await happened.emit()
    assert await happened.unaccounted() == both[:1]
    clock.advance(days=40)
    assert await happened.unaccounted() == [*both[:1], ("not-routed", waiting)]


async def test_a_stopped_provider_is_named_and_not_silent(happened, clock):
    await happened.read(("", clock.now() - 60 * MINUTE, clock.now()))
    stop = StopOrder("ana", "Busy")
    await happened.database.write(begin_stop, StopKind.PROVIDER, "edge", stop, clock.now())
    clock.advance(hours=3)
    account = await happened.prove()
    assert (account["silent"], account["unaccounted"]) == ([], [])
    [named] = account["stops"]
    assert (named["name"], named["by"], named["reason"]) == ("edge", "ana", "Busy")
    await happened.database.write(end_stop, StopKind.PROVIDER, "edge", "ana", clock.now())
    clock.advance(hours=2)
    account = await happened.prove()
    assert [stream["provider"] for stream in account["silent"]] == ["edge"]
