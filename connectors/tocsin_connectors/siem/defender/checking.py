"""Whether a tenant lets itself be read, hunted in and written to."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial

from tocsin import Window
from tocsin_connectors.siem.defender.graph import Graph
from tocsin_connectors.siem.defender.walk import Step
from tocsin_connectors.siem.trying import Trying, refused

READ = "SecurityIncident.Read.All"
HUNT = "ThreatHunting.Read.All"
WRITE = "SecurityIncident.ReadWrite.All"
_LATELY = timedelta(minutes=5)


async def problems(graph: Graph, now: datetime, *, writes: bool) -> list[str]:
    """Return which permissions the app lacks, found out by trying; raises whatever else is wrong.

    Writing cannot be tried harmlessly: whether it is allowed is read from the token.
    """
    lately = Window(now - _LATELY, now)
    reading = WRITE if writes else READ
    tried: dict[str, Trying] = {
        reading: partial(graph.incidents, Step.first(lately), lately, 1),
        HUNT: partial(graph.hunt, "print Tocsin = 1", lately),
    }
    lacking = await refused(tried)
    granted = graph.granted()
    if writes and granted and WRITE not in granted and WRITE not in lacking:
        lacking.append(WRITE)
    return [f"the app lacks the permission {it}" for it in lacking]
