"""Rules for event searches."""

from __future__ import annotations

from contextlib import aclosing
from datetime import datetime, timedelta

from tocsin.errors import PluginFailure, Refused, TryLater
from tocsin.hookspecs import Capability
from tocsin.model import Entity, EntityKind, SiemEvent, Window
from tocsin.testing.conformance.harness import Conformance, Harness
from tocsin.testing.conformance.http_harness import HttpConformance
from tocsin.testing.conformance.pagination import PAGE
from tocsin.testing.conformance.records import PRECISION
from tocsin.testing.conformance.rules import (
    RuleViolation,
    catch_failure,
    does_not_apply,
    expect,
    expect_failure,
    rule,
)
from tocsin.testing.conformance.texts import HOSTILE
from tocsin.testing.faults import Fault
from tocsin.testing.siem import LogEvent

_ADDRESS = Entity(EntityKind.IP, "198.51.100.9")
_SIMILAR_ADDRESS = ("198.51.100.90", "98.51.100.9", "198.51.100.1")
_HOUR = timedelta(hours=1)
_MINUTE = timedelta(minutes=1)
_MANY = 100
_NO_VALUES = (
    "*",
    "",
    "198.51.100.*",
    "198.51.100.0/24",
    "198.51.100.9 OR 1=1",
    "' OR '1'='1",
    '" or true or "',
    "198.51.100.9&limit=9",
    "198.51.100.9\nor 1=1",
    "%",
    ".*",
    "{{ 7 * 7 }} \x00 \\",
)
_FAILURES = {
    Fault.THROTTLED: TryLater,
    Fault.UNAVAILABLE: TryLater,
    Fault.BAD_GATEWAY: TryLater,
    Fault.CUT: TryLater,
    Fault.FORBIDDEN: Refused,
    Fault.ERROR: PluginFailure,
    Fault.LOGIN_PAGE: PluginFailure,
    Fault.TRUNCATED: PluginFailure,
    Fault.EMPTY: PluginFailure,
    Fault.UNEXPECTED: PluginFailure,
}


class EventRules(Conformance):
    """Rules for `events`."""

    @rule
    async def test_events_of_an_entity_are_found(self) -> None:
        """`events` returns the SIEM's events that contain an entity. Each event lists the entity
        and has a time with a time zone.

        Investigations rely on these events.
        """
        async with self.harness() as harness:
            logged = [_log_events(self, harness, minutes) for minutes in (50, 40, 30)]
            found = await _ask_events(harness)
            _expect_those(found, logged)
            strangers = [event for event in found if not _event_ids(event, _ADDRESS)]
            expect(not strangers, f"events of other entities: {strangers[:1]}")

    @rule
    async def test_events_of_others_are_left_out(self) -> None:
        """`events` does not return events of other entities, however similar their values are.

        Otherwise, a report would attribute the activity of one entity to another.
        """
        async with self.harness() as harness:
            for value in _SIMILAR_ADDRESS:
                _log_events(self, harness, 30, Entity(EntityKind.IP, value))
            _expect_those(await _ask_events(harness), [])
            _expect_those(await _ask_events(harness), [])  # a second query finds none either

    @rule
    async def test_events_outside_the_window_are_left_out(self) -> None:
        """`events` includes the window's start and excludes its end.

        Two adjacent windows together must return each event exactly once.
        """
        async with self.harness() as harness:
            harness.clock.advance(microseconds=-harness.clock.now().microsecond)
            early, first, last, end = (
                _log_events(self, harness, minutes) for minutes in (50, 40, 21, 20)
            )
            window = Window(first.occurred_at, end.occurred_at)
            _expect_those(await _ask_events(harness, window), [first, last])
            whole = Window(early.occurred_at - _HOUR, end.occurred_at + _MINUTE)
            _expect_those(await _ask_events(harness, whole), [early, first, last, end])

    @rule
    async def test_the_latest_events_are_returned_up_to_the_limit(self) -> None:
        """`events` returns at most `limit` events: the latest ones.

        Tocsin limits how many events a query returns, and the latest events matter most.
        """
        async with self.harness() as harness:
            logged = [_log_events(self, harness, 50 - minutes) for minutes in range(2 * PAGE)]
            _expect_those(await _ask_events(harness, limit=PAGE), logged[-PAGE:])
            _expect_those(await _ask_events(harness, limit=1), logged[-1:])

    @rule
    async def test_an_entity_is_not_a_query(self) -> None:
        """`*`, quotes and operators in an entity value do not widen or break a query.

        Attackers can choose the names of hosts, users and files. A name must not give access to
        other data.
        """
        async with self.harness() as harness:
            for minutes in (40, 30):
                _log_events(self, harness, minutes)
            for value in _NO_VALUES:
                for kind in self.provider.event_kinds:
                    try:
                        found = await _ask_events(harness, entity=Entity(kind, value))
                    except Refused:
                        continue
                    expect(not found, f"{len(found)} events for the {kind} {value!r}")

    @rule
    async def test_an_event_summary_is_one_line(self) -> None:
        """`summary` describes the event in one line, for any record.

        If a summary could contain a line break, attackers could forge another entry in lists and
        reports.
        """
        async with self.harness() as harness:
            for minutes, text in enumerate(("", *HOSTILE)):
                _log_events(self, harness, 50 - minutes, text=text)
            found = await _ask_events(harness)
            expect(len(found) == len(HOSTILE) + 1, f"{len(found)} of {len(HOSTILE) + 1} events")
            for event in found:
                lines = event.summary.splitlines()
                expect(len(lines) == 1 and event.summary.strip(), f"{event.summary!r}")

    @rule
    async def test_a_malformed_event_is_skipped(self) -> None:
        """A malformed record is skipped, and all other records are returned.

        One malformed record must not hide an entity's other activity.
        """
        async with self.harness() as harness:
            before = _log_events(self, harness, 40)
            _log_events(self, harness, 35, malformed=True)
            after = _log_events(self, harness, 30)
            _expect_those(await _ask_events(harness), [before, after])

    @rule
    async def test_event_searches_do_not_affect_reads(self) -> None:
        """Event queries do not affect regular reads, even across a restart.

        Investigations can query events at any time. Records that a query has returned must still
        become incidents.
        """
        async with self.harness() as harness:
            harness.put_many(PAGE)
            _log_events(self, harness, 30)
            await _ask_events(harness)
            await harness.arrive()
            harness.put_many(PAGE)
            await _ask_events(harness)
            await harness.restart()
            await _ask_events(harness)
            await harness.arrive()
            harness.expect_all()


