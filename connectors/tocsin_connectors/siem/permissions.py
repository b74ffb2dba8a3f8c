"""Permission checks: requests that show whether an account may do something."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import TypeVar

from tocsin import CredentialsRefused, Refused

_MISSING_INDEX_PERMISSION = re.compile(rb"no permissions for \[([^\]]{1,200})\]")

_ABSENT = (HTTPStatus.NOT_FOUND, HTTPStatus.BAD_REQUEST)

PermissionProbe = Callable[[], Awaitable[object]]
T = TypeVar("T")


async def find_refused(probes: Mapping[str, PermissionProbe]) -> list[str]:
    """Return the names of the requests that are refused with 403. Raises all other errors."""
    return [name for name, probe in probes.items() if await _is_forbidden(probe)]


async def change_absent(request: Awaitable[object]) -> None:
    """Send a request that changes a nonexistent object, which only tests the permission.

    Raises all errors except those that report the nonexistent object.
    """
    try:
        await request
    except Refused as refused:
        if refused.status not in _ABSENT:
            raise


async def _is_forbidden(probe: PermissionProbe) -> bool:
    try:
        await probe()
    except CredentialsRefused as error:
        if error.status != HTTPStatus.FORBIDDEN:
            raise
        return True
    return False


class PermissionAttempts:
    """Runs test requests to a cluster and collects the permissions that its refusals name."""

    def __init__(self) -> None:
        self.problems: list[str] = []

    async def make(self, request: Awaitable[T]) -> T | None:
        """Return the result, or None and record a problem if a permission is missing."""
        try:
            return await request
        except CredentialsRefused as error:
            if error.status != HTTPStatus.FORBIDDEN:
                raise
            named = _MISSING_INDEX_PERMISSION.search(error.response or b"")
            permission = named[1].decode("utf-8", "replace") if named else f"a permission: {error}"
            self.problems.append(f"the user's role lacks {permission}")
            return None
