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
from tocsin.testing.conformance.channel_harness import ChannelSuite
from tocsin.testing.conformance.rules import does_not_apply, expect, rule
from tocsin.testing.conformance.scenarios import count_event_notes, count_notes
from tocsin.testing.receiver import RemoteObject

_ALSO_FOUND = "203.0.113.103"
_TOO_LONG = Entity(EntityKind.URL, f"https://example.com/{'x' * 2_000}")
_LONG_NOTE = "word " * 20_000


class EventContentRules(ChannelSuite):
    """What an event adds."""

    @rule
    async def test_a_report_goes_to_the_incident_that_it_is_about(self) -> None:
        """A completed investigation about an incident is a note at the object of that incident.

        Whoever works on the incident sees the report, and has one object to close.
        """
        async with self.harness() as lab:
            await lab.bring(lab.alert())
            receipt = await lab.bring(lab.completed("incident:7"))
            [found] = lab.objects
            expect(len(found.notes) == 1, f"{len(found.notes)} notes")
            expect(REPORT_TITLE in found.notes[0], f"no title of the report: {found.notes[0]:.300}")
            expect(receipt.remote_id == found.id, f"remote_id {receipt.remote_id!r}")

    @rule
    async def test_a_report_about_nothing_known_has_an_object_of_its_own(self) -> None:
        """A completed investigation that is about nothing known becomes an object with a note.

        Else nobody at the receiver's ever hears of what was found.
        """
        async with self.harness() as lab:
            await lab.bring(lab.completed("incident:9"))
            [found] = lab.objects
            expect(len(found.notes) == 1, f"{len(found.notes)} notes")
            self._expect_found(found)

    @rule
    async def test_what_a_report_found_is_added(self) -> None:
        """What a report calls malicious is added to the observables; what it only met is not.

        Without observables, as at a tracker, the note tells it. Who works on the incident blocks
        what is listed there.
        """
        async with self.harness() as lab:
            await lab.bring(lab.alert())
            await lab.bring(lab.completed("incident:7"))
            [found] = lab.objects
            self._expect_found(found, *ADDRESSES)

    def _expect_found(self, found: RemoteObject, *others: str) -> None:
        if self.keeps_observables:
            there, wanted = (
                sorted(found.observables),
                sorted({*others, ADDRESSES[0], FOUND_ADDRESS}),
            )
            expect(
                there == wanted,
                f"observables {there}, and not {wanted}; {KNOWN_ADDRESS} was only met",
            )
        else:
            expect(
                FOUND_ADDRESS in _strip_markup(found.notes[0]),
                f"nothing of {FOUND_ADDRESS}: {found.notes[0]:.400}",
            )

    @rule
    async def test_no_more_entities_are_handed_on_than_wanted(self) -> None:
        """Of one event no more than `most_entities` become observables, the first of them.

        Some incidents have thousands, which nobody looks through.
        """
        self._need_observables()
        async with self.harness(most_entities=1) as lab:
            await lab.bring(lab.alert())
            [found] = lab.objects
            expect([*found.observables] == [ADDRESSES[0]], f"observables {found.observables}")

    @rule
    async def test_what_is_too_long_is_left_out_whole(self) -> None:
        """An entity of more than 2,000 characters is no observable, and costs no other.

        A shortened one would be a false one, and the alert matters more than any of them.
        """
        self._need_observables()
        async with self.harness() as lab:
            entities = (address(ADDRESSES[0]), _TOO_LONG, address(ADDRESSES[1]))
            await lab.bring(lab.alert(entities=entities))
            [found] = lab.objects
            there = [observable[:50] for observable in sorted(found.observables)]
            expect(there == sorted(ADDRESSES), f"observables {there}")

    @rule
    async def test_a_note_that_is_too_long_is_cut(self) -> None:
        """A note that is longer than the receiver takes is cut, and still names its event.

        An operator's template may write any length, and by that name a note is known to be there.
        """
        async with self.harness() as lab:
            lab.rendered = dict.fromkeys(("note", "summary"), _LONG_NOTE.encode())
            await lab.bring(lab.alert())
            event = lab.completed("incident:7")
            for _ in range(2):
                await lab.bring(event)
                [found] = lab.objects
                lengths = [len(note) for note in found.notes]
                expect(
                    count_event_notes(event, found) == 1,
                    f"notes of {lengths} characters, without a name",
                )
                expect(lengths[0] < len(_LONG_NOTE), f"a note of {lengths} characters")

    @rule
    async def test_a_report_about_two_incidents_goes_to_both(self) -> None:
        """A report about two incidents is one note at the object of each.

        Where the receiver has made one object of both, it is one note there.
        """
        async with self.harness() as lab:
            for number in (7, 8):
                await lab.bring(lab.alert(number=number))
            event = lab.completed("incident:7", "incident:8")
            for _ in range(2):
                await lab.bring(event)
                expect(count_notes(lab) == [1, 1], f"objects with {count_notes(lab)} notes")
        async with self.harness() as lab:
            await lab.bring(lab.alert())
            lab.known["incident:8"] = lab.known["incident:7"]
            await lab.bring(lab.completed("incident:7", "incident:8"))
            expect(count_notes(lab) == [1], f"an object with {count_notes(lab)} notes")

    @rule
    async def test_two_reports_at_one_moment_are_both_told(self) -> None:
        """Of two reports about one incident that are delivered side by side nothing is lost.

        Nor is anything there twice: each looks what there is before it adds to it.
        """
        async with self.harness() as lab:
            await lab.bring(lab.alert())
            events = lab.completed("incident:7"), lab.completed("incident:7", also=[_ALSO_FOUND])
            await asyncio.gather(*map(lab.bring, events))
            [found] = lab.objects
            counts = [count_event_notes(event, found) for event in events]
            expect(counts == [1, 1], f"{counts} notes")
            there = sorted(found.observables)
            wanted = sorted(
                {*ADDRESSES, FOUND_ADDRESS, _ALSO_FOUND} if self.keeps_observables else there
            )
            expect(there == wanted, f"observables {there}, and not {wanted}")

    def _need_observables(self) -> None:
        if not self.keeps_observables:
            does_not_apply("its receiver has no observables")


def _strip_markup(text: str) -> str:
    """Return a text without what escapes and defangs addresses."""
    return text.translate(dict.fromkeys(map(ord, "\\[]")))
