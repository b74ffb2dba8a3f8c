"""Rules for record contents: hostile text, odd types, missing members."""

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
    """What a provider must take as it comes."""

    @rule
    async def test_hostile_text_is_read(self) -> None:
        """An incident arrives whatever its title holds: NUL, other scripts, markup, commands.

        Attackers write titles: one that nobody can read would hide what they do.
        """
        async with self.harness() as lab:
            cases = [lab.put(title=title, description=title) for title in HOSTILE]
            await lab.arrive()
            for case in cases:
                lab.incident(case)

    @rule
    async def test_long_text_is_read(self) -> None:
        """An incident arrives though its title has a hundred thousand characters.

        Attackers write titles: one that is too long would hide what they do.
        """
        async with self.harness() as lab:
            case, after = lab.put(title=_LONGEST), lab.put()
            await lab.arrive()
            expect(lab.incident(case) is not lab.incident(after), "they are one")

    @rule
    async def test_broken_characters_cost_no_other_incident(self) -> None:
        """Half a character in a title (a lone surrogate) costs no other incident.

        SIEMs cut texts anywhere. One that cannot be read itself is rejected or covered as lost.
        """
        async with self.harness() as lab:
            lab.put()
            await lab.arrive()
            broken = lab.put(title="cut \ud83d")
            lab.clock.advance(minutes=5)
            after = lab.put()
            await lab.persist()
            lab.incident(after)
            told = self.external_id(broken) in lab.store.incidents or lab.store.rejected
            expect(told or lab.store.lost, "it came neither as an incident nor as rejected or lost")

    @rule
    async def test_unknown_members_are_passed_over(self) -> None:
        """A record with members that nobody has heard of is read.

        Vendors add some with every version, and do not announce it.
        """
        async with self.harness() as lab:
            lab.alter = with_strangers
            await get_only_incident(lab)

    @rule
    async def test_missing_members_lose_nothing(self) -> None:
        """A record is read though everything is missing that is no identity and no time.

        SIEMs leave out what they do not know; the incident counts all the same.
        """
        async with self.harness() as lab:
            lab.alter = leave_out(_optional(lab))
            await get_only_incident(lab)

    @rule
    async def test_empty_members_lose_nothing(self) -> None:
        """A record is read though everything is null that is no identity and no time.

        SIEMs write null for what they do not know; the incident counts all the same.
        """
        async with self.harness() as lab:
            lab.alter = put_at(_optional(lab), lambda _: None)
            await get_only_incident(lab)

    @rule
    async def test_members_of_another_type_stop_nothing(self) -> None:
        """A record is read or rejected, and the rest is read, whatever type a member has.

        One record out of the ordinary would hold up all that come after it.
        """
        async with self.harness() as lab:
            for place in iter_paths(lab.render(lab.case())):
                for value in _ODD:
                    lab.altered[lab.put().id] = put_at([place], _always(value))
            after = lab.put()
            await lab.arrive()
            lab.incident(after)
            for version in lab.store.delivered:
                expect(_is_whole(version), f"an incident with members of wrong types: {version}")

    @rule
    async def test_a_malformed_record_is_rejected(self) -> None:
        """A record that cannot be understood is kept aside with its content and a reason.

        Dropped in silence it is an incident that nobody can account for; raised, it stops the feed.
        """
        async with self.harness() as lab:
            before, _, after = lab.put(), lab.put(malformed=True), lab.put()
            await lab.arrive()
            expect(lab.incident(before) is not lab.incident(after), "they are one")
            kept = lab.store.rejected
            expect(len(kept) == 1, f"{len(kept)} were rejected, not one")
            expect(kept[0].content and kept[0].reason and kept[0].location, f"{kept[0]}")


def _optional(lab: Harness) -> list[Path]:
    """Return where a record says what it need not say."""
    case = lab.case(description="Seen on several hosts.")
    parts: dict[str, Any] = {
        "title": "Another",
        "description": "",
        "severity": Severity.LOW,
        "status": IncidentStatus.CLOSED,
        "entities": (),
        "number": 7,
        "merged_into": "9999",
    }
    record = lab.render(case)
    others = [lab.render(replace(case, **{name: value})) for name, value in parts.items()]
    places = [place for other in others for place in differences(record, other)]
    needed = differences(record, lab.render(replace(case, id="9998")))
    return [place for place in places if place not in needed]


def _is_whole(incident: Incident) -> bool:
    """Return whether an incident has what its class promises: the core relies on it."""
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
