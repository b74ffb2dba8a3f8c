"""Vendor drift while a provider is read: stored, logged, shown and measured."""

from __future__ import annotations

import json
from datetime import date, timedelta
from types import MappingProxyType

import pytest
import structlog
from sqlalchemy import select

from tocsin import (
    ApiRetirement,
    Health,
    Incident,
    Listing,
    RecordContract,
    Severity,
    Tools,
    Window,
    WindowedProvider,
)
from tocsin.events import Notifiers
from tocsin.incidents import DriftGauges, ProviderSync, SyncContext, load_drift
from tocsin.incidents.sync import ProviderFacts, list_providers
from tocsin.metrics import Metrics
from tocsin.store.tables import record_shapes

HOUR = timedelta(hours=1)


class Vendor(WindowedProvider):
    """One new record for each read, in the form that the vendor's API has at present."""

    record_contracts = MappingProxyType(
        {"changed": RecordContract(required={"id": "number", "level": "string"})}
    )
    retirements = (
        ApiRetirement(
            api="Vendor API v1", ends_on=date(2027, 1, 31), advice="use v2", source="https://v"
        ),
        ApiRetirement(
            api="Vendor API v9", ends_on=date(2030, 1, 31), advice="use v10", source="https://v"
        ),
    )

    def __init__(self, settings, tools) -> None:
        super().__init__(settings, tools)
        self.form = {"level": "high"}
        self.number = 0

    async def check(self) -> Health:
        return Health(detail="there")

    async def list_changes(self, stream, window, token, limit) -> Listing:
        self.number += 1
        return Listing(records=[{"id": self.number, **self.form}])

    def to_incident(self, record):
        moment = self.tools.clock.now()
        return Incident(
            external_id=f"{self.tools.name}-{record['id']}-{moment}",
            title="t",
            severity=Severity.LOW,
            occurred_at=moment,
        )


@pytest.fixture
def make_sync(database, clock):
    def make(kind=Vendor):
        tools = Tools(name="edge", http=None, clock=clock, log=structlog.get_logger())
        provider = kind(kind.Settings(plugin="vendor", longest_window="7d"), tools)
        context = SyncContext(database, clock, Notifiers(), "https://tocsin.example.org")
        sync = ProviderSync(provider, context)
        sync.provider = provider
        return sync

    return make


@pytest.fixture
def read_hours(clock):
    async def read_hours(sync, hours) -> None:
        for _ in range(hours):
            clock.advance(hours=1)
            await sync.read_all()

    return read_hours


async def test_a_field_that_vanishes_for_a_day_is_a_warning_until_it_returns(
    database, make_sync, read_hours
):
    sync = make_sync()
    await read_hours(sync, 3)
    sync.provider.form = {"severity": "high"}
    await read_hours(sync, 24)
    assert await database.read(load_drift) == {"edge": []}
    with structlog.testing.capture_logs() as logged:
        await read_hours(sync, 3)
    [found] = (await database.read(load_drift))["edge"]
    assert (found["field"], found["problem"], found["appeared"]) == (
        "level",
        "missing",
        ["severity"],
    )
    [warning] = [line for line in logged if line["event"] == "record field missing"]
    assert (warning["log_level"], warning["provider"], warning["field"]) == (
        *("warning", "edge"),
        "level",
    )
    sync.provider.form = {"level": "high"}
    with structlog.testing.capture_logs() as logged:
        await read_hours(sync, 1)
    assert "record field returned" in [line["event"] for line in logged]
    assert await database.read(load_drift) == {"edge": []}


async def test_nodes_share_what_they_have_seen(database, make_sync, read_hours):
    await read_hours(make_sync(), 3)
    for _ in range(3):
        node = make_sync()
        node.provider.form = {"level": 7}
        await read_hours(node, 9)
    [found] = (await database.read(load_drift))["edge"]
    assert (found["problem"], found["found"], found["records"]) == ("changed-type", "number", 27)


