"""Tickets that do not match their incidents, in the console."""

from __future__ import annotations

from sqlalchemy import update

from incident_rows import NOW, change_incident
from remote_object_rows import add_closed_tickets
from tocsin.store.tables import remote_objects


async def test_mismatches_are_listed_with_links_and_filtered(person, api):
    write = api.services.database.write
    await write(add_closed_tickets)
    url = "https://board.example.com/SEC-2"
    is_it = remote_objects.c.remote_id == "SEC-2"
    change = update(remote_objects).where(is_it).values(remote_url=url, resolution="<b>Done")
    await write(lambda connection: connection.execute(change))
    page = await person.html("/ticket-statuses")
    assert 'href="/incidents/1"' in page
    assert url in page
    assert "&lt;b&gt;Done" in page
    assert "No mismatches" in await person.html("/ticket-statuses?mismatch=object-open")
    for number in (1, 2):
        await write(change_incident, number, now=NOW, status="Closed")
    assert "No mismatches" in await person.html("/ticket-statuses")
