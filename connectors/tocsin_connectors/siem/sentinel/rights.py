"""What an app has to be allowed on a workspace, and what of it its roles lack.

https://learn.microsoft.com/azure/role-based-access-control/role-definitions
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any

READ = "Microsoft.SecurityInsights/incidents/read"
QUERY = "Microsoft.OperationalInsights/workspaces/query/read"
RIGHTS = "Microsoft.Authorization/permissions/read"
COMMENT = "Microsoft.SecurityInsights/incidents/comments/write"
CHANGE = "Microsoft.SecurityInsights/incidents/write"


def lacking(roles: Sequence[Any], needed: Iterable[str]) -> Iterator[str]:
    """Yield the needed actions that none of the roles allows.

    Each role allows its `actions` but for its `notActions`, in which `*` stands for anything.
    """
    yield from (action for action in needed if not any(_allows(it, action) for it in roles))


def _allows(role: Any, action: str) -> bool:
    match role:
        case {"actions": [*allowed], "notActions": [*excepted]}:
            return _names(allowed, action) and not _names(excepted, action)
        case {"actions": [*allowed]}:
            return _names(allowed, action)
    return False


def _names(patterns: Iterable[Any], action: str) -> bool:
    return any(fnmatchcase(action.lower(), str(it).lower()) for it in patterns)
