"""Rules for the severity, status, times and entities of incidents."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from datetime import timedelta
from typing import Any

from tocsin.model import Entity, EntityKind, Incident, IncidentStatus, Json, Severity
from tocsin.testing.conformance.harness import Conformance, Harness
from tocsin.testing.conformance.record_shapes import (
    iter_texts,
    parse_number,
    put_at,
    unchanged,
    value_at,
)
from tocsin.testing.conformance.rules import RuleViolation, expect, rule

PRECISION = timedelta(seconds=1)
"""The coarsest precision at which vendors store times."""
UNKNOWN_VALUE = "x-unheard-of"
UNKNOWN_NUMBER = 4711


class RecordRules(Conformance):
    """Rules for the contents of one record."""

    @rule
    async def test_each_severity_is_kept(self) -> None:
        """Each of the vendor's severities maps to the right severity, and `severity_assumed` is
        false.

        The severity determines whether Tocsin sends an alert. If the severity is too low, nobody is
        alerted.
        """
        async with self.harness() as harness:
            harness.differing("the severity of an incident", severity=Severity.LOW)
            cases = [harness.put(severity=severity) for severity in self.severities]
            await harness.arrive()
            for case in cases:
                found = harness.incident(case)
                expect(found.severity == case.severity, f"{found.severity} for {case.severity}")
                expect(not found.severity_assumed, f"severity_assumed for {case.severity}")

    @rule
    async def test_severities_are_known_in_any_case(self) -> None:
        """Severities are recognized in any letter case, such as HIGH, High and high.

        Vendors change the letter case between versions and even mix letter cases within a version.
        """
        async with self.harness() as harness:
            places = harness.differing("the severity of an incident", severity=Severity.LOW)
            for change in (str.upper, str.lower, str.title):
                harness.alter = put_at(places, _describe(change))
                found = await get_only_incident(harness, severity=Severity.HIGH)
                seen = f"{found.severity} for {found.raw_severity!r}, expected High"
                expect(found.severity == Severity.HIGH and not found.severity_assumed, seen)

    @rule
    async def test_an_unknown_severity_becomes_medium(self) -> None:
        """If the severity is unknown, the incident is Medium, and `severity_assumed` is true.

        Vendors add severities. Without this rule, an incident with a new severity would be lost or
        look harmless.
        """
        async with self.harness() as harness:
            places = harness.differing("the severity of an incident", severity=Severity.LOW)
            harness.alter = put_at(places, _replace_with_unknown)
            found = await get_only_incident(harness)
            expect(found.severity == Severity.MEDIUM, f"{found.severity}")
            expect(found.severity_assumed, "severity_assumed is False")

    @rule
    async def test_the_vendors_own_severity_is_kept(self) -> None:
        """`raw_severity` contains the vendor's original word or number, for known and unknown
        severities.

        With this value, analysts can find the incident in the SIEM's console and check an assumed
        severity.
        """
        async with self.harness() as harness:
            places = harness.differing("the severity of an incident", severity=Severity.LOW)
            for alteration in (unchanged, put_at(places, _replace_with_unknown)):
                harness.alter = alteration
                case = harness.put()
                words = _change_case(*(value_at(harness.show(case), place) for place in places))
                await harness.arrive()
                raw = harness.incident(case).raw_severity
                seen = f"raw_severity {raw!r}, expected one of {sorted(words)}"
                expect((raw or "").casefold() in words, seen)

    @rule
    async def test_each_status_is_kept(self) -> None:
        """Each of the vendor's statuses maps to the corresponding status in Tocsin.

        Otherwise, an incident that is closed in the SIEM stays open in Tocsin, or vice versa.
        """
        async with self.harness() as harness:
            harness.differing("the status of an incident", status=IncidentStatus.CLOSED)
            cases = [harness.put(status=status) for status in self.statuses]
            await harness.arrive()
            for case in cases:
                status = harness.incident(case).status
                expect(status == case.status, f"{status} for {case.status}")

    @rule
    async def test_statuses_are_known_in_any_case(self) -> None:
        """Statuses are recognized in any letter case, such as CLOSED, Closed and closed.

        Vendors change the letter case between versions and even mix letter cases within a version.
        """
        async with self.harness() as harness:
            places = harness.differing("the status of an incident", status=IncidentStatus.CLOSED)
            for change in (str.upper, str.lower, str.title):
                harness.alter = put_at(places, _describe(change))
                found = await get_only_incident(harness, status=IncidentStatus.CLOSED)
                seen = f"{found.status} for {found.raw_status}"
                expect(found.status == IncidentStatus.CLOSED, seen)

    @rule
    async def test_an_incident_with_an_unknown_status_is_read(self) -> None:
        """An incident with an unknown status is read, and `raw_status` contains the status.

        Some vendors let their customers define statuses, so no mapping can know them all.
        """
        async with self.harness() as harness:
            places = harness.differing("the status of an incident", status=IncidentStatus.CLOSED)
            harness.alter = put_at(places, _replace_with_unknown)
            found = await get_only_incident(harness)
            words = _change_case(UNKNOWN_VALUE, UNKNOWN_NUMBER)
            expect(found.raw_status in words, f"raw_status {found.raw_status!r}")

    @rule
    async def test_a_merged_incident_names_its_target(self) -> None:
        """`merged_into` is the `external_id` of the incident into which this incident was merged.

        Otherwise, the incident stays open forever, without a link to the incident that replaced it.
        """
        async with self.harness() as harness:
            harness.differing("the target of a merge", merged_into="9999")
            target = harness.put()
            case = harness.put(merged_into=target.id, status=IncidentStatus.CLOSED)
            await harness.arrive()
            found = harness.incident(case).merged_into
            expect(found == self.external_id(target), f"merged_into {found!r}")

    @rule
    async def test_the_start_time_is_the_siems_own(self) -> None:
        """`occurred_at` is the incident's start time according to the SIEM and has a time zone.

        If the provider used the time of the read instead, the start would change with each read,
        and old incidents would seem new.
        """
        async with self.harness() as harness:
            harness.differing(
                "the start time of an incident", created_at=harness.clock.now() - timedelta(hours=1)
            )
            case = harness.put(
                created_at=harness.clock.now() - timedelta(minutes=47, microseconds=250_000)
            )
            await harness.arrive()
            found = harness.incident(case).occurred_at
            expect(found.tzinfo is not None, f"{found} has no time zone")
            expect(abs(found - case.created_at) < PRECISION, f"{found} for {case.created_at}")

    @rule
    async def test_entities_are_read(self) -> None:
        """The provider reads an incident's entities.

        Entities are where investigations and correlations start.
        """
        async with self.harness() as harness:
            address = Entity(EntityKind.IP, "198.51.100.77")
            case = harness.put(entities=(address,))
            await harness.arrive()
            found = harness.incident(case).entities
            if address not in found and "entities" not in self.fills:
                harness.differing("the entities of an incident", entities=(address,))
            expect(address in found, f"{found}, expected {address}")

    @rule
    async def test_declared_fields_are_filled(self) -> None:
        """In every incident, the provider sets each field that the suite lists in `fills`.

        If the simulator's records do not contain a field, the suite skips the other rules for that
        field. Only this rule then detects that the provider never sets the field.
        """
        if unknown := sorted(set(self.fills) - {field.name for field in fields(Incident)}):
            raise RuleViolation(f"`fills` has {', '.join(unknown)}, which no incident has")
        async with self.harness() as harness:
            found = [await get_only_incident(harness) for _ in range(2)]
            empty = [name for name in self.fills if not all(getattr(one, name) for one in found)]
            expect(not empty, f"no {', '.join(empty)}; if the vendor has none, change `fills`")


async def get_only_incident(harness: Harness, **parts: Any) -> Incident:
    """Add a new case, and return the incident that it becomes."""
    case = harness.put(**parts)
    await harness.arrive()
    return harness.incident(case)


def _describe(change: Callable[[str], str]) -> Callable[[Json], Json]:
    """Return a function that changes a value if it is text."""
    return lambda value: change(value) if isinstance(value, str) else value


def _replace_with_unknown(value: Json) -> Json:
    if parse_number(value) is None:
        return UNKNOWN_VALUE
    return str(UNKNOWN_NUMBER) if isinstance(value, str) else UNKNOWN_NUMBER


def _change_case(*values: Json) -> set[str]:
    """Return the accepted spellings of values, in case-folded form."""
    words = {word for value in values for word in iter_texts(value)}
    numbers = {str(value) for value in values if isinstance(value, int)}
    return {word.casefold() for word in words | numbers}
