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
    """`set_status`."""

    @rule
    async def test_a_status_is_set_at_its_incident(self) -> None:
        """`set_status` has the incident stand so, nothing else of it change, and no other.

        Analysts sort their work by it, and what else stands there is theirs.
        """
        async with self.harness() as lab:
            self._sets()
            case, other = await _arrived(lab)
            await self._set(lab, case)
            _expect_at(lab, replace(case, status=IncidentStatus.ACTIVE))
            _expect_at(lab, other)

    @rule
    async def test_a_status_that_stands_is_not_set_again(self) -> None:
        """`set_status` changes nothing where the incident stands so already.

        It is repeated after a crash, and each change is read as one, and tells people of it.
        """
        async with self.harness() as lab:
            self._sets()
            case, _ = await _arrived(lab)
            await self._set(lab, case)
            once = lab.siem.get(case.id)
            lab.clock.advance(minutes=1)
            await lab.restart()
            await self._set(lab, case)
            seen = f"the incident changed again at {_shown_record(lab, case).changed_at}"
            expect(lab.siem.get(case.id) == once, seen)

    @rule
    async def test_a_status_of_no_incident_is_refused(self) -> None:
        """`set_status` raises `Refused` for an incident that the SIEM does not have.

        It would be tried for ever, or be taken for set.
        """
        async with self.harness() as lab:
            self._sets()
            expect_failure(await catch_failure(self._set(lab, lab.case())), Refused)

    def _sets(self) -> None:
        if Capability.STATUS not in self.provider.capabilities():
            does_not_apply(f"it does not offer {Capability.STATUS}")

    async def _set(self, lab: HttpHarness, case: Case) -> None:
        await lab.provider.set_status(self.external_id(case), IncidentStatus.ACTIVE)


async def _arrived(lab: HttpHarness) -> tuple[Case, Case]:
    one, other = lab.put(), lab.put()
    await lab.arrive()
    return one, other


def _expect_at(lab: HttpHarness, wanted: Case) -> None:
    """Return where an incident is as wanted at the SIEM, whenever it came to be so."""
    found = _shown_record(lab, wanted)
    same = replace(found, changed_at=wanted.changed_at)
    expect(same == wanted, f"{same}, where {wanted} was to be")


def _shown_record(lab: HttpHarness, case: Case) -> Case:
    if (found := lab.siem.get(case.id)) is None:
        raise RuleViolation(f"incident {case.id} is gone")
    return found
