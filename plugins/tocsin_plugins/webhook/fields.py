"""Field types of the webhook settings."""

from __future__ import annotations

import re
from typing import Annotated
from urllib.parse import SplitResult, urlsplit

from pydantic import AfterValidator, SecretStr

from tocsin_plugins.webhook.signing import MIN_SECRET_LENGTH, Ed25519Signer, SharedSecret

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110 section 5.6.2
# headers that the client sets, and connection headers (RFC 9110 section 7.6.1)
_OURS = (
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
)


def split_url(url: str) -> SplitResult:
    """Return the parts of `url`; ValueError if the URL is not absolute or is misleading."""
    parts = _split(url)
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("use an absolute URL, such as https://soar.example.com/hooks/tocsin")
    if "@" in parts.netloc:
        raise ValueError(
            "remove the username and password from the URL; receivers verify the signature"
        )
    if "#" in url:
        raise ValueError("remove the fragment (#...) from the URL, because it is never sent")
    if not url.isprintable() or " " in url or "\\" in url:
        raise ValueError("remove spaces, control characters and backslashes from the URL")
    return parts


def _split(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:  # not shown: it quotes the URL, which may be a secret
        return None
    return None if port == 0 else parts


def _url(value: str) -> str:
    split_url(value)
    return value


def _secret_url(value: SecretStr) -> SecretStr:
    split_url(value.get_secret_value())
    return value


def _secret(value: SecretStr) -> SecretStr:
    SharedSecret.decode(value.get_secret_value())
    return value


def _key(value: SecretStr) -> SecretStr:
    Ed25519Signer.decode(value.get_secret_value())
    return value


def _headers(value: dict[str, SecretStr]) -> dict[str, SecretStr]:
    for name, content in value.items():
        _check_header(name, content.get_secret_value())
    return value


def _body_secrets(value: dict[str, SecretStr]) -> dict[str, SecretStr]:
    if any(len(text.get_secret_value()) < MIN_SECRET_LENGTH for text in value.values()):
        raise ValueError(f"use at least {MIN_SECRET_LENGTH} characters for each secret")
    return value


def _check_header(name: str, content: str) -> None:
    if not _TOKEN.fullmatch(name):
        raise ValueError(f"{name!r} is not a valid header name")
    if name.lower() in _OURS or name.lower().startswith(("webhook-", "tocsin-")):
        raise ValueError(f"Tocsin sets the header {name} itself; remove it")
    if not (content.isascii() and content.isprintable()):
        raise ValueError(f"the header {name} must contain only printable ASCII characters")


Url = Annotated[str, AfterValidator(_url)]
"""An absolute http or https URL."""

SecretUrl = Annotated[SecretStr, AfterValidator(_secret_url)]
"""An absolute http or https URL that is a secret."""

SecretText = Annotated[SecretStr, AfterValidator(_secret)]
"""Text that `SharedSecret` decodes."""

KeyText = Annotated[SecretStr, AfterValidator(_key)]
"""Text that `Ed25519Signer` decodes."""

Headers = Annotated[dict[str, SecretStr], AfterValidator(_headers)]
"""Valid headers that Tocsin does not set itself."""

BodySecrets = Annotated[dict[str, SecretStr], AfterValidator(_body_secrets)]
"""Secret members of a body, by name."""
