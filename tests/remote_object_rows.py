"""Rows of remote objects, as a reader stores them."""

from __future__ import annotations

from sqlalchemy import Connection, insert

from incident_rows import NOW, add_incidents
from tocsin.store.tables import destinations, remote_objects

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


def add_closed_tickets(connection: Connection) -> None:
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
