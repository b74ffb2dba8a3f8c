"""What a plugin makes that cannot be kept is kept aside, and stops nothing."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from tocsin import Alert, Entity, Incident, Received, Severity
from tocsin.incidents.coverage.positions import StreamKey
from tocsin.incidents.storage.alerts import IncidentPolicy
from tocsin.incidents.storage.store import store_received
from tocsin.store.tables import coverage, incidents, quarantine

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
NAIVE = datetime(2026, 1, 1)  # noqa: DTZ001 - that is the mistake
GOOD = Incident(external_id="1", title="one", severity=Severity.HIGH, occurred_at=BEGIN)
ALERT = Alert(external_id="a", title="alert", severity=Severity.HIGH, occurred_at=NAIVE)


@pytest.mark.parametrize(
    ("mistake", "words"),
    [
        ({"title": None}, "title must be of type str, not None"),
        ({"external_id": 7}, "external_id must be of type str, not 7"),
        ({"source_url": 7}, "source_url must be of type str or None, not 7"),
        ({"severity": "High"}, "severity must be of type Severity, not 'High'"),
        ({"status": "Weird"}, "status must be of type IncidentStatus, not 'Weird'"),
        ({"severity_assumed": None}, "severity_assumed must be of type bool, not None"),
        ({"occurred_at": NAIVE}, "occurred_at must be a time with a time zone, not datetime"),
        (
            {"changed_at": "yesterday"},
            "changed_at must be a time with a time zone, not 'yesterday'",
        ),
        ({"techniques": (None,)}, "a technique must be of type str, not None"),
        ({"tactics": (None,)}, "a tactic must be of type str, not None"),
        ({"techniques": "T1059"}, "techniques must be of type tuple or list, not 'T1059'"),
        ({"entities": ("10.0.0.1",)}, "one of the entities must be of type Entity, not '10.0.0.1'"),
        (
            {"entities": (Entity("ip", "10.0.0.1"),)},
            "the kind of one of the entities must be of type EntityKind, not 'ip'",
        ),
        ({"sources": "10.0.0.1"}, "sources must be of type tuple or list, not '10.0.0.1'"),
        ({"alerts": (ALERT,)}, "an alert's occurred_at must be a time with a time zone"),
        (
            {"alerts": (replace(ALERT, occurred_at=BEGIN, rule=7),)},
            "an alert's rule must be of type str or None, not 7",
        ),
        ({"alerts": None}, "alerts must be of type tuple or list, not None"),
    ],
)
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_mistake_is_kept_aside_with_the_reason(database, clock, rows, mistake, words):
    bad = replace(GOOD, **{"external_id": "2", **mistake})
    received = Received(incidents=(GOOD, bad, replace(GOOD, external_id="3")), records=3)
    stored = await database.write(
        store_received,
        StreamKey("archive", "changed"),
        received,
        policy=IncidentPolicy("https://tocsin.example.org"),
        now=clock.now(),
    )
    assert (stored.counts.new, stored.counts.rejected) == (2, 1)
    assert [row["external_id"] for row in await rows(incidents)] == ["1", "3"]
    [aside] = await rows(quarantine)
    assert words in aside["reason"]
    assert [row["rejected"] for row in await rows(coverage)] == [1]
