"""Sign-in to Google with the key of a service account.

https://developers.google.com/identity/protocols/oauth2/service-account
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from jwt.algorithms import RSAAlgorithm

from tocsin import Api, CredentialsRefused, Grant, Tools, parse_json
from tocsin_connectors.oauth import request_grant
from tocsin_connectors.siem.secops.settings import SecOpsSettings

_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_TOKEN_PATH = "/token"  # noqa: S105 - a path
_JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_LIFETIME = timedelta(hours=1)
_INVALID_KEY = "`service_account` is not a Google service account key in JSON format"


@dataclass(frozen=True, slots=True)
class _ServiceAccountKey:
    """Key of a service account."""

    email: str
    name: str
    private: RSAPrivateKey = field(repr=False)


class ServiceAccount:
    """Sign-in of one service account."""

    def __init__(self, settings: SecOpsSettings, tools: Tools) -> None:
        """Store the dependencies. Performs no I/O."""
        self._settings = settings
        self._clock = tools.clock
        self._api = Api(tools, settings.model_copy(update={"url": settings.sign_in_url}))

    async def sign_in(self) -> Grant:
        """Request a grant with a signed assertion (RFC 7523 section 2.1)."""
        form = {"grant_type": _JWT_BEARER, "assertion": self._assertion(self._clock.now())}
        return await request_grant(self._api, _TOKEN_PATH, form, self._clock)

    def _assertion(self, now: datetime) -> str:
        key = self._key
        claims = {
            "iss": key.email,
            "scope": _SCOPE,
            "aud": f"{self._settings.sign_in_url}{_TOKEN_PATH}",
            "iat": int(now.timestamp()),
            "exp": int((now + _LIFETIME).timestamp()),
        }
        return jwt.encode(claims, key.private, algorithm="RS256", headers={"kid": key.name})

    @cached_property  # parsing takes as long as a hundred requests
    def _key(self) -> _ServiceAccountKey:
        return _parse_key(self._settings.service_account.get_secret_value())


def _parse_key(text: str) -> _ServiceAccountKey:
    """Parse a Google key file. Raises `CredentialsRefused` if it is invalid."""
    try:
        key: Any = parse_json(text.encode())
        private = RSAAlgorithm(RSAAlgorithm.SHA256).prepare_key(key["private_key"])
        if isinstance(private, RSAPrivateKey):
            return _ServiceAccountKey(str(key["client_email"]), str(key["private_key_id"]), private)
    except (ValueError, KeyError, TypeError, AttributeError, jwt.PyJWTError):
        pass  # the error may contain parts of the key
    raise CredentialsRefused(_INVALID_KEY)
