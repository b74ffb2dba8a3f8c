"""Tickets that do not match their incidents, over HTTP."""

from __future__ import annotations

from incident_rows import NOW, change_incident
from remote_object_rows import add_closed_tickets
from tocsin.web.schemas.status_mismatches import StatusMismatchList

MISMATCHES = "/api/v1/status-mismatches"


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
