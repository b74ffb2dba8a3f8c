"""Permission check of an app on a Defender XDR tenant."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial

from tocsin import Window
from tocsin_connectors.siem.defender.client import DefenderClient
from tocsin_connectors.siem.defender.pagination import DefenderCursor
from tocsin_connectors.siem.permissions import PermissionProbe, find_refused

READ = "SecurityIncident.Read.All"
HUNT = "ThreatHunting.Read.All"
WRITE = "SecurityIncident.ReadWrite.All"
_RECENT = timedelta(minutes=5)


async def find_permission_problems(
    graph: DefenderClient, now: datetime, *, writes: bool
) -> list[str]:
    """Return the missing permissions of the app, found with test requests.

    Raises errors other than a refusal. Write access cannot be tested without changes, so it is read
    from the token.
    """
    lately = Window(now - _RECENT, now)
    reading = WRITE if writes else READ
    tried: dict[str, PermissionProbe] = {
        reading: partial(graph.incidents, DefenderCursor.first(lately), lately, 1),
        HUNT: partial(graph.hunt, "print Tocsin = 1", lately),
    }
    lacking = await find_refused(tried)
    granted = graph.granted()
    if writes and granted and WRITE not in granted and WRITE not in lacking:
        lacking.append(WRITE)
    return [f"the app lacks the permission {it}" for it in lacking]
