"""Permission checks: requests that show whether an account may do something."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus

from tocsin import CredentialsRefused

PermissionProbe = Callable[[], Awaitable[object]]


async def find_refused(tried: Mapping[str, PermissionProbe]) -> list[str]:
    """Return the names of the requests that are answered with 403. Raises other errors."""
    return [name for name, trying in tried.items() if await _is_forbidden(trying)]


async def _is_forbidden(trying: PermissionProbe) -> bool:
    try:
        await trying()
    except CredentialsRefused as error:
        if error.status != HTTPStatus.FORBIDDEN:
            raise
        return True
    return False
