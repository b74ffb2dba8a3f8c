"""Rules for incident identity."""

from __future__ import annotations

from tocsin.model import Entity, EntityKind, IncidentStatus, Severity
from tocsin.testing.conformance.harness import Conformance, Harness
from tocsin.testing.conformance.records import PRECISION
from tocsin.testing.conformance.rules import does_not_apply, expect, rule
from tocsin.testing.siem import Case


class IdentityRules(Conformance):
    """Rules for incidents and their versions."""

    @rule
    async def test_an_incident_keeps_its_id(self) -> None:
        """A new version of an incident has the same `external_id`, whatever has changed.

        If the ID depended on fields that can change, an update could create a new incident and a
        new alert.
        """
        async with self.harness() as harness:
            case = harness.put()
            await harness.arrive()
            _change_everything(harness, case)
            await harness.arrive()
            names = list(harness.store.incidents)
            expect(names == [self.external_id(case)], f"one incident became {names}")

    @rule
    async def test_the_start_time_is_constant(self) -> None:
        """A new version of an incident has the same `occurred_at`.

        `occurred_at` is when the incident started. If this time changed, reports about two
        different periods could both count the incident.
        """
        async with self.harness() as harness:
            case = harness.put()
            await harness.arrive()
            _change_everything(harness, case)
            await harness.arrive()
            times = sorted(incident.occurred_at for incident in harness.store.delivered)
            expect(times[-1] - times[0] < PRECISION, f"{times[0]} and {times[-1]}")

    @rule
    async def test_similar_incidents_stay_separate(self) -> None:
        """Two incidents that differ only in their ID stay separate.

        If the ID depended only on title and time, one of the two incidents would be lost.
        """
        async with self.harness() as harness:
            one = harness.put(title="Malware found")
            other = harness.put(title="Malware found", entities=one.entities)
            if self.external_id(one) == self.external_id(other):
                does_not_apply("the records have no id")
            await harness.arrive()
            expect(
                harness.incident(one) is not harness.incident(other), "the incidents are identical"
            )


def _change_everything(harness: Harness, case: Case) -> Case:
    """Add a version in which everything but the ID and the start is new."""
    return harness.change(
        case,
        title=f"{case.title}, again",
        description="More is known.",
        severity=Severity.LOW,
        status=IncidentStatus.ACTIVE,
        entities=(*case.entities, Entity(EntityKind.IP, "198.51.100.78")),
    )
