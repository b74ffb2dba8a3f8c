"""Formats of API keys, client IDs and client secrets.

An API key is `<prefix><key_id>_<secret><checksum>`, a client secret `cs_live_<secret><checksum>`.
The checksum is the CRC-32 of everything before it, in base62. It detects typos before any further
work, and lets secret scanners avoid false positives.
"""

from __future__ import annotations

import re
import secrets
import string
from dataclasses import dataclass, field
from zlib import crc32

DEFAULT_PREFIX = "sk_live_"
CLIENT_SECRET_PREFIX = "cs_live_"  # noqa: S105 - a prefix
CLIENT_ID_PREFIX = "cl_"
IDENTIFIER_LENGTH = 16
SECRET_LENGTH = 43
"""Number of base62 characters for 256 bits."""
CHECKSUM_LENGTH = 6

_ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
_IDENTIFIER = rf"[0-9A-Za-z]{{{IDENTIFIER_LENGTH}}}"
_SECRET = rf"[0-9A-Za-z]{{{SECRET_LENGTH}}}"
_CHECKSUM = rf"[0-9A-Za-z]{{{CHECKSUM_LENGTH}}}"
_KEY = re.compile(rf"([0-9A-Za-z_]{{0,32}})({_IDENTIFIER})_({_SECRET}){_CHECKSUM}")
_CLIENT_ID = re.compile(CLIENT_ID_PREFIX + _IDENTIFIER)
_CLIENT_SECRET = re.compile(CLIENT_SECRET_PREFIX + _SECRET + _CHECKSUM)


@dataclass(frozen=True, slots=True)
class KeyValue:
    """Parts of an API key; only the secret is confidential."""

    prefix: str
    identifier: str
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ClientSecret:
    """ID and secret of an API client."""

    identifier: str
    secret: str = field(repr=False)


def generate_key(prefix: str = DEFAULT_PREFIX) -> tuple[KeyValue, str]:
    """Return the parts of a new key and its text, which is shown once."""
    return generate_value(prefix, _random(IDENTIFIER_LENGTH))


def generate_value(prefix: str, key_id: str) -> tuple[KeyValue, str]:
    """Return the parts and the text of a new value for the key `key_id`."""
    value = KeyValue(prefix, key_id, _random(SECRET_LENGTH))
    return value, _checked(f"{prefix}{key_id}_{value.secret}")


def parse_key(text: str) -> KeyValue | None:
    """Return the parts of an API key, None if `text` is not one; does no I/O."""
    match = _KEY.fullmatch(text)
    if match is None or not _is_checked(text):
        return None
    return KeyValue(match[1], match[2], match[3])


def generate_client_id() -> str:
    """Return the ID of a new client."""
    return CLIENT_ID_PREFIX + _random(IDENTIFIER_LENGTH)


def generate_client_secret() -> str:
    """Return a new client secret, which is shown once."""
    return _checked(CLIENT_SECRET_PREFIX + _random(SECRET_LENGTH))


def parse_client(client_id: str, secret: str) -> ClientSecret | None:
    """Return a client's credentials, None if they are malformed; does no I/O."""
    if not _CLIENT_ID.fullmatch(client_id) or not _CLIENT_SECRET.fullmatch(secret):
        return None
    return ClientSecret(client_id, secret) if _is_checked(secret) else None


def _random(length: int) -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(length))


def _checked(text: str) -> str:
    return text + _checksum(text)


def _is_checked(text: str) -> bool:
    return text.endswith(_checksum(text[:-CHECKSUM_LENGTH]))


def _checksum(text: str) -> str:
    number, digits = crc32(text.encode()), ""
    for _ in range(CHECKSUM_LENGTH):
        number, digit = divmod(number, len(_ALPHABET))
        digits = _ALPHABET[digit] + digits
    return digits
