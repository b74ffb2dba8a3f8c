"""The loop of one provider: page by page, through failures, and on again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

import pytest
import structlog
from sqlalchemy import select

from api_callers import until
from tocsin import (
    Covered,
    CredentialsRefused,
    Health,
    Incident,
    Page,
    Provider,
    Refused,
    Rejected,
    Severity,
    Tools,
    TryLater,
    plugin_results,
)
from tocsin.events import Notifiers
from tocsin.incidents import ProviderSync, SyncContext
from tocsin.incidents.metrics import SyncMeters
from tocsin.incidents.sync import loop as sync_loop
from tocsin.metrics import Metrics
from tocsin.plugin_health import PluginHealth
from tocsin.store.tables import coverage, events, incidents


class Scripted(Provider):
    """Hands over incident after incident, and fails where its script says so."""

    per_read = 3
    pages_before_failure = 1

    def __init__(self, settings, tools) -> None:
        super().__init__(settings, tools)
        self.script: list[Exception] = []
        self.asked: list[Mapping[str, Any] | None] = []

    async def check(self) -> Health:
        return Health(detail="scripted")

    async def read(
        self, stream: str, position: Mapping[str, Any] | None, until: datetime
    ) -> AsyncGenerator[Page, None]:
        self.asked.append(position)
        start = position["next"] if position else 1
        for number in range(start, start + self.per_read):
            if number == start + self.pages_before_failure and self.script:
                raise self.script.pop(0)
            yield Page(next_position={"next": number + 1}, incidents=(incident(number),), records=1)


def incident(number: int) -> Incident:
    from datetime import UTC

    return Incident(
        external_id=str(number),
        title=f"number {number}",
        severity=Severity.HIGH,
        occurred_at=datetime(2026, 1, 1, tzinfo=UTC),
    )


@pytest.fixture
def make_sync(database, clock):
    def make(name="edge", meter=None, **settings) -> ProviderSync:
        tools = Tools(name=name, http=None, clock=clock, log=structlog.get_logger())
        provider = Scripted(Scripted.Settings(plugin="scripted", **settings), tools)
        sync = ProviderSync(
            provider,
            SyncContext(
                database, clock, Notifiers(), "https://tocsin.example.org", jitter=lambda: 0.0
            ),
            meter,
        )
        sync.provider = provider
        return sync

    return make


@pytest.fixture
def rows(database):
    async def rows(table) -> list:
        def read(connection):
            query = select(table).order_by(*table.primary_key.columns)
            return list(connection.execute(query).mappings())

        return await database.read(read)

    return rows


async def test_each_read_goes_on_where_the_last_page_ended(make_sync, rows):
    sync = make_sync()
    await sync.read_all()
    await sync.read_all()
    assert sync.provider.asked == [None, {"next": 4}]
    assert [row["external_id"] for row in await rows(incidents)] == list("123456")


async def test_lost_intervals_are_counted_from_zero(make_sync, clock, monkeypatch):
    metrics = Metrics(clock)
    sync = make_sync(meter=SyncMeters(metrics).of("edge"))
    assert b'tocsin_sync_lost_total{provider="edge"} 0.0' in await metrics.expose()

    async def read(_stream, _position, until):
        intervals = [
            Covered(source="changed", start=until - timedelta(minutes=2), end=until, lost="gone"),
            Covered(source="changed", start=until, end=until + timedelta(minutes=1)),
        ]
        yield Page(next_position={}, covered=intervals)

    monkeypatch.setattr(sync.provider, "read", read)
    await sync.read_all()
    clock.advance(seconds=10)
    assert b'tocsin_sync_lost_total{provider="edge"} 1.0' in await metrics.expose()


async def test_the_progress_of_a_first_read_is_logged(make_sync, clock, monkeypatch):
    sync = make_sync()
    sync.provider.per_read, sync.provider.script = 4, [TryLater("busy")]
    take = clock.now
    monkeypatch.setattr(clock, "now", lambda: clock.advance(seconds=2) or take())
    with structlog.testing.capture_logs() as logs:
        for _ in range(3):
            await sync.read_all()
    told = [(log["event"], log["incidents"]) for log in logs if "first read" in log["event"]]
    assert told[-1] == ("first read complete", 5)
    assert told[0][0] == "first read in progress"
    assert 0 < told[0][1] < 5


async def test_a_page_is_kept_though_the_next_one_fails(make_sync, rows):
    sync = make_sync()
    sync.provider.script = [TryLater("busy")]
    await sync.read_all()
    assert [row["external_id"] for row in await rows(incidents)] == ["1"]
    await sync.read_all()
    assert sync.provider.asked == [None, {"next": 2}]


@pytest.mark.parametrize(
    ("error", "outcome", "reason"),
    [
        (TryLater("busy"), "later", "busy"),
        (CredentialsRefused("no"), "credentials-refused", "no"),
        (Refused("gone"), "refused", "gone"),
        (ConnectionRefusedError("away"), "later", "ConnectionRefusedError: away"),
        (KeyError("id"), "failed", "KeyError: 'id'"),
    ],
)
async def test_a_failure_is_in_the_ledger_by_its_class(make_sync, rows, error, outcome, reason):
    sync = make_sync()
    sync.provider.script = [error]
    await sync.read_all()
    last = (await rows(coverage))[-1]
    assert (last["outcome"], last["reason"]) == (outcome, reason)


async def test_a_failure_that_goes_on_is_one_stretch(make_sync, rows, clock):
    sync = make_sync()
    sync.provider.pages_before_failure = 0
    for _ in range(3):
        sync.provider.script = [TryLater("busy")]
        await sync.read_all()
        clock.advance(minutes=1)
    [failure] = await rows(coverage)
    assert (failure["outcome"], failure["pages"]) == ("later", 3)
    assert failure["end"] - failure["start"] == timedelta(minutes=2) / timedelta(microseconds=1)


async def test_a_success_ends_the_stretch_of_a_failure(make_sync, rows):
    sync = make_sync()
    sync.provider.pages_before_failure = 0
    sync.provider.per_read = 1
    for script in ([TryLater("busy")], [], [TryLater("busy")]):
        sync.provider.script = script
        await sync.read_all()
    outcomes = [row["outcome"] for row in await rows(coverage)]
    assert outcomes == ["later", "read", "later"]


async def test_pauses_do_not_grow_during_development(make_sync):
    sync = make_sync(poll_interval="1m")
    sync._grows_pauses = False
    for _ in range(3):
        sync.provider.script = [TryLater("busy")]
        assert await sync.read_all() == timedelta(minutes=1)


async def test_pauses_grow_with_failures_and_shrink_with_success(make_sync):
    sync = make_sync(poll_interval="1m")
    assert await sync.read_all() == timedelta(minutes=1)
    pauses = []
    for _ in range(6):
        sync.provider.script = [TryLater("busy")]
        pauses.append(await sync.read_all())
    assert [pause / timedelta(minutes=1) for pause in pauses] == [2, 4, 8, 15, 15, 15]
    assert await sync.read_all() == timedelta(minutes=1)


async def test_the_siems_own_delay_is_honoured(make_sync):
    sync = make_sync()
    sync.provider.script = [TryLater("busy", after=timedelta(hours=2))]
    assert await sync.read_all() == timedelta(hours=2)


async def test_a_slow_poll_is_never_hurried_by_a_failure(make_sync):
    sync = make_sync(poll_interval="6h")
    sync.provider.script = [TryLater("busy")]
    assert await sync.read_all() >= timedelta(hours=6)


async def test_the_first_fetch_can_be_quiet(make_sync, rows):
    sync = make_sync(quiet_first_fetch=True)
    await sync.read_all()
    assert await rows(events) == []
    await sync.read_all()
    assert len(await rows(events)) == 3
    outcomes = [row["alert_outcome"] for row in await rows(incidents)]
    assert outcomes == ["quiet"] * 3 + ["alerted"] * 3


async def test_a_first_fetch_that_is_interrupted_stays_quiet(make_sync, rows):
    sync = make_sync(quiet_first_fetch=True)
    sync.provider.script = [TryLater("busy"), TryLater("busy")]
    for _ in range(3):
        await sync.read_all()
    assert await rows(events) == []
    await sync.read_all()
    assert len(await rows(events)) == 3


async def test_what_comes_after_an_empty_first_fetch_is_alerted(make_sync, rows):
    sync = make_sync(quiet_first_fetch=True)
    sync.provider.per_read = 0
    await sync.read_all()
    sync.provider.per_read = 1
    await sync.read_all()
    assert len(await rows(events)) == 1


@pytest.mark.parametrize("error", [asyncio.CancelledError(), ValueError("\udcff\0")])
async def test_whatever_a_provider_raises_its_loop_goes_on(make_sync, rows, clock, error):
    sync = make_sync()
    sync.provider.script = [error]
    assert await sync.read_all() > timedelta(minutes=1)
    assert (await rows(coverage))[-1]["outcome"] == "failed"
    await sync.read_all()
    assert len(await rows(incidents)) == 4


async def test_two_nodes_that_read_the_same_store_it_once(make_sync, rows):
    one, other = make_sync(), make_sync()
    await one.read_all()
    other.provider.per_read = 6
    await other.read_all()
    await one.read_all()
    numbers = [row["external_id"] for row in await rows(incidents)]
    assert len(numbers) == len(set(numbers)) == len(await rows(events))


async def test_providers_do_not_mix(make_sync, rows):
    await make_sync("one").read_all()
    await make_sync("two").read_all()
    found = [(row["provider"], row["external_id"]) for row in await rows(incidents)]
    assert found == [(name, number) for name in ("one", "two") for number in "123"]


@pytest.fixture
def health():
    health = PluginHealth()
    health.follow()
    return health


def yield_from(*results):
    async def read(self, stream, position, until):
        for result in results:
            yield result

    return read


@pytest.mark.parametrize(
    ("result", "words"),
    [
        ({"next_position": {}}, "yielded {'next_position': {}}, not a `Page`"),
        (Page(next_position=1), "with `next_position` 1, not a mapping"),
        (Page(next_position={}, rejected=("x",)), "not a tuple of `Rejected`"),
        (Page(next_position={}, incidents=incident(1)), "not a tuple of incidents"),
    ],
)
async def test_a_wrong_page_is_named_with_its_line(make_sync, monkeypatch, result, words):
    monkeypatch.setattr(Scripted, "read", yield_from(result))
    line = Scripted.read.__code__.co_firstlineno + 2
    with structlog.testing.capture_logs() as logs:
        await make_sync().read_all()
    [log] = [log for log in logs if log["event"] == "stream not read"]
    assert f"read` ({__file__}, line {line}) yielded " in log["reason"]
    assert words in log["reason"]


async def test_a_read_that_hangs_is_degraded_and_then_fails(make_sync, monkeypatch, health):
    monkeypatch.setattr(plugin_results, "SLOW_AFTER", plugin_results.SLOW_AFTER / 12_000)
    monkeypatch.setattr(plugin_results, "PAGE_LIMIT", plugin_results.PAGE_LIMIT / 6_000)
    seen = []

    async def read(self, stream, position, until):
        asyncio.get_running_loop().call_later(0.05, lambda: seen.append(health.degraded))
        await asyncio.sleep(60)
        yield

    monkeypatch.setattr(Scripted, "read", read)
    with structlog.testing.capture_logs() as logs:
        await make_sync().read_all()
    line = read.__code__.co_firstlineno + 2
    assert f"line {line}) has yielded no page for" in seen[0]["providers.edge"]
    [log] = [log for log in logs if log["event"] == "stream not read"]
    assert (log["outcome"], "yielded no page within" in log["reason"]) == ("later", True)


async def test_a_provider_whose_every_record_is_rejected_is_degraded(
    make_sync,
    monkeypatch,
    health,
):
    sync = make_sync()
    bad = Rejected(source="feed", location="item 1", reason="no ID", content=b"{}")
    refused = Page(next_position={}, rejected=(bad, bad), records=2)
    monkeypatch.setattr(Scripted, "read", yield_from(refused))
    await sync.read_all()
    assert "the last 2 records were all quarantined" in health.degraded["providers.edge"]
    accepted = Page(next_position={}, incidents=(incident(1),), records=1)
    monkeypatch.setattr(Scripted, "read", yield_from(accepted))
    await sync.read_all()
    assert health.degraded == {}
    monkeypatch.setattr(Scripted, "read", yield_from(refused))
    await sync.read_all()
    assert health.degraded == {}  # two after accepted ones may be an exception
    await sync.read_all()
    assert "the last 4 records" in health.degraded["providers.edge"]


async def test_a_read_that_timed_out_during_a_stall_names_the_culprit(make_sync, health):
    sync = make_sync()
    sync.provider.script = [TryLater("no response within 2 s")]
    health.describe_stalls = lambda since: "provider other held the event loop for 8.0 s"
    with structlog.testing.capture_logs() as logs:
        await sync.read_all()
    [log] = [log for log in logs if log["event"] == "stream not read"]
    stall = "meanwhile provider other held the event loop for 8.0 s"
    assert log["reason"] == f"no response within 2 s; {stall}"


async def test_a_provider_that_is_no_longer_read_has_no_defects(make_sync, monkeypatch, health):
    bad = Rejected(source="feed", location="item 1", reason="no ID", content=b"{}")
    refused = Page(next_position={}, rejected=(bad,), records=1)
    monkeypatch.setattr(Scripted, "read", yield_from(refused))
    reading = asyncio.create_task(make_sync().run())
    await until(lambda: health.degraded)
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)
    assert health.degraded == {}


async def test_a_sync_ends_also_if_its_provider_swallows_the_cancellation(make_sync, monkeypatch):
    entered = asyncio.Event()

    async def read_to_the_end(*_):
        entered.set()
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(0.05)
        yield Page(next_position={})

    monkeypatch.setattr(Scripted, "read", read_to_the_end)
    monkeypatch.setattr(sync_loop, "BACKFILL_POLL", timedelta(hours=1))
    reading = asyncio.create_task(make_sync(poll_interval="1h").run())
    await entered.wait()
    reading.cancel()
    await asyncio.wait([reading], timeout=10)
    assert reading.cancelled()
