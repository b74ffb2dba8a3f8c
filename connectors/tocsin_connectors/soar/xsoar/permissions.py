"""Permission check for an XSOAR key that does not change anything.

https://docs-cortex.paloaltonetworks.com/r/Cortex-XSOAR/8.5/Cortex-XSOAR-On-prem-Documentation/Role-based-permissions
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from http import HTTPStatus

from tocsin import Broken, CredentialsRefused, Json, Refused

Ask = Callable[..., Awaitable[Json]]
READ_PERMISSION = "Data with View, or the key is invalid"
WRITE_PERMISSION = "Data with View/Edit"
CLOSE_PERMISSION = "Change the incident status"

_MISSING_INCIDENT = "tocsin-check"
"""ID that no incident has, because IDs are numbers."""


async def find_missing_permissions(ask: Ask, *, closes: bool) -> AsyncIterator[str]:
    """Yield the missing permissions of the role.

    To test write permissions, the check uses an ID that no incident has: the request is then either
    not found or not allowed.
    """
    if not await _is_allowed(ask, "/incidents/search", {"filter": {"size": 1}}):
        yield READ_PERMISSION
    entry = {"investigationId": _MISSING_INCIDENT, "contents": "Tocsin checks", "format": "text"}
    if not await _is_allowed_on_missing(ask, "/entry/formatted", entry):
        yield WRITE_PERMISSION
    if closes and not await _is_allowed_on_missing(
        ask, "/incident/close", {"id": _MISSING_INCIDENT}
    ):
        yield CLOSE_PERMISSION


async def list_incident_types(ask: Ask) -> Collection[str] | None:
    """Return the names of the incident types, or None if they are not visible."""
    try:
        found = await ask("GET", "/incidenttype")
    except (Refused, Broken):  # XSOAR 8 may hide them
        return None
    match found:
        case [*types]:
            return {type_["name"] for type_ in types if isinstance(type_, dict) and "name" in type_}
    return None


async def _is_allowed(ask: Ask, path: str, body: Json) -> bool:
    try:
        await ask("POST", path, json=body)
    except CredentialsRefused as refused:
        if refused.status == HTTPStatus.FORBIDDEN:
            return False
        raise
    return True


async def _is_allowed_on_missing(ask: Ask, path: str, body: Json) -> bool:
    try:
        return await _is_allowed(ask, path, body)
    except CredentialsRefused:
        raise
    except (Refused, Broken):  # allowed: the incident does not exist
        return True
