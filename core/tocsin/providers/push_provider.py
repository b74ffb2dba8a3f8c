"""Base class for providers that receive pushed incidents."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import re
from abc import abstractmethod
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Self

from pydantic import Field, SecretStr, field_validator, model_validator
from typing_extensions import TypeVar

from tocsin.errors import CredentialsRefused
from tocsin.fields import decode_webhook_key
from tocsin.hookspecs import Provider, PushRequest
from tocsin.model import Page, Received

TOLERANCE = timedelta(minutes=5)
"""The largest clock difference of a signature, as in the Standard Webhooks libraries."""
_PREFIX = "whsec_"
_SHORTEST_TOKEN = 16
_SIGNATURE = re.compile(r"v1,[A-Za-z0-9+/]{43}=")  # an HMAC-SHA256 in base64
_REFUSED = "invalid push credentials for this provider"


S = TypeVar("S", bound="PushProvider.Settings", default=Any)


class PushProvider(Provider[S]):
    """Base class of providers that receive pushed incidents; implement `unpack`.

    A signature is valid for five minutes before and after its timestamp. In this time, an attacker
    can replay an intercepted request. A replay creates no second incident, because Tocsin stores
    incidents by their IDs.
    """

    class Settings(Provider.Settings):
        """Settings of every push provider: a token, a secret, or both."""

        token: SecretStr | None = Field(
            default=None,
            description="The senders' token: `Authorization: Bearer <token>`, or the "
            "password of `Authorization: Basic`; 16 characters or more.",
        )
        secret: SecretStr | None = Field(
            default=None,
            description="The senders' signing secret (Standard Webhooks 1.0.0): `whsec_` followed "
            "by base64.",
        )

        max_body_mib: int = Field(
            default=16, ge=1, le=64, description="Maximum size of a request body, in MiB."
        )

        @field_validator("token")
        @classmethod
        def _long_enough(cls, value: SecretStr | None) -> SecretStr | None:
            if value is not None and len(value.get_secret_value()) < _SHORTEST_TOKEN:
                raise ValueError(f"use a token of {_SHORTEST_TOKEN} characters or more")
            return value

        @field_validator("secret")
        @classmethod
        def _whsec(cls, value: SecretStr | None) -> SecretStr | None:
            if value is not None:
                decode_secret(value.get_secret_value())
            return value

        @model_validator(mode="after")
        def _has_either(self) -> Self:
            if self.token is None and self.secret is None:
                raise ValueError("set a token or a secret; push requires one of them")
            return self

    def streams(self) -> Sequence[str]:
        """Return no streams, because a push provider reads nothing."""
        return ()

    async def read(
        self,
        stream: str,  # noqa: ARG002 - unused
        position: Mapping[str, Any] | None,  # noqa: ARG002
        until: datetime,  # noqa: ARG002
    ) -> AsyncGenerator[Page, None]:
        """Yield nothing."""
        nothing: tuple[Page, ...] = ()
        for page in nothing:
            yield page

    async def receive(self, request: PushRequest) -> AsyncGenerator[Received, None]:
        """Authenticate a request, and yield its incidents.

        If neither the token nor the signature is valid, raises `CredentialsRefused` before it
        parses the body. Also raises any exception of `unpack`.
        """
        if not (self._shows_token(request.headers) or self._is_signed(request)):
            raise CredentialsRefused(_REFUSED)
        now = self.tools.clock.now()
        batches = iter(await asyncio.to_thread(self.unpack, request.body, now))
        while (received := await asyncio.to_thread(next, batches, None)) is not None:
            yield received

    def is_authentic(self, headers: Mapping[str, str]) -> bool | None:
        """Judge a request by its token.

        Returns None if the request has a signature instead, which depends on the body.
        """
        if self._shows_token(headers):
            return True
        return None if self._may_be_signed(headers) else False

    @abstractmethod
    def unpack(self, body: bytes, received_at: datetime) -> Iterable[Received]:
        """Parse the body of a request; raises `Refused` if it is invalid.

        Use `received_at` as the time of incidents without a time. The request can be hours old,
        because an intake keeps requests until the database is available.

        Returns the contents in batches, and Tocsin stores each batch in a separate transaction. A
        generator keeps only one batch in memory. This method runs in a thread, because large bodies
        take time.
        """

    def _shows_token(self, headers: Mapping[str, str]) -> bool:
        if self.settings.token is None:
            return False
        expected = self.settings.token.get_secret_value().encode()
        return hmac.compare_digest(extract_token(headers.get("Authorization", "")), expected)

    def _may_be_signed(self, headers: Mapping[str, str]) -> bool:
        """Whether the headers are those of a recent signature."""
        if self.settings.secret is None:
            return False
        if not any(map(_SIGNATURE.fullmatch, headers.get("webhook-signature", "").split())):
            return False
        return bool(headers.get("webhook-id")) and self._is_recent(
            headers.get("webhook-timestamp", "")
        )

    def _is_signed(self, request: PushRequest) -> bool:
        """Whether the request has a recent signature of https://www.standardwebhooks.com 1.0.0."""
        if self.settings.secret is None or not self._may_be_signed(request.headers):
            return False
        names = ("webhook-id", "webhook-timestamp", "webhook-signature")
        identifier, timestamp, signatures = (request.headers[name] for name in names)
        key = decode_secret(self.settings.secret.get_secret_value())
        signed = _encode_header(f"{identifier}.{timestamp}.") + request.body
        expected = base64.b64encode(hmac.digest(key, signed, hashlib.sha256))
        given = (part.removeprefix("v1,") for part in signatures.split() if part.startswith("v1,"))
        return any(hmac.compare_digest(_encode_header(one), expected) for one in given)

    def _is_recent(self, timestamp: str) -> bool:
        if not (timestamp.isascii() and timestamp.isdigit()):
            return False
        age = self.tools.clock.now().timestamp() - int(timestamp[:20])
        return abs(age) <= TOLERANCE.total_seconds()


def decode_secret(secret: str) -> bytes:
    """Decode a `whsec_` secret; raises ValueError if it is invalid."""
    expected = "use whsec_ and 24 to 64 bytes in base64"
    if not secret.startswith(_PREFIX):
        raise ValueError(expected)
    return decode_webhook_key(secret, _PREFIX, range(24, 65), expected)


def extract_token(authorization: str) -> bytes:
    """Return the bearer token or the password in a header `Authorization`, empty without one."""
    scheme, _, value = authorization.partition(" ")
    match scheme.lower():
        case "bearer":
            return _encode_header(value.strip())
        case "basic":
            return _decode_base64(value.strip()).partition(b":")[2]
    return b""


def _decode_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        return b""


def _encode_header(field: str) -> bytes:
    """Return the raw bytes of a header, which decodes invalid UTF-8 as surrogates."""
    return field.encode("utf-8", "surrogateescape")
