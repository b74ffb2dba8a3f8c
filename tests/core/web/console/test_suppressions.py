"""Suppression rules in the console."""

from __future__ import annotations

from sqlalchemy import update

from delivery_rows import add_delivery
from incident_rows import add_incidents
from tocsin.store.tables import events

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


async def test_the_incident_page_names_the_rule_beside_deliveries_to_plugins(person, api):
    def suppress(connection) -> None:
        add_incidents(connection)
        add_delivery(connection, "delivered", to="hook:watcher")
        connection.execute(update(events).values(suppressed_by="pentest"))

    await api.services.database.write(suppress)
    page = await person.html("/incidents/1")
    assert 'Suppressed by the rule <a href="/suppressions">pentest</a>' in page
    assert "hook:watcher" in page


async def test_an_end_that_has_passed_is_explained_on_the_page(person):
    late = FORM | {"ends_at": "2020-01-01T00:00:00"}
    page = await person.submit("/suppressions", "/suppressions", 422, **late)
    assert "in the future" in page
