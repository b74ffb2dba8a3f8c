"""Rules for incident identity."""

from __future__ import annotations

from tocsin.model import Entity, EntityKind, IncidentStatus, Severity
from tocsin.testing.conformance.harness import Conformance, Harness
from tocsin.testing.conformance.records import PRECISION
from tocsin.testing.conformance.rules import does_not_apply, expect, rule
from tocsin.testing.siem import Case


class IdentityRules(Conformance):
    """How a provider tells incidents from their versions."""

    @rule
    async def test_an_incident_keeps_its_id(self) -> None:
        """A new version of an incident has the same `external_id`, whatever of it has changed.

        An identity made of what changes makes a new incident, and a new alert, of every update.
        """
        async with self.harness() as lab:
            case = lab.put()
            await lab.arrive()
            _change_everything(lab, case)
            await lab.arrive()
            names = list(lab.store.incidents)
            expect(names == [self.external_id(case)], f"one incident is {names}")

    @rule
    async def test_what_happened_first_stays(self) -> None:
        """A new version of an incident has the same `occurred_at`.

        It says when it began, and reports of a period would count it twice.
        """
        async with self.harness() as lab:
            case = lab.put()
            await lab.arrive()
            _change_everything(lab, case)
            await lab.arrive()
            times = sorted(it.occurred_at for it in lab.store.delivered)
            expect(times[-1] - times[0] < PRECISION, f"{times[0]} and {times[-1]}")

    @rule
    async def test_alike_incidents_stay_apart(self) -> None:
        """Two incidents that differ in nothing but their id are two.

        An identity made of titles and times loses one of them.
        """
        async with self.harness() as lab:
            one = lab.put(title="Malware found")
            other = lab.put(title="Malware found", entities=one.entities)
            if self.external_id(one) == self.external_id(other):
                does_not_apply("its records have no id of their own")
            await lab.arrive()
            expect(lab.incident(one) is not lab.incident(other), "they are one")


def _change_everything(lab: Harness, case: Case) -> Case:
    """Give the SIEM a version with everything new but the id and the beginning."""
    return lab.change(
        case,
        title=f"{case.title}, again",
        description="More is known.",
        severity=Severity.LOW,
        status=IncidentStatus.ACTIVE,
        entities=(*case.entities, Entity(EntityKind.IP, "198.51.100.78")),
    )
