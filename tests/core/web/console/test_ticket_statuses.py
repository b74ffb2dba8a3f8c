"""Tickets that do not match their incidents, in the console."""

from __future__ import annotations

import pytest
from sqlalchemy import update

from delivery_rows import add_destination
from incident_rows import NOW, change_incident
from remote_object_rows import add_closed_tickets
from tocsin.store.tables import destinations, remote_objects


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
    await write(read_statuses)
    assert "No mismatches" in await person.html("/ticket-statuses?mismatch=object-open")
    for number in (1, 2):
        await write(change_incident, number, now=NOW, status="Closed")
    page = await person.html("/ticket-statuses")
    assert "No mismatches" in page
    assert '<a href="/destinations/soc">soc</a>' in page


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("query", ["", "?mismatch=object-open"])
async def test_without_a_destination_that_reads_statuses_nothing_is_said_to_match(
    viewer, api, query
):
    nothing = "No destination reads ticket statuses"
    assert nothing in await viewer.text(f"/ticket-statuses{query}")
    for number in range(250):
        await api.services.database.write(add_destination, f"hook-{number:03}")
    assert nothing in await viewer.text(f"/ticket-statuses{query}")
    await api.services.database.write(read_statuses, "hook-249")
    text = await viewer.text(f"/ticket-statuses{query}")
    assert nothing not in text
    assert "status_interval : hook-249 ." in text


def read_statuses(connection, name: str = "soc") -> None:
    """Have a destination read statuses."""
    named = destinations.c.name == name
    values = {"plugin": "webhook", "settings": {"status_interval": "5m"}}
    connection.execute(update(destinations).where(named).values(values))