async def test_status_and_metrics_show_drift_and_ends_of_apis(
    database, clock, make_sync, read_hours
):
    sync = make_sync()
    sync.provider.form = {}
    await read_hours(sync, 26)
    facts = ProviderFacts("edge", "vendor", frozenset(), retirements=Vendor.retirements)
    [shown] = await database.read(list_providers, [facts], clock.now())
    assert [drift["field"] for drift in shown["drift"]] == ["level"]
    assert [api["api"] for api in shown["retirements"]] == ["Vendor API v1"]
    metrics = Metrics(clock)
    DriftGauges(metrics, {"edge": Vendor.retirements}).show(await database.read(load_drift))
    exposed = (await metrics.expose()).decode()
    assert 'tocsin_provider_drifted_fields{provider="edge"} 1.0' in exposed
    assert 'end_timestamp_seconds{api="Vendor API v1",provider="edge"} 1.8013536e+09' in exposed


async def test_shapes_are_stored_every_five_minutes_and_without_values(database, clock, make_sync):
    sync = make_sync()
    sync.provider.form = {"level": "s3cret", "note": "s3cret", "198.51.100.7": "s3cret"}
    saved = set()
    for _ in range(10):
        clock.advance(minutes=1)
        await sync.read_all()
        [row] = await database.read(
            lambda connection: connection.execute(select(record_shapes)).mappings().all()
        )
        saved.add(row["updated_at"])
    assert len(saved) == 2
    stored = json.dumps(row["shape"])
    assert "note" in stored
    assert "s3cret" not in stored
    assert "198.51.100.7" not in stored


async def test_backfills_do_not_count_since_their_records_may_be_old(clock, make_sync):
    sync = make_sync()
    window = Window(clock.now() - HOUR, clock.now())
    _ = [page async for page in sync.provider.backfill("changed", None, window)]
    assert sync.provider.shapes.take() == {}


async def test_a_kind_without_a_contract_is_forgotten(database, make_sync, read_hours):
    sync = make_sync()
    sync.provider.form = {}
    await read_hours(sync, 26)

    class Later(Vendor):
        record_contracts = MappingProxyType({"details": RecordContract(required={"x": "string"})})

    later = make_sync(Later)
    later.provider.note_shapes("details", [{"x": "1"}])
    await read_hours(later, 1)
    assert await database.read(load_drift) == {"edge": []}


async def test_an_api_that_ends_soon_is_logged_when_a_node_takes_the_provider(clock, make_sync):
    sync = make_sync()
    with structlog.testing.capture_logs() as logged:
        sync._warn_of_retirements()
    [line] = logged
    assert line["detail"] == "Vendor API v1 ends on 2027-01-31: use v2 (https://v)"
    clock.advance(days=100)
    with structlog.testing.capture_logs() as logged:
        sync._warn_of_retirements()
    assert "Vendor API v1 ended on" in logged[0]["detail"]


async def test_a_sample_is_taken_from_a_longer_time_if_the_last_hour_is_empty(make_sync):
    asked = []

    class Quiet(Vendor):
        async def list_changes(self, stream, window, token, limit) -> Listing:
            asked.append((window.end - window.start, limit))
            return Listing(records=[{"id": 1}] if len(asked) == 2 else [])

    assert await make_sync(Quiet).provider.sample("changed") == [{"id": 1}]
    assert asked == [(HOUR, 10), (24 * HOUR, 10)]


async def test_a_database_that_is_away_does_not_stop_the_reads(database, make_sync, monkeypatch):
    sync = make_sync()
    await sync.read_all()

    async def fail(*_):
        raise OSError("away")

    monkeypatch.setattr(sync._drift, "_saved_at", None)
    sync.provider.note_shapes("changed", [{"id": 1}])
    monkeypatch.setattr(sync._writer.database, "write", fail)
    with structlog.testing.capture_logs() as logged:
        await sync._drift.save()
    assert logged[0]["event"] == "field statistics for drift detection not stored"
