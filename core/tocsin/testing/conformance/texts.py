"""Rules for records with hostile text, unexpected types and missing members."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tocsin.model import Incident, IncidentStatus, Json, Severity
from tocsin.testing.conformance.harness import Conformance, Harness
from tocsin.testing.conformance.record_shapes import (
    Path,
    differences,
    iter_paths,
    leave_out,
    put_at,
    with_strangers,
)
from tocsin.testing.conformance.records import get_only_incident
from tocsin.testing.conformance.rules import expect, rule

HOSTILE = (
    "a NUL \x00 inside",
    "invoice\u202egnp.exe",
    "<script>alert(1)</script> {{ 7 * 7 }} ${jndi:ldap://example.com/x} %s",
    "two\nlines,\ta tab, '; DROP TABLE incidents; --",
    "\N{BELL} 鐘 e\N{COMBINING ACUTE ACCENT}",
)
_LONGEST = "much " * 20_000
_ODD: tuple[Json, ...] = (None, True, -1, [], {"unexpected": []})


class TextRules(Conformance):
    """Rules for unusual record contents."""

    @rule
    async def test_hostile_text_is_read(self) -> None:
        """An incident arrives even if its title contains NUL, markup, commands or text in any
        writing system.

        Attackers can influence titles. If such incidents were rejected, attackers could use titles
        to hide incidents.
        """
        async with self.harness() as harness:
            cases = [harness.put(title=title, description=title) for title in HOSTILE]
            await harness.arrive()
            for case in cases:
                harness.incident(case)

    @rule
    async def test_long_text_is_read(self) -> None:
        """An incident arrives even if its title has a hundred thousand characters.

        Attackers can influence titles. If such incidents were rejected, attackers could use titles
        to hide incidents.
        """
        async with self.harness() as harness:
            case, after = harness.put(title=_LONGEST), harness.put()
            await harness.arrive()
            expect(
                harness.incident(case) is not harness.incident(after), "the incidents are identical"
            )

    @rule
    async def test_lone_surrogates_do_not_affect_other_incidents(self) -> None:
        """A lone UTF-16 surrogate in a title does not affect other incidents.

        SIEMs truncate strings anywhere, even within a character. The incident with the truncated
        title must not disappear: it arrives, is rejected or is recorded as lost.
        """
        async with self.harness() as harness:
            harness.put()
            await harness.arrive()
            broken = harness.put(title="cut \ud83d")
            harness.clock.advance(minutes=5)
            after = harness.put()
            await harness.persist()
            harness.incident(after)
            is_recorded = (
                self.external_id(broken) in harness.store.incidents or harness.store.rejected
            )
            expect(
                is_recorded or harness.store.lost,
                "the record is neither an incident nor rejected nor lost",
            )

    @rule
    async def test_unknown_members_are_ignored(self) -> None:
        """A record is read even if it contains members that the provider does not know.

        Vendors add members in new versions without notice.
        """
        async with self.harness() as harness:
            harness.alter = with_strangers
            await get_only_incident(harness)

    @rule
    async def test_missing_members_are_accepted(self) -> None:
        """A record is read even if all members except the ID and times are missing.

        SIEMs leave out values that they do not know. Without this rule, such incidents would be
        lost.
        """
        async with self.harness() as harness:
            harness.alter = leave_out(_optional(harness))
            await get_only_incident(harness)

    @rule
    async def test_null_members_are_accepted(self) -> None:
        """A record is read even if all members except the ID and times are null.

        SIEMs write null for values that they do not know. Without this rule, such incidents would
        be lost.
        """
        async with self.harness() as harness:
            harness.alter = put_at(_optional(harness), lambda _: None)
            await get_only_incident(harness)

    @rule
    async def test_members_of_another_type_do_not_stop_the_feed(self) -> None:
        """If a record's member has an unexpected type, only this record can be rejected. All other
        records are read.

        Otherwise, one malformed record would block all records after it.
        """
        async with self.harness() as harness:
            for place in iter_paths(harness.render(harness.case())):
                for value in _ODD:
                    harness.altered[harness.put().id] = put_at([place], _always(value))
            after = harness.put()
            await harness.arrive()
            harness.incident(after)
            for version in harness.store.delivered:
                expect(_is_whole(version), f"an incident with values of wrong types: {version}")

    @rule
    async def test_a_malformed_record_is_rejected(self) -> None:
        """A malformed record is rejected with its content and a reason.

        If the provider dropped the record, nobody would know about the missing incident. If the
        record caused an error, no further incidents would arrive.
        """
        async with self.harness() as harness:
            before, _, after = harness.put(), harness.put(malformed=True), harness.put()
            await harness.arrive()
            expect(
                harness.incident(before) is not harness.incident(after),
                "the incidents are identical",
            )
            kept = harness.store.rejected
            expect(len(kept) == 1, f"{len(kept)} records rejected, expected one")
            expect(kept[0].content and kept[0].reason and kept[0].location, f"{kept[0]}")


def _optional(harness: Harness) -> list[Path]:
    """Return the paths of a record's optional values."""
    case = harness.case(description="Seen on several hosts.")
    parts: dict[str, Any] = {
        "title": "Another",
        "description": "",
        "severity": Severity.LOW,
        "status": IncidentStatus.CLOSED,
        "entities": (),
        "number": 7,
        "merged_into": "9999",
    }
    record = harness.render(case)
    others = [harness.render(replace(case, **{name: value})) for name, value in parts.items()]
    places = [place for other in others for place in differences(record, other)]
    needed = differences(record, harness.render(replace(case, id="9998")))
    return [place for place in places if place not in needed]


def _is_whole(incident: Incident) -> bool:
    """Return whether an incident's fields have the declared types, on which the core relies."""
    texts = (incident.external_id, incident.title, incident.description)
    optional = (incident.raw_severity, incident.raw_status, incident.merged_into)
    return (
        bool(incident.external_id)
        and all(isinstance(text, str) for text in texts)
        and all(isinstance(text, str | None) for text in optional)
        and isinstance(incident.severity, Severity)
        and isinstance(incident.status, IncidentStatus)
        and all(isinstance(entity.value, str) for entity in incident.entities)
    )


def _always(value: Json) -> Callable[[Json], Json]:
    return lambda _: value
