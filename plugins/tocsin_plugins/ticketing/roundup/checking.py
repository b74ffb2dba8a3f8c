"""What is missing at a Roundup, as far as it tells."""

from __future__ import annotations

from urllib.parse import quote

from tocsin import Health
from tocsin_plugins.ticketing.answers import ExplainingTracker
from tocsin_plugins.ticketing.roundup.messages import API, found

_KEYS = {"user": "username"}  # by what objects are named, where that is not their name


async def examine(tracker: ExplainingTracker, closed_status: str) -> Health:
    """Return whether there is everything that issues shall have.

    The request for a link makes nothing, but is refused without the tracker's own origin.
    """
    settings, project = tracker.settings, tracker.settings.project
    await found(tracker, project, {"@page_size": 1})
    await tracker.ask("POST", f"{API}/{quote(project, safe='')}/@poe", json={})
    named = {
        "status": (closed_status,),
        "priority": settings.priorities.values(),
        "keyword": settings.labels,
        "user": (settings.assignee,) if settings.assignee else (),
    }
    problems = [
        f"there is no {kind} {name}"
        for kind, names in named.items()
        for name in dict.fromkeys(names)
        if not await found(tracker, kind, {f"{_KEYS.get(kind, 'name')}:": name})
    ]
    return Health(detail=f"Roundup answers, and has the class {project}", problems=tuple(problems))
