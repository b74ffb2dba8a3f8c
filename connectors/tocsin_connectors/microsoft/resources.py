"""Resources of Azure Resource Manager, and the actions that roles allow on them.

https://learn.microsoft.com/azure/azure-resource-manager/management/overview and
https://learn.microsoft.com/azure/role-based-access-control/role-definitions
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from tocsin import Api, Broken, Refused

AUTHORIZATION_API_VERSION = "2022-04-01"
"""Version of the authorization API."""
AzureResource = dict[str, Any]
_CONFLICT_STATUSES = (HTTPStatus.CONFLICT, HTTPStatus.PRECONDITION_FAILED)


class AzureResources:
    """Requests for single resources. All raise what `Api.request` raises."""

    def __init__(self, api: Api, version: str) -> None:
        """Store the dependencies. Performs no I/O."""
        self._api = api
        self._version = {"api-version": version}

    async def get(self, path: str) -> AzureResource | None:
        """Return a resource, or None if it does not exist."""
        try:
            answer = await self._api.get(path, **self._version)
        except Refused as refused:
            if refused.is_missing:
                return None
            raise
        if isinstance(answer.json, dict):
            return answer.json
        raise Broken(f"GET {path} did not return an object")

    async def put(self, path: str, body: AzureResource, etag: str | None = None) -> bool:
        """Create a resource, or replace the one with this ETag. Return False on a conflict.

        An existing resource is never replaced without its ETag. Sentinel has the ETag in the body;
        RFC 9110 section 13.1.1 has it in the header.
        """
        shown = {"If-Match": etag} if etag else {}
        content = {**body, "etag": etag} if etag else body
        try:
            answer = await self._api.request(
                "PUT", path, query=self._version, json=content, headers=shown
            )
        except Refused as refused:
            if refused.status in _CONFLICT_STATUSES:
                return False
            raise
        if not isinstance(answer.json, dict):
            raise Broken(f"PUT {path} did not return the written object")
        return True


def build_workspace_path(subscription: str, resource_group: str, workspace: str) -> str:
    """Return the path of a Log Analytics workspace."""
    return (
        f"/subscriptions/{subscription}/resourceGroups/{quote(resource_group)}"
        f"/providers/Microsoft.OperationalInsights/workspaces/{workspace}"
    )


def build_incidents_path(workspace: str) -> str:
    """Return the path of the incidents of the workspace at this path."""
    return f"{workspace}/providers/Microsoft.SecurityInsights/incidents"


def build_permissions_path(resource: str) -> str:
    """Return the path of the caller's permissions on the resource at this path."""
    return f"{resource}/providers/Microsoft.Authorization/permissions"


READ_PERMISSIONS = "Microsoft.Authorization/permissions/read"
"""Required to find out which other actions are missing."""


def find_missing_actions(roles: Sequence[Any], needed: Iterable[str]) -> Iterator[str]:
    """Yield the required actions that no role allows.

    A role allows its `actions` except its `notActions`, in which `*` matches anything.
    """
    yield from (action for action in needed if not any(_allows(role, action) for role in roles))


def _allows(role: Any, action: str) -> bool:
    match role:
        case {"actions": [*allowed], "notActions": [*excepted]}:
            return _matches(allowed, action) and not _matches(excepted, action)
        case {"actions": [*allowed]}:
            return _matches(allowed, action)
    return False


def _matches(patterns: Iterable[Any], action: str) -> bool:
    return any(fnmatchcase(action.lower(), str(pattern).lower()) for pattern in patterns)
