"""What storing a page of a provider comes to."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import Connection, func, select

from tocsin import (
    Alert,
    Covered,
    Entity,
    EntityKind,
    Incident,
    IncidentStatus,
    Page,
    Received,
    Rejected,
)
from tocsin.incidents.coverage import attach_push
from tocsin.incidents.coverage.positions import StalePosition, StreamKey, load_position
from tocsin.incidents.storage.alerts import IncidentPolicy
from tocsin.incidents.storage.store import StoreResult, store_page
from tocsin.knowledge.history import load_incidents
from tocsin.model import Severity
from tocsin.store.tables import (
    coverage,
    events,
    incident_alerts,
    incident_entities,
    incidents,
    quarantine,
    rereads,
)

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
KEY = StreamKey("edge", "changed")
POLICY = IncidentPolicy("https://tocsin.example.org")


def incident(external_id="a", severity=Severity.HIGH, **members) -> Incident:
    given = {"title": "t", "occurred_at": NOW, **members}
    return Incident(external_id=external_id, severity=severity, **given)


def entity(value: str) -> Entity:
    return Entity(EntityKind.IP, value)


class Feed:
    """Stores pages one after another, as the loop does."""

    def __init__(self, database) -> None:
        self.database = database
        self.revision = 0

    async def store(self, *found, policy=POLICY, now=NOW, **members) -> StoreResult:
        page = Page(next_position={"at": self.revision}, incidents=found, **members)
        stored = await self.database.write(
            store_page, KEY, page, revision=self.revision, policy=policy, now=now
        )
        self.revision += 1
        return stored

    async def rows(self, table, *order) -> list:
        def read(connection: Connection) -> list:
            return list(connection.execute(select(table).order_by(*order)).mappings())

        return await self.database.read(read)

    async def only(self, table):
        [row] = await self.rows(table)
        return row


@pytest.fixture
def feed(database) -> Feed:
    return Feed(database)


async def test_a_new_incident_gets_the_next_number_and_an_event(feed):
    stored = await feed.store(incident("a"), incident("b"))
    assert (stored.counts.new, stored.events) == (2, 2)
    assert [row["number"] for row in await feed.rows(incidents, incidents.c.number)] == [1, 2]
    event = (await feed.rows(events, events.c.subject))[0]
    assert event["subject"] == "incident:1"
    assert event["data"] == {
        "incident_number": 1,
        "title": "t",
        "severity": "High",
        "status": "New",
        "provider": "edge",
        "url": "https://tocsin.example.org/incidents/1",
    }


async def test_the_position_moves_with_its_page(feed, database):
    await feed.store(incident())
    position = await database.read(load_position, KEY)
    assert (position.value, position.revision) == ({"at": 0}, 1)


async def test_a_page_read_from_a_stale_position_is_refused_whole(feed):
    await feed.store(incident("a"))
    feed.revision = 0
    with pytest.raises(StalePosition):
        await feed.store(incident("b"))
    assert [row["external_id"] for row in await feed.rows(incidents)] == ["a"]


async def test_the_same_incident_again_changes_nothing(feed):
    await feed.store(incident(entities=(entity("192.0.2.1"),)))
    before = await feed.only(incidents)
    stored = await feed.store(incident(entities=(entity("192.0.2.1"),)), now=NOW + timedelta(1))
    assert (stored.counts.new, stored.counts.changed, stored.events) == (0, 0, 0)
    assert await feed.only(incidents) == before


async def test_a_changed_incident_moves_to_the_end_of_the_order_of_changes(feed):
    await feed.store(incident("a"), incident("b"))
    await feed.store(incident("a", status=IncidentStatus.CLOSED))
    rows = await feed.rows(incidents, incidents.c.change)
    assert [(row["external_id"], row["change"], row["status"]) for row in rows] == [
        ("b", 2, "New"),
        ("a", 3, "Closed"),
    ]


async def test_late_entities_are_added_to_those_known(feed):
    await feed.store(incident(entities=(entity("192.0.2.1"),)))
    stored = await feed.store(incident(entities=(entity("192.0.2.2"),)))
    assert stored.counts.changed == 1
    rows = await feed.rows(incident_entities, incident_entities.c.value)
    assert [row["value"] for row in rows] == ["192.0.2.1", "192.0.2.2"]


async def test_roles_of_entities_are_stored_and_grow(feed, database):
    one, other, third = map(entity, ("192.0.2.1", "192.0.2.2", "192.0.2.3"))
    await feed.store(incident(entities=(one, third), sources=(one,)))
    stored = await feed.store(incident(sources=(other,), targets=(one,)))
    assert stored.counts.changed == 1
    again = await feed.store(incident(entities=(one, other, third), sources=(one,), targets=(one,)))
    assert again.counts.changed == 0
    [record] = await database.read(load_incidents, [1], {})
    assert (record.entities, record.sources, record.targets) == (
        (one, other, third),
        (one, other),
        (one,),
    )


async def test_tactics_are_stored_by_id_and_grow(feed, database):
    await feed.store(incident(tactics=("Impact", "TA0006", "Malware")))
    stored = await feed.store(incident(tactics=("InitialAccess",)))
    assert stored.counts.changed == 1
    assert (await feed.store(incident(tactics=("TA0006",)))).counts.changed == 0
    [record] = await database.read(load_incidents, [1], {})
    assert record.tactics == ("TA0001", "TA0006", "TA0040")


async def test_an_alert_counts_once_however_often_it_is_handed_over(feed):
    alert = Alert(external_id="x", title="t", severity=Severity.LOW, occurred_at=NOW)
    await feed.store(incident(alerts=(alert, alert)))
    stored = await feed.store(incident(alerts=(alert, replace(alert, external_id="y"))))
    assert stored.counts.changed == 1
    assert len(await feed.rows(incident_alerts)) == 2
    assert (await feed.only(incidents))["alert_count"] == 2


async def test_versions_of_one_incident_in_a_page_become_one(feed):
    old, new = NOW, NOW + timedelta(minutes=1)
    stored = await feed.store(
        incident(status=IncidentStatus.CLOSED, changed_at=new, entities=(entity("192.0.2.1"),)),
        incident(status=IncidentStatus.NEW, changed_at=old, entities=(entity("192.0.2.2"),)),
    )
    assert stored.counts.new == 1
    assert (await feed.only(incidents))["status"] == "Closed"
    assert len(await feed.rows(incident_entities)) == 2


async def test_an_older_version_never_overwrites_a_newer_one(feed):
    await feed.store(incident(status=IncidentStatus.CLOSED, changed_at=NOW))
    stored = await feed.store(incident(changed_at=NOW - timedelta(minutes=1)))
    assert stored.counts.changed == 0
    assert (await feed.only(incidents))["status"] == "Closed"


async def test_a_version_without_a_time_does_not_open_the_door_to_older_ones(feed):
    await feed.store(incident(status=IncidentStatus.CLOSED, changed_at=NOW))
    await feed.store(incident(status=IncidentStatus.CLOSED))
    await feed.store(incident(changed_at=NOW - timedelta(minutes=1)))
    assert (await feed.only(incidents))["status"] == "Closed"


async def test_long_identifiers_that_differ_at_their_end_stay_different(feed):
    stored = await feed.store(incident("x" * 600 + "a"), incident("x" * 600 + "b"))
    assert stored.counts.new == 2
    again = await feed.store(incident("x" * 600 + "a"))
    assert (again.counts.new, again.counts.changed) == (0, 0)


async def test_two_first_readers_do_not_both_store(feed, database):
    import asyncio

    async def first() -> object:
        page = Page(next_position={}, incidents=(incident(),))
        return await database.write(store_page, KEY, page, revision=0, policy=POLICY, now=NOW)

    results = await asyncio.gather(first(), first(), return_exceptions=True)
    assert sorted(type(result).__name__ for result in results) == [
        "StalePosition",
        "StoreResult",
    ]


async def test_the_earliest_occurrence_is_kept(feed):
    await feed.store(incident())
    await feed.store(replace(incident(), occurred_at=NOW - timedelta(hours=1)))
    await feed.store(replace(incident(), occurred_at=NOW + timedelta(hours=1)))
    assert (await feed.only(incidents))["occurred_at"] == NOW - timedelta(hours=1)


@pytest.mark.parametrize(
    ("severity", "events_expected", "outcome"),
    [
        (Severity.INFORMATIONAL, 0, "below-threshold"),
        (Severity.LOW, 0, "below-threshold"),
        (Severity.MEDIUM, 1, "alerted"),
        (Severity.HIGH, 1, "alerted"),
        (Severity.CRITICAL, 1, "alerted"),
    ],
)
async def test_medium_and_above_is_alerted(feed, severity, events_expected, outcome):
    stored = await feed.store(incident(severity=severity))
    assert stored.events == events_expected
    assert (await feed.only(incidents))["alert_outcome"] == outcome


async def test_an_incident_that_rises_is_alerted_only_where_that_was_asked_for(feed):
    await feed.store(incident("a", Severity.LOW), incident("b", Severity.LOW))
    assert (await feed.store(incident("a", Severity.HIGH))).events == 0
    policy = replace(POLICY, on_escalation=True)
    assert (await feed.store(incident("b", Severity.HIGH), policy=policy)).events == 1
    rows = await feed.rows(incidents, incidents.c.external_id)
    assert [row["alert_outcome"] for row in rows] == ["rose-unalerted", "alerted"]


async def test_an_incident_is_alerted_once(feed):
    await feed.store(incident())
    assert (await feed.store(incident(severity=Severity.CRITICAL))).events == 0


async def test_a_quiet_page_says_so(feed):
    stored = await feed.store(incident(), policy=replace(POLICY, quiet=True))
    assert stored.events == 0
    assert (await feed.only(incidents))["alert_outcome"] == "quiet"


@pytest.mark.parametrize("severity", [Severity.LOW, Severity.HIGH])
async def test_an_incident_first_seen_closed_is_stored_and_never_alerted_if_so_set(feed, severity):
    policy = replace(POLICY, first_seen_closed=False, on_escalation=True)
    closed = incident("a", severity, status=IncidentStatus.CLOSED)
    assert (await feed.store(closed, incident("b", Severity.HIGH), policy=policy)).events == 1
    reopened = incident("a", Severity.CRITICAL, status=IncidentStatus.ACTIVE)
    assert (await feed.store(reopened, policy=policy)).events == 0
    rows = await feed.rows(incidents, incidents.c.external_id)
    assert [row["alert_outcome"] for row in rows] == ["first-seen-closed", "alerted"]
    assert [event["subject"] for event in await feed.rows(events)] == ["incident:2"]


async def test_an_incident_first_seen_closed_is_alerted_by_default(feed):
    assert (await feed.store(incident(status=IncidentStatus.CLOSED))).events == 1


async def test_a_version_for_stored_incidents_makes_no_new_one(feed):
    policy = replace(POLICY, refresh_after=(timedelta(minutes=1),))
    hidden = [incident(name, title="hidden", only_if_stored=True) for name in "ab"]
    await feed.store(incident("a"), policy=policy)
    stored = await feed.store(*hidden, incomplete=("a", "b"), policy=policy)
    assert (stored.counts.new, stored.counts.changed, stored.events) == (0, 1, 0)
    assert (await feed.only(incidents))["title"] == "hidden"
    assert [row["external_id"] for row in await feed.rows(rereads)] == ["a"]
    shown = incident("b", title="shown")
    assert (await feed.store(shown, hidden[1])).counts.new == 1


async def test_the_context_of_an_alert_holds_every_known_entity_with_its_role(feed):
    one, other = entity("192.0.2.1"), entity("192.0.2.2")
    await feed.store(incident(severity=Severity.LOW, entities=(one,), sources=(one,)))
    await feed.store(incident(entities=(other,)), policy=replace(POLICY, on_escalation=True))
    context = (await feed.only(events))["context"]
    shown = [(entity["value"], entity["role"]) for entity in context["incident"]["entities"]]
    assert shown == [("192.0.2.1", "source"), ("192.0.2.2", None)]


async def test_a_rejected_record_is_kept_with_its_reason(feed):
    rejected = Rejected(source="f", location="byte 7", reason="not JSON", content=b"\xff{")
    stored = await feed.store(rejected=(rejected,))
    row = await feed.only(quarantine)
    assert (row["location"], row["reason"], row["content"]) == ("byte 7", "not JSON", b"\xff{")
    assert stored.counts.rejected == (await feed.only(coverage))["rejected"] == 1


async def test_stretches_that_follow_each_other_share_a_row(feed):
    await feed.store(incident("a"), covered=(Covered(source="f", start=0, end=10),), records=3)
    await feed.store(incident("b"), covered=(Covered(source="f", start=10, end=20),), records=4)
    row = await feed.only(coverage)
    assert (row["start"], row["end"], row["pages"], row["new"]) == (0, 20, 2, 2)
    assert row["records"] == 7


async def test_a_gap_a_loss_and_an_hour_each_begin_a_row(feed):
    await feed.store(covered=(Covered(source="f", start=0, end=10),))
    await feed.store(covered=(Covered(source="f", start=11, end=20),))
    await feed.store(covered=(Covered(source="f", start=20, end=30, lost="truncated"),))
    later = NOW + timedelta(hours=1)
    await feed.store(covered=(Covered(source="f", start=30, end=40),), now=later)
    rows = await feed.rows(coverage, coverage.c.id)
    assert [(row["outcome"], row["reason"]) for row in rows] == [
        ("read", None),
        ("read", None),
        ("lost", "truncated"),
        ("read", None),
    ]


async def test_a_page_that_only_moves_the_position_leaves_no_row(feed, database):
    await feed.store()
    assert await feed.rows(coverage) == []
    assert (await database.read(load_position, KEY)).revision == 1


async def test_hostile_text_is_stored_by_both_databases(feed):
    nasty = "\0 \ud800 \u202e" + "x" * 200_000
    await feed.store(
        incident(description=nasty, raw_status=nasty, entities=(Entity(EntityKind.URL, nasty),)),
        rejected=(Rejected(source=nasty, location=nasty, reason=nasty, content=b"\0"),),
    )
    row = await feed.only(incidents)
    assert len(row["description"]) == 65_536
    assert row["description"].endswith("…")


async def test_an_incident_keeps_no_more_than_a_thousand_entities(feed):
    many = tuple(entity(f"10.0.{n // 256}.{n % 256}") for n in range(1_500))
    await feed.store(incident(entities=many))
    await feed.store(incident(entities=(entity("192.0.2.1"),)))
    count = select(func.count()).select_from(incident_entities)
    assert await feed.database.read(lambda c: c.scalar(count)) == 1_000


@pytest.mark.parametrize("size", [3_000, pytest.param(6_000, marks=pytest.mark.full)])
async def test_a_page_of_thousands_is_stored(feed, size):
    def version(n: int, status: IncidentStatus) -> Incident:
        alert = Alert(external_id=str(n), title="t", severity=Severity.LOW, occurred_at=NOW)
        address = entity(f"192.0.2.{n % 250}")
        return incident(str(n), status=status, entities=(address,), alerts=(alert,))

    new = [version(n, IncidentStatus.NEW) for n in range(size)]
    assert (await feed.store(*new)).counts.new == size
    changed = [version(n, IncidentStatus.ACTIVE) for n in range(size)]
    assert (await feed.store(*changed)).counts.changed == size


def test_a_part_of_a_push_keeps_all_members_of_what_was_received():
    rejected = Rejected(source="push", location="1", reason="bad", content=b"{}", request=b"[]")
    covered = (Covered(source="push", start=0, end=9),)
    counts = {"records": 3, "further_rejected": 1}
    received = Received(
        incidents=(incident(),), rejected=(rejected,), covered=covered, incomplete=("a",), **counts
    )
    part = attach_push(received, b"[]", NOW)
    for each in fields(Received):
        assert getattr(part, each.name) == getattr(received, each.name)
        assert getattr(received, each.name) != each.default
