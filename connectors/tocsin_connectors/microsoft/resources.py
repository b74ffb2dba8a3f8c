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
"""The version of the API that tells of roles."""
AzureResource = dict[str, Any]
_CONFLICT_STATUSES = (HTTPStatus.CONFLICT, HTTPStatus.PRECONDITION_FAILED)


class AzureResources:
    """Requests for single resources; all of them raise what `Api.request` raises."""

    def __init__(self, api: Api, version: str) -> None:
        """Keep what is needed; do no I/O."""
        self._api = api
        self._version = {"api-version": version}

    async def get(self, path: str) -> AzureResource | None:
        """Return a resource, None where there is none."""
        try:
            answer = await self._api.get(path, **self._version)
        except Refused as refused:
            if refused.is_missing:
                return None
            raise
        if isinstance(answer.json, dict):
            return answer.json
        raise Broken(f"GET {path} answered something else than an object")

    async def put(self, path: str, body: AzureResource, etag: str | None = None) -> bool:
        """Make a resource, or replace the one that has this ETag; False where it is another by now.

        What is there already is never replaced without its ETag. Sentinel has the ETag in the body;
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
            raise Broken(f"PUT {path} answered something else than what was written")
        return True


def build_workspace_path(subscription: str, resource_group: str, workspace: str) -> str:
    """Return where a workspace of Log Analytics is."""
    return (
        f"/subscriptions/{subscription}/resourceGroups/{quote(resource_group)}"
        f"/providers/Microsoft.OperationalInsights/workspaces/{workspace}"
    )


def build_incidents_path(workspace: str) -> str:
    """Return where the incidents of the workspace at this path are."""
    return f"{workspace}/providers/Microsoft.SecurityInsights/incidents"


def build_permissions_path(resource: str) -> str:
    """Return where it is told what one's roles on the resource at this path allow."""
    return f"{resource}/providers/Microsoft.Authorization/permissions"


READ_PERMISSIONS = "Microsoft.Authorization/permissions/read"
"""Without it nobody says what else is missing."""


def find_missing_actions(roles: Sequence[Any], needed: Iterable[str]) -> Iterator[str]:
    """Yield the needed actions that none of the roles allows.

    Each role allows its `actions` but for its `notActions`, in which `*` stands for anything.
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
