"""After a day on which everything goes wrong the truth is known, and the ledger says so."""

from __future__ import annotations

import asyncio
import os
from collections import Counter, defaultdict
from dataclasses import fields
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import func, select

from tocsin import Entity, EntityKind, IncidentStatus, Severity
from tocsin.accounting import Period, report_period
from tocsin.store.tables import (
    events,
    incident_alerts,
    incident_entities,
    incidents,
    quarantine,
    rereads,
)
from tocsin.testing import ManualClock, Scenario
from truth.entrant import Known
from truth.entrants import ENTRANTS
from truth.kibana import AlertsAndCases
from truth.of_files import EcsFiles, FalcoFiles, OcsfFiles, SuricataFiles, ZeekFiles
from truth.pushing import Pushed

START = datetime(2026, 11, 20, tzinfo=UTC)
AFTERWARDS = timedelta(hours=3)
"""How long nothing goes wrong any more, for whatever was lost to be read again."""
RESTART_EVERY = 40
"""So many turns are taken before the service is started anew."""


ON_SQLITE, ON_POSTGRESQL = (
    [(kind, database) for kind in ENTRANTS] for database in ("sqlite", "postgresql")
)
# In each run: one entrant that is polled, and on PostgreSQL one to which several push at once
SMALL = [*ON_SQLITE, (Pushed, "postgresql")]
ORDINARY = (AlertsAndCases, Pushed)
LARGE = {"poll_interval": "5m", "changes_every": "2h", "refresh_after": ("30m",)}
"""Settings with which not everything is read ten times over, which would show nothing new."""
CHEAP = (AlertsAndCases, Pushed, OcsfFiles, SuricataFiles, ZeekFiles, FalcoFiles, EcsFiles)
"""Of these, every whole run reads 20,000 changes."""
WHOLE = bool(os.environ.get("TOCSIN_WHOLE_TRUTH"))


def on(pairs, ordinary=()):
    params = [
        pytest.param(
            entrant,
            database,
            id=f"{entrant.name}-{database}",
            marks=() if entrant in ordinary else pytest.mark.full,
        )
        for entrant, database in pairs
    ]
    return pytest.mark.parametrize(("entrant", "database_url"), params, indirect=True)


@pytest.fixture
def entrant(request):
    return request.param()


@on(SMALL, ordinary=ORDINARY)
async def test_a_day_of_200_changes_ends_with_the_truth(entrant, database, tmp_path):
    day = Scenario(START, changes=200)
    await check_truth(entrant, day, database, tmp_path, poll_interval="15m", changes_every="10m")


# `make truth` takes them from every provider on both databases
@on(ON_SQLITE + ON_POSTGRESQL if WHOLE else [(kind, "sqlite") for kind in CHEAP])
@pytest.mark.timeout(3600)
async def test_a_day_of_20_000_changes_ends_with_the_truth(entrant, database, tmp_path):
    day = Scenario(START, changes=20_000, seed=1)
    await check_truth(entrant, day, database, tmp_path, **LARGE)


@on(ON_SQLITE + ON_POSTGRESQL)
@pytest.mark.timeout(1800)
async def test_a_day_of_2_000_changes_ends_with_the_truth(entrant, database, tmp_path):
    day = Scenario(START, changes=2_000, seed=2)
    await check_truth(entrant, day, database, tmp_path, poll_interval="5m", changes_every="30m")


async def check_truth(entrant, day, database, folder, **settings):
    clock = ManualClock(START)
    async with entrant.begin(day, clock, folder) as course:
        course.settings = entrant.choose(settings) | course.settings
        await live_through(entrant, course, database, clock, day.end + AFTERWARDS)
        known = await database.read(read_incidents)
        truth = course.truth()
        assert sorted(known) == sorted(truth)
        wrong = {name: differences(known[name], truth[name]) for name in truth}
        assert {name: parts for name, parts in wrong.items() if parts} == {}
        assert await database.read(doubled_alerts) == []
        assert await database.read(count_rereads) == 0
        kept = b"".join(await database.read(read_quarantine))
        assert [part for part in course.unreadable() if part not in kept] == []
        account = await database.read(
            report_period, Period(START - timedelta(days=2), clock.now()), clock.now()
        )
        assert (account["gaps"], account["lost"], account["silent"]) == ([], [], [])
        assert sum(source["new"] for source in account["coverage"]) == len(truth)


async def live_through(entrant, course, database, clock, end):
    """Have one node after the other run, whatever happens, until the day is over."""
    while clock.now() < end:
        async with entrant.open_node(course, database, clock) as turn:
            for _ in range(RESTART_EVERY):
                course.play()
                task = asyncio.create_task(turn())
                course.crash = task.cancel
                await asyncio.wait([task])
                if task.cancelled():
                    break
                clock.advance(seconds=task.result().total_seconds())


def read_incidents(connection):
    entities = defaultdict(set)
    for row in connection.execute(select(incident_entities)):
        entities[row.incident_number].add(Entity(EntityKind(row.kind), row.value))
    alerts = Counter(connection.execute(select(incident_alerts.c.incident_number)).scalars())
    return {
        row["external_id"]: Known(
            title=row["title"],
            severity=Severity(row["severity"]),
            status=IncidentStatus(row["status"]),
            description=row["description"],
            merged_into=row["merged_into"],
            changed_at=row["source_changed_at"],
            entities=frozenset(entities[row["number"]]),
            alerts=alerts[row["number"]],
        )
        for row in connection.execute(select(incidents)).mappings()
    }


def differences(known, truth):
    names = (part.name for part in fields(Known))
    pairs = {name: (getattr(known, name), getattr(truth, name)) for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def read_quarantine(connection):
    return list(connection.execute(select(quarantine.c.content)).scalars())


def count_rereads(connection):
    return connection.scalar(select(func.count()).select_from(rereads))


def doubled_alerts(connection):
    again = select(events.c.subject).group_by(events.c.subject).having(func.count() > 1)
    return list(connection.execute(again).scalars())
