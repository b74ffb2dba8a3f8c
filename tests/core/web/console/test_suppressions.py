"""Suppression rules in the console."""

from __future__ import annotations

FORM = {
    "name": "pentest",
    "owner": "ana",
    "reason": "A test",
    "ends_at": "2026-11-22T12:00:00",
    "title": "<b>Scan</b>*",
}


async def test_a_person_creates_and_ends_a_rule(person):
    await person.submit("/suppressions", "/suppressions", **FORM)
    page = await person.html("/suppressions")
    assert "&lt;b&gt;Scan" in page
    await person.submit("/suppressions", "/suppressions/pentest/end")
    assert "ended" in await person.html("/suppressions")
