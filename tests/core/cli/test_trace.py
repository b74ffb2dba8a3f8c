"""`tocsin trace` of incidents that are not there any more."""

from __future__ import annotations

from sqlalchemy import insert

from incident_rows import NOW
from tocsin.store.tables import removed_incidents


def test_a_removed_incident_is_said_to_be_removed(tocsin, on_database):
    row = {"number": 7, "digest": "d", "alert_outcome": "alerted"}
    row |= {"created_at": NOW, "updated_at": NOW}
    on_database(lambda connection: connection.execute(insert(removed_incidents).values(row)))
    status, _, errors = tocsin("trace", "7")
    assert status == 2
    assert (
        "retention removed incident 7, which last changed on 2026-11-21; alert: alerted" in errors
    )
