"""Incidents of alerts that are hidden, and shown again."""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import select

from tocsin import IncidentStatus
from tocsin.events import Notifiers
from tocsin.incidents import ProviderSync, SyncContext
from tocsin.store.tables import incidents


async def test_incident_follows_an_alert_that_was_hidden_later(
    falcon, opened, put, database, clock
):
    async def sync(*, hidden: bool) -> list:
        falcon.members = {"show_in_ui": not hidden}
        clock.advance(minutes=5)
        async with opened() as provider:
            context = SyncContext(database, clock, Notifiers(), "https://tocsin.example.org")
            await ProviderSync(provider, context).read_all()
        query = select(incidents.c.status, incidents.c.description).order_by(incidents.c.number)
        return await database.read(
            lambda connection: [
                (status, "Hidden in the console" in description)
                for status, description in connection.execute(query)
            ]
        )

    stored = put()
    assert await sync(hidden=False) == [("New", False)]
    never_shown = put()
    falcon.siem.put(replace(stored, status=IncidentStatus.CLOSED, changed_at=clock.now()))
    assert await sync(hidden=True) == [("Closed", True)]
    falcon.siem.put(replace(never_shown, changed_at=clock.now()))
    falcon.siem.put(replace(stored, changed_at=clock.now()))
    assert await sync(hidden=False) == [("New", False), ("New", False)]
