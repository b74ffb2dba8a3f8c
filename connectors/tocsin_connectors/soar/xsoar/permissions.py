"""Permission check of an XSOAR key, without changes.

https://docs-cortex.paloaltonetworks.com/r/Cortex-XSOAR/8.5/Cortex-XSOAR-On-prem-Documentation/Role-based-permissions
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from http import HTTPStatus

from tocsin import Broken, CredentialsRefused, Json, Refused

Ask = Callable[..., Awaitable[Json]]
READ_PERMISSION = "Data with View, or the key is wrong"
WRITE_PERMISSION = "Data with View/Edit"
CLOSE_PERMISSION = "Change the incident status"

_MISSING_INCIDENT = "tocsin-check"
"""The id of no incident: those are numbers."""


async def find_missing_permissions(ask: Ask, *, closes: bool) -> AsyncIterator[str]:
    """Yield each permission that the role has not.

    What may be written is asked with the id of no incident: it is then not found, or not allowed.
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
    """Return the names of the incident types; None where they cannot be seen."""
    try:
        found = await ask("GET", "/incidenttype")
    except (Refused, Broken):  # XSOAR 8 need not show them
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
    except (Refused, Broken):  # it is allowed, and there is no such incident
        return True
