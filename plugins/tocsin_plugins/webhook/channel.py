"""A destination that takes signed HTTP POSTs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Self
from urllib.parse import SplitResult, urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator

from tocsin import Channel, Delivery, Health, HttpResponse, Receipt, Refused, TryLater
from tocsin_plugins.webhook.signing import decode_secret, signature_headers

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110 section 5.6.2
_OURS = ("content-type", "content-length", "host", "connection", "transfer-encoding")
_SECONDS = re.compile(r"[0-9]+")
_LONGEST_DELAY = timedelta(hours=24)


class Webhook(Channel):
    """Posts each event, signed with a shared secret, and takes any 2xx answer for a receipt."""

    class Settings(Channel.Settings):
        """What a webhook destination can be told."""

        url: str = Field(description="Where to post to; plain http:// only with allow_networks.")
        secret: SecretStr = Field(description="Signs every delivery: whsec_ and base64.")
        previous_secret: SecretStr | None = Field(
            default=None, description="Signs as well, until receivers have changed to `secret`."
        )
        headers: dict[str, SecretStr] = Field(
            default_factory=dict,
            description="More headers to send; secrets among them as references.",
        )

        @field_validator("url")
        @classmethod
        def _absolute(cls, value: str) -> str:
            _split(value)
            return value

        @field_validator("secret", "previous_secret")
        @classmethod
        def _key(cls, value: SecretStr | None) -> SecretStr | None:
            if value is not None:
                decode_secret(value.get_secret_value())
            return value

        @field_validator("headers")
        @classmethod
        def _sendable(cls, value: dict[str, SecretStr]) -> dict[str, SecretStr]:
            for name, content in value.items():
                _check_header(name, content.get_secret_value())
            return value

        @model_validator(mode="after")
        def _plain_only_inside(self) -> Self:
            if _split(self.url).scheme == "http" and not self.allow_networks:
                raise ValueError(
                    "give an https:// url, or name in allow_networks the private network "
                    "that this http:// url leads to"
                )
            return self

    settings: Settings

    async def check(self) -> Health:
        """Return what the settings tell: no request exists that a receiver has to answer."""
        parts = _split(self.settings.url)
        problems: tuple[str, ...] = ()
        try:
            self.tools.http.check_url(self.settings.url)
        except Refused as refused:
            problems = (f"url: {refused}",)
        bits = 8 * len(self._keys()[0])
        return Health(
            detail=f"{parts.scheme} to {parts.hostname}, signed with a secret of {bits} bits; "
            "nothing was sent, since a webhook has no harmless request",
            problems=problems,
        )

    async def deliver(self, delivery: Delivery) -> Receipt:
        """Post the event, and return the answer if its status is 2xx.

        Raises `Refused` for 410 Gone and `TryLater` for every other status, redirects included.
        """
        body = delivery.render("body")
        response = await self.tools.http.request(
            "POST",
            self.settings.url,
            headers=self._headers(delivery.event.id, body),
            content=body,
            timeout=self.settings.timeout,
        )
        if HTTPStatus.OK <= response.status < HTTPStatus.MULTIPLE_CHOICES:
            return Receipt(status=response.status, response=response.body)
        raise self._failure(response)

    def _headers(self, event_id: str, body: bytes) -> dict[str, str]:
        signature = signature_headers(self._keys(), event_id, self.tools.clock.now(), body)
        more = {name: text.get_secret_value() for name, text in self.settings.headers.items()}
        return {**more, "content-type": "application/json", **signature}

    def _keys(self) -> list[bytes]:
        secrets = (self.settings.secret, self.settings.previous_secret)
        return [decode_secret(secret.get_secret_value()) for secret in secrets if secret]

    def _failure(self, response: HttpResponse) -> TryLater | Refused:
        answer = f"the receiver answered {response.status}"
        if response.status == HTTPStatus.GONE:
            return Refused(
                f"{answer} Gone: it wants no more deliveries", status=410, response=response.body
            )
        return TryLater(
            answer,
            after=retry_after(response.headers, self.tools.clock.now()),
            status=response.status,
            response=response.body,
        )


def _split(url: str) -> SplitResult:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0:
        raise ValueError("give an absolute URL, such as https://soar.example.com/hooks/tocsin")
    if "@" in parts.netloc:
        raise ValueError("a url holds no user name or password; receivers verify the signature")
    if "#" in url:
        raise ValueError("a url has no fragment (#...); it would never be sent")
    if not url.isprintable() or " " in url or "\\" in url:
        raise ValueError("a url holds no spaces, control characters or backslashes")
    return parts


def _check_header(name: str, content: str) -> None:
    if not _TOKEN.fullmatch(name):
        raise ValueError(f"{name!r} is not a header name")
    if name.lower() in _OURS or name.lower().startswith("webhook-"):
        raise ValueError(f"the header {name} is set by Tocsin")
    if not (content.isascii() and content.isprintable()):
        raise ValueError(f"the header {name} holds something else than printable ASCII characters")


def retry_after(headers: Mapping[str, str], now: datetime) -> timedelta | None:
    """Return how long the receiver asks to wait, 24 hours at most; None if it does not say.

    RFC 9110 section 10.2.3: a number of seconds, or a date. A date that has passed says nothing.
    """
    value = headers.get("Retry-After", "").strip()
    try:
        delay = _seconds(value) if _SECONDS.fullmatch(value) else _date(value) - now
    except (ValueError, OverflowError):  # no date, or one that no calendar holds
        return None
    return min(delay, _LONGEST_DELAY) if delay > timedelta(0) else None


def _seconds(digits: str) -> timedelta:
    # Six digits are more than the longest delay, so that no more need to be read.
    return timedelta(seconds=int(digits.lstrip("0")[:6] or 0))


def _date(value: str) -> datetime:
    date = parsedate_to_datetime(value)
    return date if date.tzinfo else date.replace(tzinfo=UTC)
