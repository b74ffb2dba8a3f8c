"""Rules for setting incident statuses."""

from __future__ import annotations

from dataclasses import replace

from tocsin.errors import Refused
from tocsin.hookspecs import Capability
from tocsin.model import IncidentStatus
from tocsin.testing.conformance.http_harness import HttpConformance, HttpHarness
from tocsin.testing.conformance.rules import (
    RuleViolation,
    catch_failure,
    does_not_apply,
    expect,
    expect_failure,
    rule,
)
from tocsin.testing.siem import Case


class StatusRules(HttpConformance):
    """Rules for `set_status`."""

    @rule
    async def test_a_status_is_set(self) -> None:
        """`set_status` changes only the incident's status and does not change other incidents.

        Analysts edit the other fields, and Tocsin must not overwrite their changes. A wrong status
        moves an incident out of the analysts' queue.
        """
        async with self.harness() as harness:
            self._sets()
            case, other = await _arrived(harness)
            await self._set(harness, case)
            _expect_at(harness, replace(case, status=IncidentStatus.ACTIVE))
            _expect_at(harness, other)

    @rule
    async def test_an_unchanged_status_is_not_written(self) -> None:
        """`set_status` changes nothing if the incident already has the status.

        Tocsin repeats the call after a crash, and each change in the SIEM can trigger
        notifications.
        """
        async with self.harness() as harness:
            self._sets()
            case, _ = await _arrived(harness)
            await self._set(harness, case)
            once = harness.siem.get(case.id)
            harness.clock.advance(minutes=1)
            await harness.restart()
            await self._set(harness, case)
            seen = f"the incident changed again at {_shown_record(harness, case).changed_at}"
            expect(harness.siem.get(case.id) == once, seen)

    @rule
    async def test_a_status_of_an_unknown_incident_is_refused(self) -> None:
        """`set_status` raises `Refused` for an incident that does not exist in the SIEM.

        Otherwise, Tocsin would retry forever or count the status as set.
        """
        async with self.harness() as harness:
            self._sets()
            expect_failure(await catch_failure(self._set(harness, harness.case())), Refused)

    @rule
    async def test_incidents_are_closed(self) -> None:
        """`set_status` can close an incident, unless Closed is missing from the provider's
        `settable`.

        Tocsin can close the incident in the SIEM when a person closes its ticket.
        """
        async with self.harness() as harness:
            self._sets()
            if IncidentStatus.CLOSED not in self.provider.settable:
                does_not_apply("the provider cannot close incidents")
            case, other = await _arrived(harness)
            name = self.external_id(case)
            await harness.provider.set_status(name, IncidentStatus.CLOSED)
            found = _shown_record(harness, case).status
            expect(found is IncidentStatus.CLOSED, f"the incident is {found}")
            _expect_at(harness, other)

    def _sets(self) -> None:
        if Capability.STATUS not in self.provider.capabilities():
            does_not_apply(f"the provider does not offer {Capability.STATUS}")

    async def _set(self, harness: HttpHarness, case: Case) -> None:
        await harness.provider.set_status(self.external_id(case), IncidentStatus.ACTIVE)


async def _arrived(harness: HttpHarness) -> tuple[Case, Case]:
    one, other = harness.put(), harness.put()
    await harness.arrive()
    return one, other


def _expect_at(harness: HttpHarness, wanted: Case) -> None:
    """Check the current version of an incident at the SIEM, apart from its time of change."""
    found = _shown_record(harness, wanted)
    same = replace(found, changed_at=wanted.changed_at)
    expect(same == wanted, f"{same}, expected {wanted}")


def _shown_record(harness: HttpHarness, case: Case) -> Case:
    if (found := harness.siem.get(case.id)) is None:
        raise RuleViolation(f"incident {case.id} no longer exists")
    return found
