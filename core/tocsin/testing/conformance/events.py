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
    """`events`."""

    @rule
    async def test_events_of_an_entity_are_found(self) -> None:
        """`events` yields what the SIEM has of an entity: when it was, with its zone, and with it.

        An investigation sees nothing else of what the SIEM knows.
        """
        async with self.harness() as lab:
            logged = [_log_events(self, lab, minutes) for minutes in (50, 40, 30)]
            found = await _ask_events(lab)
            _expect_those(found, logged)
            strangers = [it for it in found if not _event_ids(it, _ADDRESS)]
            expect(not strangers, f"events without the entity: {strangers[:1]}")

    @rule
    async def test_events_of_others_are_left_out(self) -> None:
        """`events` yields nothing that has nothing to do with the entity, however alike its name.

        What another did would be laid at its door.
        """
        async with self.harness() as lab:
            for value in _SIMILAR_ADDRESS:
                _log_events(self, lab, 30, Entity(EntityKind.IP, value))
            _expect_those(await _ask_events(lab), [])
            _expect_those(await _ask_events(lab), [])  # nor later

    @rule
    async def test_events_outside_of_the_window_are_left_out(self) -> None:
        """`events` yields what occurred from the window's start up to, not including, its end.

        Windows are asked for side by side: what is in two counts twice, what is in none is missing.
        """
        async with self.harness() as lab:
            lab.clock.advance(microseconds=-lab.clock.now().microsecond)
            early, first, last, end = (
                _log_events(self, lab, minutes) for minutes in (50, 40, 21, 20)
            )
            window = Window(first.occurred_at, end.occurred_at)
            _expect_those(await _ask_events(lab, window), [first, last])
            whole = Window(early.occurred_at - _HOUR, end.occurred_at + _MINUTE)
            _expect_those(await _ask_events(lab, whole), [early, first, last, end])

    @rule
    async def test_no_more_events_than_asked_for_and_those_the_latest(self) -> None:
        """`events` yields `limit` events at most, and where there are more, the latest.

        Whoever asks has bounds, and what matters most is what happened last.
        """
        async with self.harness() as lab:
            logged = [_log_events(self, lab, 50 - minutes) for minutes in range(2 * PAGE)]
            _expect_those(await _ask_events(lab, limit=PAGE), logged[-PAGE:])
            _expect_those(await _ask_events(lab, limit=1), logged[-1:])

    @rule
    async def test_an_entity_is_no_query(self) -> None:
        """An entity's value is taken as it is: `*`, quotes and operators widen nothing, nor fail.

        Attackers name hosts, users and files: a name must not read what it is not allowed to.
        """
        async with self.harness() as lab:
            for minutes in (40, 30):
                _log_events(self, lab, minutes)
            for value in _NO_VALUES:
                for kind in self.provider.event_kinds:
                    try:
                        found = await _ask_events(lab, entity=Entity(kind, value))
                    except Refused:
                        continue
                    expect(not found, f"{len(found)} events of the {kind} {value!r}")

    @rule
    async def test_an_event_is_told_in_one_line(self) -> None:
        """`summary` says what happened, in one line, whatever the record holds.

        It stands in lists and reports: a line break in it forges the next entry.
        """
        async with self.harness() as lab:
            for minutes, text in enumerate(("", *HOSTILE)):
                _log_events(self, lab, 50 - minutes, text=text)
            found = await _ask_events(lab)
            expect(len(found) == len(HOSTILE) + 1, f"{len(found)} events of {len(HOSTILE) + 1}")
            for event in found:
                lines = event.summary.splitlines()
                expect(len(lines) == 1 and event.summary.strip(), f"{event.summary!r}")

    @rule
    async def test_a_malformed_event_costs_no_other(self) -> None:
        """A record that cannot be understood is passed over, and the others are found.

        One record out of the ordinary would hide all that an entity did.
        """
        async with self.harness() as lab:
            before = _log_events(self, lab, 40)
            _log_events(self, lab, 35, malformed=True)
            after = _log_events(self, lab, 30)
            _expect_those(await _ask_events(lab), [before, after])

    @rule
    async def test_asking_for_events_leaves_the_reading_alone(self) -> None:
        """Reading goes on as if nobody had asked for events in between, and so after a new start.

        Investigations ask at any time: what they see must still become incidents.
        """
        async with self.harness() as lab:
            lab.put_many(PAGE)
            _log_events(self, lab, 30)
            await _ask_events(lab)
            await lab.arrive()
            lab.put_many(PAGE)
            await _ask_events(lab)
            await lab.restart()
            await _ask_events(lab)
            await lab.arrive()
            lab.expect_all()


