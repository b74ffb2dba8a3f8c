"""What the role of a key allows, found out without changing anything.

https://docs-cortex.paloaltonetworks.com/r/Cortex-XSOAR/8.5/Cortex-XSOAR-On-prem-Documentation/Role-based-permissions
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from http import HTTPStatus

from tocsin import Broken, CredentialsRefused, Json, Refused

Ask = Callable[..., Awaitable[Json]]
READS = "Data with View, or the key is wrong"
WRITES = "Data with View/Edit"
CLOSES = "Change the incident status"

_NOTHING = "tocsin-check"
"""The id of no incident: those are numbers."""


async def lacking(ask: Ask, *, closes: bool) -> AsyncIterator[str]:
    """Yield each permission that the role has not.

    What may be written is asked with the id of no incident: it is then not found, or not allowed.
    """
    if not await _may(ask, "/incidents/search", {"filter": {"size": 1}}):
        yield READS
    entry = {"investigationId": _NOTHING, "contents": "Tocsin checks", "format": "text"}
    if not await _may_to_nothing(ask, "/entry/formatted", entry):
        yield WRITES
    if closes and not await _may_to_nothing(ask, "/incident/close", {"id": _NOTHING}):
        yield CLOSES


async def incident_types(ask: Ask) -> Collection[str] | None:
    """Return the names of the incident types; None where they cannot be seen."""
    try:
        found = await ask("GET", "/incidenttype")
    except (Refused, Broken):  # XSOAR 8 need not show them
        return None
    match found:
        case [*types]:
            return {it["name"] for it in types if isinstance(it, dict) and "name" in it}
    return None


async def _may(ask: Ask, path: str, body: Json) -> bool:
    try:
        await ask("POST", path, json=body)
    except CredentialsRefused as refused:
        if refused.status == HTTPStatus.FORBIDDEN:
            return False
        raise
    return True


async def _may_to_nothing(ask: Ask, path: str, body: Json) -> bool:
    try:
        return await _may(ask, path, body)
    except CredentialsRefused:
        raise
    except (Refused, Broken):  # it is allowed, and there is no such incident
        return True
