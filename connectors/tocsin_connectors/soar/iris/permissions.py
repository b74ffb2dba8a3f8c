"""Permission check for an IRIS user that does not change anything."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from http import HTTPStatus

from tocsin import CredentialsRefused, Json
from tocsin_connectors.soar.iris.lookups import LookupKind, NumberLookup

Ask = Callable[..., Awaitable[Json]]
_CUSTOMERS = "customers_read"
_PERMISSION_NUMBERS = {"alerts_read": 0x4, "alerts_write": 0x8, _CUSTOMERS: 0x40}
"""Permissions with their numbers, both of which IRIS requires."""


async def find_problems(
    ask: Ask, names: NumberLookup, customer: int | str, needed: Iterable[tuple[LookupKind, str]]
) -> AsyncIterator[str]:
    """Yield missing permissions, and names and a customer that the user cannot find."""
    missing = [name for name in _PERMISSION_NUMBERS if not await _has_permission(ask, name)]
    for name in missing:
        if name != _CUSTOMERS or isinstance(customer, str):
            yield f"the user lacks the permission {name}"
    for kind, name in needed:
        if await names.find(kind, name) is None:
            yield f"the {kind.label} {name!r} does not exist"
    if _CUSTOMERS not in missing and not await names.has_customer(customer):
        yield f"the customer {customer!r} does not exist or is not visible to the user"


async def _has_permission(ask: Ask, name: str) -> bool:
    asked = {"permission_name": name, "permission_value": _PERMISSION_NUMBERS[name]}
    try:
        await ask("POST", "/user/has-permission", json=asked)
    except CredentialsRefused as refused:
        if refused.status == HTTPStatus.FORBIDDEN:
            return False
        raise
    return True
