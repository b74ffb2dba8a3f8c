"""Tickets that do not match their incidents, over HTTP."""

from __future__ import annotations

from sqlalchemy import insert

from incident_rows import NOW, add_incidents, change_incident
from tocsin.store.tables import destinations, remote_objects
from tocsin.web.schemas.status_mismatches import StatusMismatchList

MISMATCHES = "/api/v1/status-mismatches"
BOARD = {
    "name": "soc",
    "plugin": "board",
    "managed_by": "file",
    "settings": {},
    "revision": 1,
    "state": "active",
    "created_by": "me",
    "created_at": NOW,
    "updated_at": NOW,
    "failures": 0,
    "holds": 0,
}


def add_closed_tickets(connection) -> None:
    """Add two incidents, and a closed ticket for each."""
    connection.execute(insert(destinations), BOARD)
    for number in add_incidents(connection, 2):
        row = {
            "destination": "soc",
            "subject": f"incident:{number}",
            "remote_id": f"SEC-{number}",
            "home": "",
            "event_id": "evt_1",
            "updated_at": NOW,
            "incident_number": number,
            "status": "Done",
            "is_open": False,
            "resolution": "Won't Do",
            "status_changed_at": NOW,
            "status_read_at": NOW,
            "status_due_at": NOW,
        }
        connection.execute(insert(remote_objects), row)


async def test_mismatches_are_paged_and_filtered(api, analyst):
    write = api.services.database.write
    await write(add_closed_tickets)
    page = await analyst.read(f"{MISMATCHES}?limit=1")
    StatusMismatchList.model_validate(page)
    following = await analyst.read(f"{MISMATCHES}?limit=1&cursor={page['next_cursor']}")
    shown = [each for part in (page, following) for each in part["mismatches"]]
    assert [each["incident_number"] for each in shown] == [2, 1]
    assert following["next_cursor"] is None
    assert (shown[0]["mismatch"], shown[0]["resolution"]) == ("object-closed", "Won't Do")
    found = await analyst.read(f"{MISMATCHES}?mismatch=object-open&destination=soc")
    assert found["mismatches"] == []
    for number in (1, 2):
        await write(change_incident, number, now=NOW, status="Closed")
    assert (await analyst.read(MISMATCHES))["mismatches"] == []
    await analyst.ask("GET", f"{MISMATCHES}?mismatch=other", 422)
