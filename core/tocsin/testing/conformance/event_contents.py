"""Rules for the contents that events add to objects."""

from __future__ import annotations

import asyncio

from tocsin.model import Entity, EntityKind
from tocsin.testing.conformance.channel_events import (
    ADDRESSES,
    FOUND_ADDRESS,
    KNOWN_ADDRESS,
    REPORT_TITLE,
    address,
)
from tocsin.testing.conformance.object_channel_harness import ObjectChannelSuite
from tocsin.testing.conformance.rules import does_not_apply, expect, rule
from tocsin.testing.conformance.scenarios import count_event_notes, count_notes
from tocsin.testing.receiver import RemoteObject

_ALSO_FOUND = "203.0.113.103"
_TOO_LONG = Entity(EntityKind.URL, f"https://example.com/{'x' * 2_000}")
_LONG_NOTE = "word " * 20_000


class EventContentRules(ObjectChannelSuite):
    """Rules for the contents that an event adds to objects."""

    @rule
    async def test_a_report_is_added_to_its_incident(self) -> None:
        """A completed investigation adds a note to the object of its incident.

        Analysts find the report where they work and have only one object to close.
        """
        async with self.harness() as harness:
            await harness.bring(harness.alert())
            receipt = await harness.bring(harness.completed("incident:7"))
            [found] = harness.objects
            expect(len(found.notes) == 1, f"{len(found.notes)} notes")
            expect(
                REPORT_TITLE in found.notes[0],
                f"the note lacks the report's title: {found.notes[0]:.300}",
            )
            expect(receipt.remote_id == found.id, f"remote_id {receipt.remote_id!r}")

    @rule
    async def test_a_report_without_a_known_incident_creates_an_object(self) -> None:
        """If a completed investigation is not about a known incident, it creates an object with a
        note.

        Otherwise, the findings would never reach the receiver.
        """
        async with self.harness() as harness:
            await harness.bring(harness.completed("incident:9"))
            [found] = harness.objects
            expect(len(found.notes) == 1, f"{len(found.notes)} notes")
            self._expect_found(found)

    @rule
    async def test_malicious_entities_become_observables(self) -> None:
        """Entities that a report rates as malicious become observables; other entities do not.

        Analysts block listed entities. If the receiver does not support observables, the note lists
        the malicious entities instead.
        """
        async with self.harness() as harness:
            await harness.bring(harness.alert())
            await harness.bring(harness.completed("incident:7"))
            [found] = harness.objects
            self._expect_found(found, *ADDRESSES)

    def _expect_found(self, found: RemoteObject, *others: str) -> None:
        if self.keeps_observables:
            found_values, wanted = (
                sorted(found.observables),
                sorted({*others, ADDRESSES[0], FOUND_ADDRESS}),
            )
            expect(
                found_values == wanted,
                f"observables {found_values}, expected {wanted}; {KNOWN_ADDRESS} is not malicious",
            )
        else:
            expect(
                FOUND_ADDRESS in _strip_markup(found.notes[0]),
                f"{FOUND_ADDRESS} is missing: {found.notes[0]:.400}",
            )

    @rule
    async def test_the_number_of_observables_is_limited(self) -> None:
        """Only the first `most_entities` entities of an event become observables.

        Some incidents have thousands of entities, more than anyone can review.
        """
        self._need_observables()
        async with self.harness(most_entities=1) as harness:
            await harness.bring(harness.alert())
            [found] = harness.objects
            expect([*found.observables] == [ADDRESSES[0]], f"observables {found.observables}")

    @rule
    async def test_long_entities_are_skipped(self) -> None:
        """An entity with more than 2,000 characters is skipped, without affecting others.

        A shortened value would be wrong, and the alert matters more than a single value.
        """
        self._need_observables()
        async with self.harness() as harness:
            entities = (address(ADDRESSES[0]), _TOO_LONG, address(ADDRESSES[1]))
            await harness.bring(harness.alert(entities=entities))
            [found] = harness.objects
            found_values = [observable[:50] for observable in sorted(found.observables)]
            expect(found_values == sorted(ADDRESSES), f"observables {found_values}")

    @rule
    async def test_a_long_note_is_shortened(self) -> None:
        """A note that exceeds the receiver's limit is shortened but still contains its event's ID.

        Operators' templates can produce notes of any length. The event's ID identifies the note.
        """
        async with self.harness() as harness:
            harness.rendered = dict.fromkeys(("note", "summary"), _LONG_NOTE.encode())
            await harness.bring(harness.alert())
            event = harness.completed("incident:7")
            for _ in range(2):
                await harness.bring(event)
                [found] = harness.objects
                lengths = [len(note) for note in found.notes]
                expect(
                    count_event_notes(event, found) == 1,
                    f"notes of {lengths} characters, not exactly one with the event's name",
                )
                expect(lengths[0] < len(_LONG_NOTE), f"a note of {lengths} characters")

    @rule
    async def test_a_report_about_two_incidents_is_added_to_both(self) -> None:
        """A report about two incidents adds one note to each incident's object.

        If people have merged the two objects in the receiver, the merged object gets one note.
        """
        async with self.harness() as harness:
            for number in (7, 8):
                await harness.bring(harness.alert(number=number))
            event = harness.completed("incident:7", "incident:8")
            for _ in range(2):
                await harness.bring(event)
                expect(count_notes(harness) == [1, 1], f"objects with {count_notes(harness)} notes")
        async with self.harness() as harness:
            await harness.bring(harness.alert())
            harness.known["incident:8"] = harness.known["incident:7"]
            await harness.bring(harness.completed("incident:7", "incident:8"))
            expect(count_notes(harness) == [1], f"an object with {count_notes(harness)} notes")

    @rule
    async def test_concurrent_reports_both_arrive(self) -> None:
        """When two reports about one incident are delivered concurrently, each arrives exactly
        once.

        Before a delivery adds a note, it checks the object's current state.
        """
        async with self.harness() as harness:
            await harness.bring(harness.alert())
            events = (
                harness.completed("incident:7"),
                harness.completed("incident:7", also=[_ALSO_FOUND]),
            )
            await asyncio.gather(*map(harness.bring, events))
            [found] = harness.objects
            counts = [count_event_notes(event, found) for event in events]
            expect(counts == [1, 1], f"{counts} notes")
            found_values = sorted(found.observables)
            wanted = sorted(
                {*ADDRESSES, FOUND_ADDRESS, _ALSO_FOUND} if self.keeps_observables else found_values
            )
            expect(found_values == wanted, f"observables {found_values}, expected {wanted}")

    def _need_observables(self) -> None:
        if not self.keeps_observables:
            does_not_apply("the receiver has no observables")


def _strip_markup(text: str) -> str:
    """Return a text without the characters that escape and defang addresses."""
    return text.translate(dict.fromkeys(map(ord, "\\[]")))
