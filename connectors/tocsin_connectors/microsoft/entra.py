"""Sign-in to Microsoft Entra ID as an app, with a client secret.

https://learn.microsoft.com/entra/identity-platform/v2-oauth2-client-creds-grant-flow
"""

from __future__ import annotations

from base64 import urlsafe_b64decode
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any, ClassVar

from pydantic import Field, SecretStr, model_validator

from tocsin import Api, ApiSettings, Grant, ServerUrl, Tools, parse_json
from tocsin_connectors.microsoft.clouds import (
    MICROSOFT_CLOUDS,
    MicrosoftCloud,
    MicrosoftCloudName,
    add_cloud_endpoints,
)
from tocsin_connectors.oauth import request_grant


class EntraSettings(ApiSettings):
    """Settings of an app that signs in. Subclasses list their endpoints in `addresses`."""

    addresses: ClassVar[Mapping[str, str]] = {"authority": "authority"}
    """Names of the cloud attributes that are the defaults of settings, by setting."""

    cloud: MicrosoftCloudName = Field(
        default="public",
        description="The Microsoft cloud: public, usgov (GCC High), usdod or china.",
    )
    authority: ServerUrl = Field(
        default=MICROSOFT_CLOUDS["public"].authority,
        description="The sign-in endpoint. Default: the cloud's endpoint.",
    )
    tenant_id: str = Field(
        pattern=r"^[A-Za-z0-9.-]{1,253}$", description="The ID or domain of the Entra tenant."
    )
    client_id: str = Field(min_length=1, description="The client ID of the app registration.")
    client_secret: SecretStr = Field(description="The client secret of the app registration.")

    @model_validator(mode="before")
    @classmethod
    def _add_cloud_endpoints(cls, given: Any) -> Any:
        return add_cloud_endpoints(given, cls.addresses)

    @property
    def cloud_endpoints(self) -> MicrosoftCloud:
        """Endpoints of the cloud."""
        return MICROSOFT_CLOUDS[self.cloud]


class EntraClient:
    """Sign-in of one app. A token is valid for one audience."""

    def __init__(self, settings: Any, tools: Tools) -> None:
        """Store the dependencies. Performs no I/O."""
        self._settings: EntraSettings = settings
        self._tools = tools
        self._granted: dict[str, frozenset[str]] = {}
        self._authority = Api(tools, settings.model_copy(update={"url": settings.authority}))

    def api(self, url: str, audience: str) -> Api:
        """Return a client of the server at `url` that uses tokens for this audience."""
        settings = self._settings.model_copy(update={"url": url})
        return Api(self._tools, settings, sign_in=partial(self._sign_in, f"{audience}/.default"))

    def granted(self, audience: str) -> frozenset[str]:
        """Return the permissions in the last token, or none if the token cannot be parsed."""
        return self._granted.get(f"{audience}/.default", frozenset())

    async def _sign_in(self, scope: str) -> Grant:
        """Request a grant with client credentials (RFC 6749 section 4.4)."""
        form = {
            "grant_type": "client_credentials",
            "client_id": self._settings.client_id,
            "client_secret": self._settings.client_secret.get_secret_value(),
            "scope": scope,
        }
        path = f"/{self._settings.tenant_id}/oauth2/v2.0/token"
        grant = await request_grant(self._authority, path, form, self._tools.clock)
        self._granted[scope] = _read_roles(grant.authorization.removeprefix("Bearer "))
        return grant


def _read_roles(token: str) -> frozenset[str]:
    """Return the app roles in a token, or none if it is not a readable JWT (RFC 7519).

    https://learn.microsoft.com/entra/identity-platform/access-token-claims-reference
    """
    with suppress(ValueError):
        payload = token.split(".")[1:2]
        content = parse_json(urlsafe_b64decode("".join(payload) + "=="))
        match content:
            case {"roles": [*roles]}:
                return frozenset(map(str, roles))
    return frozenset()
