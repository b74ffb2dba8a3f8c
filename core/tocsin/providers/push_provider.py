"""Base class for providers that receive pushed incidents."""

from __future__ import annotations

import asyncio
import base64
import hmac
from abc import abstractmethod
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Self

from pydantic import Field, SecretStr, field_validator, model_validator
from typing_extensions import TypeVar

from tocsin.errors import CredentialsRefused
from tocsin.hookspecs import Provider, PushRequest
from tocsin.model import Page, Received
from tocsin.webhook_signatures import (
    decode_webhook_secret,
    encode_header,
    require_signature_headers,
    require_standard_signature,
)

_SHORTEST_TOKEN = 16
_REFUSED = "invalid push credentials for this provider"


S = TypeVar("S", bound="PushProvider.Settings", default=Any)


class PushProvider(Provider[S]):
    """Base class for providers that receive pushed incidents; implement `unpack`.

    A signature is valid for five minutes before and after its timestamp. During these ten minutes,
    an attacker can replay an intercepted request. The replay does not create a second incident,
    because Tocsin identifies incidents by their IDs.
    """

    class Settings(Provider.Settings):
        """Settings shared by all push providers: a token, a secret or both."""

        token: SecretStr | None = Field(
            default=None,
            description="The token that senders use, with at least 16 characters. Senders send the "
            "token as `Authorization: Bearer <token>` or as the password in `Authorization: "
            "Basic`.",
        )
        secret: SecretStr | None = Field(
            default=None,
            description="The secret with which senders sign requests (Standard Webhooks 1.0.0): "
            "`whsec_` followed by base64.",
        )

        max_body_mib: int = Field(
            default=16, ge=1, le=64, description="The maximum size of a request body, in MiB."
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
                decode_webhook_secret(value.get_secret_value())
            return value

        @model_validator(mode="after")
        def _has_either(self) -> Self:
            if self.token is None and self.secret is None:
                raise ValueError("set a token or a secret; push requires one of them")
            return self

    def streams(self) -> Sequence[str]:
        """Return no streams, because a push provider does not read anything."""
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
        """Authenticate a request and yield its incidents.

        Raises `CredentialsRefused` before the body is parsed if neither the token nor the signature
        is valid. Exceptions from `unpack` propagate.
        """
        if not (self._shows_token(request.headers) or self._is_signed(request)):
            raise CredentialsRefused(_REFUSED)
        now = self.tools.clock.now()
        batches = iter(await asyncio.to_thread(self.unpack, request.body, now))
        while (received := await asyncio.to_thread(next, batches, None)) is not None:
            yield received

    def is_authentic(self, headers: Mapping[str, str]) -> bool | None:
        """Authenticate a request by its token.

        Returns None if the request has a signature instead of a token, because verifying a
        signature requires the body.
        """
        if self._shows_token(headers):
            return True
        return None if self._may_be_signed(headers) else False

    @abstractmethod
    def unpack(self, body: bytes, received_at: datetime) -> Iterable[Received]:
        """Parse a request body; raises `Refused` if it is invalid.

        For incidents without a time, use `received_at`. The request can be hours old, because an
        intake can keep requests until the database is available.

        Returns the contents in batches. Tocsin stores each batch in a separate transaction. If you
        return a generator, only one batch is in memory at a time. This method runs in a thread,
        because large bodies take time to parse.
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
        try:
            require_signature_headers(headers, self.tools.clock.now())
        except CredentialsRefused:
            return False
        return True

    def _is_signed(self, request: PushRequest) -> bool:
        if self.settings.secret is None:
            return False
        key = decode_webhook_secret(self.settings.secret.get_secret_value())
        try:
            require_standard_signature(request, key, self.tools.clock.now())
        except CredentialsRefused:
            return False
        return True


def extract_token(authorization: str) -> bytes:
    """Return the bearer token or the password in a header `Authorization`, empty without one."""
    scheme, _, value = authorization.partition(" ")
    match scheme.lower():
        case "bearer":
            return encode_header(value.strip())
        case "basic":
            return _decode_base64(value.strip()).partition(b":")[2]
    return b""


def _decode_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        return b""
