"""Rules for record contracts, which detect changes to a vendor's API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tocsin.model import Json
from tocsin.testing.conformance.harness import Conformance, Harness
from tocsin.testing.conformance.record_shapes import without_field
from tocsin.testing.conformance.rules import RuleViolation, does_not_apply, expect, rule


class RecordContractRules(Conformance):
    """Rules for `record_contracts`."""

    @rule
    async def test_each_required_field_is_in_every_record(self) -> None:
        """Every record has the required fields of its contract, and all fields have the declared
        types.

        Otherwise, Tocsin would warn operators of changes although the vendor has not changed
        anything.
        """
        async with self.harness() as harness:
            await _put_and_arrive(harness)
            if not (contracts := self.provider.record_contracts):
                does_not_apply("the provider declares no record contracts")
            noted = harness.provider.shapes.take()
            expect(
                noted.keys() & set(harness.provider.streams()),
                "`note_shapes` got no records",
            )
            for kind, samples in noted.items():
                for path, spec in contracts[kind].fields.items():
                    for found in (sample.types.get(path, frozenset()) for sample in samples):
                        seen = f"{kind}: {path} is {sorted(found) or 'missing'}, expected {spec}"
                        is_empty = found <= {"null", "[]"} and not spec.is_required
                        expect(is_empty or spec.accepts(found), seen)

    @rule
    async def test_the_mapping_needs_each_required_field(self) -> None:
        """If a required field is removed, the record is rejected or its incident changes.

        Otherwise, the mapping does not need the field, and warnings about the missing field would
        be false alarms.
        """
        async with self.harness() as harness:
            await _put_and_arrive(harness)
            if not (contracts := self.provider.record_contracts):
                does_not_apply("the provider declares no record contracts")
            for stream in harness.provider.streams():
                if contract := contracts.get(stream):
                    for record in await harness.provider.sample(stream):
                        for path in contract.required:
                            await _expect_needed(harness.provider, stream, path, record)


async def _put_and_arrive(harness: Harness) -> None:
    for _ in range(3):
        harness.put()
    await harness.arrive()


async def _expect_needed(provider: Any, stream: str, path: str, record: Mapping[str, Json]) -> None:
    if await _map(provider, record) == await _map(provider, without_field(record, path)):
        raise RuleViolation(f"{stream}: the incident is the same without {path}")


async def _map(provider: Any, record: Any) -> object:
    """Return the incident of a record, or the reason for which it is rejected."""
    try:
        incident = provider.to_incident(record)
        return incident and await provider.complete(incident, record)
    except (ValueError, LookupError) as error:
        return str(error)