class HttpEventRules(HttpConformance):
    """`events`, asked of an API."""

    @rule
    async def test_events_are_read_page_by_page(self) -> None:
        """`events` yields what is on the second page and on the last.

        SIEMs give a few at once, whatever is asked for.
        """
        async with self.harness(most_per_page=PAGE) as lab:
            logged = [_log_events(self, lab, 50 - minutes) for minutes in range(3 * PAGE + 1)]
            _expect_those(await _ask_events(lab), logged)

    @rule
    async def test_a_failure_is_not_the_absence_of_events(self) -> None:
        """`events` raises as `read` does where the SIEM fails, and finds them once that is over.

        Taken for an answer without events, the report says that an entity did nothing.
        """
        async with self.harness() as lab:
            logged = [_log_events(self, lab, minutes) for minutes in (40, 30)]
            _expect_those(await _ask_events(lab), logged)
            for fault, wanted in _FAILURES.items():
                lab.simulator.fail(fault)
                expect_failure(await catch_failure(_ask_events(lab)), wanted)
                lab.simulator.recover()
            _expect_those(await _ask_events(lab), logged)

    @rule
    async def test_a_siem_that_is_away_has_no_events_to_tell(self) -> None:
        """`events` raises `TryLater` where the SIEM cannot be reached.

        It passes; a report that says so is asked for again, one that says `nothing` is believed.
        """
        async with self.harness() as lab:
            _log_events(self, lab, 30)
            await lab.hang_up()
            expect_failure(await catch_failure(_ask_events(lab)), TryLater)


def _log_events(
    suite: Conformance, lab: Harness, minutes: int, entity: Entity = _ADDRESS, **parts: object
) -> LogEvent:
    """Have the SIEM log something of so many minutes ago; skip where nobody can ask for it."""
    if Capability.EVENTS not in suite.provider.capabilities():
        does_not_apply(f"it does not offer {Capability.EVENTS}")
    if entity.kind not in suite.provider.event_kinds:
        does_not_apply(f"it cannot be asked for events of the kind {entity.kind}")
    return lab.log(entity, occurred_at=lab.clock.now() - minutes * _MINUTE, **parts)


async def _ask_events(
    lab: Harness, window: Window | None = None, *, entity: Entity = _ADDRESS, limit: int = _MANY
) -> list[SiemEvent]:
    """Return the events of an entity in a window, or in the last hour."""
    now = lab.clock.now()
    asked = window or Window(now - _HOUR, now)
    found = []
    async with aclosing(lab.provider.events(entity, asked, limit)) as events:
        async for event in events:
            found.append(event)
            if len(found) > limit:
                raise RuleViolation(f"more than {limit} events, which were the limit")
    return found


def _event_ids(event: SiemEvent, entity: Entity) -> bool:
    return any(it.value.casefold() == entity.value.casefold() for it in event.entities)


def _expect_those(found: list[SiemEvent], logged: list[LogEvent]) -> None:
    """Return where these are what was logged, told by their times."""
    naive = [it.occurred_at for it in found if it.occurred_at.tzinfo is None]
    expect(not naive, f"times without a zone: {naive[:1]}")
    times = sorted(it.occurred_at for it in found)
    wanted = sorted(it.occurred_at for it in logged)
    same = len(times) == len(wanted) and all(
        abs(one - other) < PRECISION for one, other in zip(times, wanted, strict=True)
    )
    expect(same, f"events of {_clock_time(times)}, where there are those of {_clock_time(wanted)}")


def _clock_time(times: list[datetime]) -> str:
    return ", ".join(f"{moment:%H:%M:%S}" for moment in times) or "no time"
