"""Changes of incidents that plugins and destinations follow."""

from __future__ import annotations

import random
from datetime import timedelta
from itertools import pairwise

import pytest
from sqlalchemy import insert, select

from tocsin import IncidentStatus
from tocsin.delivery.destinations.repository import Destination, destination_to_row
from tocsin.incidents import Author, TriageUpdate, lock_incident, update_triage
from tocsin.incidents.coverage.positions import StalePosition
from tocsin.model import ChangeType, DispositionSource, IncidentDisposition, Severity
from tocsin.registry import ManagedBy
from tocsin.store.tables import destinations, events

from .test_store import NOW, Feed, incident

ANA = Author("ana", "admin:ana", DispositionSource.PERSON)
HOOK = {"hooks": ["tocsin_incident_changed"]}


@pytest.fixture
def feed(database) -> Feed:
    return Feed(database)


@pytest.fixture
def follow(database):
    async def follow(settings=HOOK, name="hook:observer", **members) -> None:
        kind = ManagedBy.PLUGIN if name.startswith("hook:") else ManagedBy.FILE
        made = Destination(
            name=name,
            plugin="observer",
            managed_by=kind,
            settings=settings,
            created_by="me",
            created_at=NOW,
            updated_at=NOW,
            **members,
        )
        await database.write(lambda c: c.execute(insert(destinations), destination_to_row(made)))

    return follow


@pytest.fixture
def classify(database):
    async def classify(disposition, number=1) -> None:
        def change(connection) -> None:
            lock_incident(connection, number)
            wanted = TriageUpdate(disposition=disposition)
            update_triage(connection, number, wanted, ANA, NOW, public_url="https://t.example")

        await database.write(change)

    return classify


@pytest.fixture
def emitted(database):
    async def emitted() -> list[dict]:
        query = select(events).where(events.c.event_type == ChangeType.INCIDENT_CHANGED)
        return await database.read(
            lambda c: [dict(row) for row in c.execute(query.order_by(events.c.id)).mappings()]
        )

    return emitted


async def test_a_changed_status_is_emitted_with_both_values(feed, follow, emitted):
    await follow()
    await feed.store(incident())
    await feed.store(incident(status=IncidentStatus.CLOSED, title="now"))
    [event] = await emitted()
    assert event["data"] == {
        "incident_number": 1,
        "title": "now",
        "severity": "High",
        "status": "Closed",
        "disposition": None,
        "provider": "edge",
        "url": "https://tocsin.example.org/incidents/1",
        "changes": {"status": {"from": "New", "to": "Closed"}},
    }
    assert event["subject"] == "incident:1"


async def test_a_disposition_is_emitted_once(feed, follow, classify, emitted):
    await follow({"follow_changes": True}, "chat")
    await feed.store(incident())
    for _ in range(2):
        await classify(IncidentDisposition.FALSE_POSITIVE)
    [event] = await emitted()
    assert event["data"]["changes"] == {"disposition": {"from": None, "to": "false-positive"}}
    assert event["context"]["incident"]["external_id"] == "a"


@pytest.mark.parametrize(
    ("settings", "members"),
    [
        ({}, {}),
        ({"hooks": ["tocsin_event", "tocsin_investigation_finished"]}, {}),
        (HOOK, {"state": "deleted"}),
    ],
)
async def test_nothing_is_emitted_unless_someone_follows(feed, follow, emitted, settings, members):
    await follow(settings, **members)
    await feed.store(incident())
    await feed.store(incident(status=IncidentStatus.CLOSED))
    assert await emitted() == []


@pytest.mark.parametrize("hooks", [[{"url": "http://127.0.0.1"}], 7, None, HOOK["hooks"]])
async def test_a_setting_of_a_destination_may_be_called_hooks(feed, follow, emitted, hooks):
    await follow({"hooks": hooks}, "chat")
    await feed.store(incident())
    await feed.store(incident(status=IncidentStatus.CLOSED))
    assert await emitted() == []


async def test_a_change_that_is_not_committed_is_not_emitted(feed, follow, emitted):
    await follow()
    await feed.store(incident())
    feed.revision = 0  # which another node has passed
    with pytest.raises(StalePosition):
        await feed.store(incident(status=IncidentStatus.CLOSED))
    assert await emitted() == []


@pytest.mark.parametrize("seed", range(6))
async def test_every_change_is_emitted_exactly_once(feed, follow, classify, emitted, seed):
    """Random versions, some repeated or outdated, and dispositions: the events are one chain."""
    await follow()
    chance, now = random.Random(seed), NOW
    seen = {"severity": ["High"], "status": ["New"], "disposition": [None]}
    await feed.store(incident(changed_at=now))
    for step in range(1, 25):
        if chance.random() < 0.25:
            wanted = chance.choice([None, *IncidentDisposition])
            await classify(wanted)
            found = {"disposition": wanted and wanted.value}
        else:
            is_old = chance.random() < 0.3
            status = chance.choice(list(IncidentStatus))
            severity = chance.choice([Severity.HIGH, Severity.CRITICAL])
            at = now - timedelta(hours=1) if is_old else now + timedelta(minutes=step)
            version = incident(status=status, severity=severity, changed_at=at)
            await feed.store(*[version] * chance.randint(1, 2))
            found = {} if is_old else {"severity": severity.value, "status": status.value}
        for name, value in found.items():
            if seen[name][-1] != value:
                seen[name].append(value)
    for name, values in seen.items():
        steps = [
            (event["data"]["changes"][name]["from"], event["data"]["changes"][name]["to"])
            for event in await emitted()
            if name in event["data"]["changes"]
        ]
        assert steps == list(pairwise(values))
