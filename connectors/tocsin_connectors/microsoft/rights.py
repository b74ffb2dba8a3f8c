"""What an app may do in Azure, by its roles.

https://learn.microsoft.com/azure/role-based-access-control/role-definitions
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any

READ_PERMISSIONS = "Microsoft.Authorization/permissions/read"
"""Without it nobody says what else is missing."""


def find_missing_actions(roles: Sequence[Any], needed: Iterable[str]) -> Iterator[str]:
    """Yield the needed actions that none of the roles allows.

    Each role allows its `actions` but for its `notActions`, in which `*` stands for anything.
    """
    yield from (action for action in needed if not any(_allows(it, action) for it in roles))


def _allows(role: Any, action: str) -> bool:
    match role:
        case {"actions": [*allowed], "notActions": [*excepted]}:
            return _matches(allowed, action) and not _matches(excepted, action)
        case {"actions": [*allowed]}:
            return _matches(allowed, action)
    return False


def _matches(patterns: Iterable[Any], action: str) -> bool:
    return any(fnmatchcase(action.lower(), str(it).lower()) for it in patterns)