class HttpEventRules(HttpConformance):
    """Rules for `events` of an HTTP API."""

    @rule
    async def test_events_are_read_page_by_page(self) -> None:
        """`events` returns the events from every page.

        SIEMs limit the page size, whatever the provider requests.
        """
        async with self.harness(most_per_page=PAGE) as harness:
            logged = [_log_events(self, harness, 50 - minutes) for minutes in range(3 * PAGE + 1)]
            _expect_those(await _ask_events(harness), logged)

    @rule
    async def test_a_failure_is_not_an_empty_result(self) -> None:
        """When the SIEM fails, `events` raises the same errors as `read`; after the SIEM recovers,
        `events` returns the events.

        Otherwise, an investigation's report would say that there was no activity.
        """
        async with self.harness() as harness:
            logged = [_log_events(self, harness, minutes) for minutes in (40, 30)]
            _expect_those(await _ask_events(harness), logged)
            for fault, wanted in _FAILURES.items():
                harness.simulator.fail(fault)
                expect_failure(await catch_failure(_ask_events(harness)), wanted)
                harness.simulator.recover()
            _expect_those(await _ask_events(harness), logged)

    @rule
    async def test_an_unreachable_siem_fails_event_searches(self) -> None:
        """`events` raises `TryLater` if the SIEM is unreachable.

        If a report lists a gap, analysts repeat the investigation. If events are missing but the
        report does not list a gap, analysts trust the report.
        """
        async with self.harness() as harness:
            _log_events(self, harness, 30)
            await harness.hang_up()
            expect_failure(await catch_failure(_ask_events(harness)), TryLater)


def _log_events(
    suite: Conformance, harness: Harness, minutes: int, entity: Entity = _ADDRESS, **parts: object
) -> LogEvent:
    """Log an event the given number of minutes ago; skip the rule if it cannot be queried."""
    if Capability.EVENTS not in suite.provider.capabilities():
        does_not_apply(f"the provider does not offer {Capability.EVENTS}")
    if entity.kind not in suite.provider.event_kinds:
        does_not_apply(f"the provider has no events of the kind {entity.kind}")
    return harness.log(entity, occurred_at=harness.clock.now() - minutes * _MINUTE, **parts)


async def _ask_events(
    harness: Harness, window: Window | None = None, *, entity: Entity = _ADDRESS, limit: int = _MANY
) -> list[SiemEvent]:
    """Return the events of an entity in a window, by default the last hour."""
    now = harness.clock.now()
    asked = window or Window(now - _HOUR, now)
    found = []
    async with aclosing(harness.provider.events(entity, asked, limit)) as events:
        async for event in events:
            found.append(event)
            if len(found) > limit:
                raise RuleViolation(f"more events than the limit of {limit}")
    return found


def _event_ids(event: SiemEvent, entity: Entity) -> bool:
    return any(named.value.casefold() == entity.value.casefold() for named in event.entities)


def _expect_those(found: list[SiemEvent], logged: list[LogEvent]) -> None:
    """Check that these are the logged events, compared by their times."""
    naive = [event.occurred_at for event in found if event.occurred_at.tzinfo is None]
    expect(not naive, f"times without a time zone: {naive[:1]}")
    times = sorted(event.occurred_at for event in found)
    wanted = sorted(event.occurred_at for event in logged)
    same = len(times) == len(wanted) and all(
        abs(one - other) < PRECISION for one, other in zip(times, wanted, strict=True)
    )
    expect(same, f"events at {_clock_time(times)}, expected {_clock_time(wanted)}")


def _clock_time(times: list[datetime]) -> str:
    return ", ".join(f"{moment:%H:%M:%S}" for moment in times) or "no time"
