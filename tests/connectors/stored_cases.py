"""Cases put into simulators, and all pages of a list."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tocsin import Severity, Window, WindowedProvider
from tocsin.testing import Case, Simulator


def put_case(simulator: Simulator, name: str, **changes: Any) -> Case:
    """Store a case that was created three hours ago, unless its time is given."""
    at = changes.get("created_at") or simulator.siem.clock.now() - timedelta(hours=3)
    given = {"number": 1, "title": "Brute force", "severity": Severity.HIGH}
    times = {"created_at": at, "changed_at": at}
    return simulator.siem.put(Case(id=name, **given | times | changes))


async def list_records(
    provider: WindowedProvider, stream: str, window: Window, limit: int = 10
) -> list[Any]:
    """Return the records on all pages of a list."""
    found: list[Any] = []
    token = None
    for _ in range(20):
        listing = await provider.list_changes(stream, window, token, limit)
        found += listing.records
        if (token := listing.next_token) is None:
            return found
    raise AssertionError("the list has no end")
