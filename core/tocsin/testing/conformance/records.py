"""Rules for incident records: severity, status, times."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from tocsin.model import Entity, EntityKind, Incident, IncidentStatus, Json, Severity
from tocsin.testing.conformance.harness import Conformance, Harness
from tocsin.testing.conformance.record_shapes import iter_texts, put_at, unchanged, value_at
from tocsin.testing.conformance.rules import expect, rule

PRECISION = timedelta(seconds=1)
"""Vendors may keep times this coarsely."""
UNKNOWN_VALUE = "x-unheard-of"
UNKNOWN_NUMBER = 4711


class RecordRules(Conformance):
    """What is read of one record."""

    @rule
    async def test_each_severity_is_kept(self) -> None:
        """Each severity of the vendor's becomes its counterpart, and is not flagged as assumed.

        Who is alerted depends on it: one that is too low wakes nobody.
        """
        async with self.harness() as lab:
            lab.differing("how bad an incident is", severity=Severity.LOW)
            cases = [lab.put(severity=severity) for severity in self.severities]
            await lab.arrive()
            for case in cases:
                found = lab.incident(case)
                expect(found.severity == case.severity, f"{found.severity} for {case.severity}")
                expect(not found.severity_assumed, f"severity_assumed for {case.severity}")

    @rule
    async def test_severities_are_known_in_any_case(self) -> None:
        """A severity is known however its word is written: HIGH, High, high.

        Vendors change that between versions, and mix it within one.
        """
        async with self.harness() as lab:
            places = lab.differing("how bad an incident is", severity=Severity.LOW)
            for change in (str.upper, str.lower, str.title):
                lab.alter = put_at(places, _describe(change))
                found = await get_only_incident(lab, severity=Severity.HIGH)
                seen = f"{found.severity} for {found.raw_severity!r}, which is High"
                expect(found.severity == Severity.HIGH and not found.severity_assumed, seen)

    @rule
    async def test_an_unknown_severity_is_taken_for_medium(self) -> None:
        """A severity that nobody has heard of is taken for Medium, and `severity_assumed` says so.

        A vendor's new word must neither lose the incident nor pass for harmless.
        """
        async with self.harness() as lab:
            places = lab.differing("how bad an incident is", severity=Severity.LOW)
            lab.alter = put_at(places, _replace_with_unknown)
            found = await get_only_incident(lab)
            expect(found.severity == Severity.MEDIUM, f"{found.severity}")
            expect(found.severity_assumed, "severity_assumed is False")

    @rule
    async def test_the_vendors_own_severity_is_kept(self) -> None:
        """`raw_severity` has the vendor's own word or number for the severity, known or not.

        Analysts compare it with the SIEM's console, and a guess is to be told from a fact.
        """
        async with self.harness() as lab:
            places = lab.differing("how bad an incident is", severity=Severity.LOW)
            for alteration in (unchanged, put_at(places, _replace_with_unknown)):
                lab.alter = alteration
                case = lab.put()
                words = _change_case(*(value_at(lab.show(case), place) for place in places))
                await lab.arrive()
                raw = lab.incident(case).raw_severity
                seen = f"raw_severity {raw!r}, where the record has {sorted(words)}"
                expect((raw or "").casefold() in words, seen)

    @rule
    async def test_each_status_is_kept(self) -> None:
        """Each status of the vendor's becomes its counterpart.

        What is closed at the SIEM would stay open here, or the other way round.
        """
        async with self.harness() as lab:
            lab.differing("where an incident stands", status=IncidentStatus.CLOSED)
            cases = [lab.put(status=status) for status in self.statuses]
            await lab.arrive()
            for case in cases:
                status = lab.incident(case).status
                expect(status == case.status, f"{status} for {case.status}")

    @rule
    async def test_statuses_are_known_in_any_case(self) -> None:
        """A status is known however its word is written: CLOSED, Closed, closed.

        Vendors change that between versions, and mix it within one.
        """
        async with self.harness() as lab:
            places = lab.differing("where an incident stands", status=IncidentStatus.CLOSED)
            for change in (str.upper, str.lower, str.title):
                lab.alter = put_at(places, _describe(change))
                found = await get_only_incident(lab, status=IncidentStatus.CLOSED)
                seen = f"{found.status} for {found.raw_status}"
                expect(found.status == IncidentStatus.CLOSED, seen)

    @rule
    async def test_an_unknown_status_loses_nothing(self) -> None:
        """An incident with a status that nobody has heard of is read, and `raw_status` has it.

        Vendors let their customers name statuses of their own.
        """
        async with self.harness() as lab:
            places = lab.differing("where an incident stands", status=IncidentStatus.CLOSED)
            lab.alter = put_at(places, _replace_with_unknown)
            found = await get_only_incident(lab)
            words = _change_case(UNKNOWN_VALUE, UNKNOWN_NUMBER)
            expect(found.raw_status in words, f"raw_status {found.raw_status!r}")

    @rule
    async def test_a_merged_incident_says_into_which(self) -> None:
        """`merged_into` has the `external_id` of the incident that one was merged into.

        Otherwise it stays open for ever, and nobody finds where its story goes on.
        """
        async with self.harness() as lab:
            lab.differing("what an incident was merged into", merged_into="9999")
            target = lab.put()
            case = lab.put(merged_into=target.id, status=IncidentStatus.CLOSED)
            await lab.arrive()
            found = lab.incident(case).merged_into
            expect(found == self.external_id(target), f"merged_into {found!r}")

    @rule
    async def test_when_it_happened_is_the_siems_own_time(self) -> None:
        """`occurred_at` is when the SIEM says it began, with its zone.

        The time of reading it differs each time, and puts a burst of a week ago into today.
        """
        async with self.harness() as lab:
            lab.differing("when an incident began", created_at=lab.clock.now() - timedelta(hours=1))
            case = lab.put(created_at=lab.clock.now() - timedelta(minutes=47, microseconds=250_000))
            await lab.arrive()
            found = lab.incident(case).occurred_at
            expect(found.tzinfo is not None, f"{found} without a zone")
            expect(abs(found - case.created_at) < PRECISION, f"{found} for {case.created_at}")

    @rule
    async def test_entities_are_read(self) -> None:
        """What an incident is about becomes its entities.

        Investigations and correlations begin with them.
        """
        async with self.harness() as lab:
            address = Entity(EntityKind.IP, "198.51.100.77")
            lab.differing("what an incident is about", entities=(address,))
            case = lab.put(entities=(address,))
            await lab.arrive()
            found = lab.incident(case).entities
            expect(address in found, f"{found}, where {address} was to be")


async def get_only_incident(lab: Harness, **parts: Any) -> Incident:
    """Return the incident that a new case becomes."""
    case = lab.put(**parts)
    await lab.arrive()
    return lab.incident(case)


def _describe(change: Callable[[str], str]) -> Callable[[Json], Json]:
    """Return what changes a value that is a word."""
    return lambda value: change(value) if isinstance(value, str) else value


def _replace_with_unknown(value: Json) -> Json:
    return UNKNOWN_VALUE if isinstance(value, str) else UNKNOWN_NUMBER


def _change_case(*values: Json) -> set[str]:
    """Return how values may be spelt, without regard to case."""
    words = {word for value in values for word in iter_texts(value)}
    numbers = {str(value) for value in values if isinstance(value, int)}
    return {word.casefold() for word in words | numbers}
