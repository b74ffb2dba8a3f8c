"""Azure Resource Manager, as far as a workspace of Sentinel is concerned."""

from __future__ import annotations

from datetime import timedelta
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, urlsplit

from tocsin import Api, Broken, CredentialsRefused, Grant, Misconfigured, Refused, Tools
from tocsin_connectors.soar.sentinel_incidents.settings import CLOUDS, SentinelSettings

_SENTINEL = "2025-09-01"
"""The version of the API of Sentinel: stable, unlike those that end in `-preview`."""
_AUTHORIZATION = "2022-04-01"
_MOST_PAGES = 20
_CONFLICTS = (HTTPStatus.CONFLICT, HTTPStatus.PRECONDITION_FAILED)


class Azure:
    """Requests to one workspace; all of them raise what `Api.request` raises."""

    def __init__(self, settings: Any, tools: Tools) -> None:
        """Keep what is needed; do no I/O."""
        self._settings: SentinelSettings = settings
        self._clock = tools.clock
        self.api = Api(tools, settings, sign_in=self._sign_in)
        self._entra = Api(tools, settings.model_copy(update={"url": settings.authority}))
        self.workspace = (
            f"/subscriptions/{settings.subscription}/resourceGroups/"
            f"{quote(settings.resource_group)}/providers/Microsoft.OperationalInsights/"
            f"workspaces/{settings.workspace}"
        )
        self.incidents = f"{self.workspace}/providers/Microsoft.SecurityInsights/incidents"

    async def get(self, path: str) -> dict[str, Any] | None:
        """Return a resource, None where there is none."""
        try:
            answer = await self.api.get(path, **{"api-version": _SENTINEL})
        except Refused as refused:
            if refused.is_missing:
                return None
            raise
        if isinstance(answer.json, dict):
            return answer.json
        raise Broken("Azure answered something else than an object")

    async def put(self, path: str, body: dict[str, Any], etag: str | None = None) -> bool:
        """Make a resource, or replace the one that has this ETag; False where it is another by now.

        What is there already is never replaced without its ETag. `Incidents_CreateOrUpdate` has the
        ETag in the body; RFC 9110 section 13.1.1 has it in the header.
        """
        shown = {"If-Match": etag} if etag else {}
        content = {**body, "etag": etag} if etag else body
        version = {"api-version": _SENTINEL}
        try:
            await self.api.request("PUT", path, query=version, json=content, headers=shown)
        except Refused as refused:
            if refused.status in _CONFLICTS:
                return False
            raise
        return True

    async def members(self, path: str, version: str = _SENTINEL, **query: Any) -> list[Any]:
        """Return what a list has, over its pages."""
        found, answer = [], await self.api.get(path, **{"api-version": version}, **query)
        for _ in range(_MOST_PAGES):
            match answer.json:
                case {"value": [*members], "nextLink": str(link)} if link:
                    found += members
                    following = urlsplit(link)  # which may name the port, and so another origin
                    answer = await self.api.get(f"{following.path}?{following.query}")
                case {"value": [*members]}:
                    return [*found, *members]
                case _:
                    raise Broken(f"GET {path} answered without a list")
        return found

    async def roles(self) -> list[Any]:
        """Return what the app's roles on the workspace allow."""
        path = f"{self.workspace}/providers/Microsoft.Authorization/permissions"
        return await self.members(path, _AUTHORIZATION)

    async def expect_incidents(self) -> None:
        """Return where the workspace shows its incidents."""
        await self.api.get(self.incidents, **{"api-version": _SENTINEL, "$top": 1})

    async def _sign_in(self) -> Grant:
        """Return a grant by client credentials (RFC 6749 section 4.4)."""
        form = {
            "grant_type": "client_credentials",
            "client_id": self._settings.client_id,
            "client_secret": self._settings.client_secret.get_secret_value(),
            "scope": f"{CLOUDS[self._settings.cloud].management}/.default",
        }
        path = f"/{self._settings.tenant}/oauth2/v2.0/token"
        try:
            answer = await self._entra.request("POST", path, form=form)
        except Misconfigured:
            raise
        except Refused as refused:  # an unknown tenant or app is answered with 400
            raise CredentialsRefused(
                str(refused), status=refused.status, response=refused.response
            ) from refused
        match answer.json:
            case {"access_token": str(token), "expires_in": int(seconds)}:
                return Grant(f"Bearer {token}", self._clock.now() + timedelta(seconds=seconds))
        raise Broken(f"POST {path} answered without a token")
