"""The shape of an API key: `<prefix><key_id>_<secret><checksum>`.

The checksum is the CRC-32 of everything before it, in base62. It catches typing errors before any
work is done for them, and lets a secret scanner be sure of what it found.
"""

from __future__ import annotations

import re
import secrets
import string
from dataclasses import dataclass, field
from zlib import crc32

DEFAULT_PREFIX = "sk_live_"
KEY_ID_LENGTH = 16
SECRET_LENGTH = 43
"""As many base62 characters as hold 256 bits."""
CHECKSUM_LENGTH = 6

_ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
_BODY = re.compile(
    rf"([0-9A-Za-z]{{{KEY_ID_LENGTH}}})_([0-9A-Za-z]{{{SECRET_LENGTH}}})"
    rf"[0-9A-Za-z]{{{CHECKSUM_LENGTH}}}"
)
_BODY_LENGTH = KEY_ID_LENGTH + 1 + SECRET_LENGTH + CHECKSUM_LENGTH


@dataclass(frozen=True, slots=True)
class KeyValue:
    """An API key's two parts: the identifier, which is public, and the secret, which is not."""

    key_id: str
    secret: str = field(repr=False)


def generate(prefix: str = DEFAULT_PREFIX) -> tuple[KeyValue, str]:
    """Return a new key's parts, and its text, which is shown once."""
    value = KeyValue(_random(KEY_ID_LENGTH), _random(SECRET_LENGTH))
    unchecked = f"{prefix}{value.key_id}_{value.secret}"
    return value, unchecked + _checksum(unchecked)


def parse(text: str, prefix: str = DEFAULT_PREFIX) -> KeyValue | None:
    """Return the parts of an API key, or None where `text` is not one; does no I/O."""
    if len(text) != len(prefix) + _BODY_LENGTH or not text.startswith(prefix):
        return None
    match = _BODY.fullmatch(text, len(prefix))
    if match is None or not text.endswith(_checksum(text[:-CHECKSUM_LENGTH])):
        return None
    return KeyValue(match[1], match[2])


def _random(length: int) -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(length))


def _checksum(text: str) -> str:
    number, digits = crc32(text.encode()), ""
    for _ in range(CHECKSUM_LENGTH):
        number, digit = divmod(number, len(_ALPHABET))
        digits = _ALPHABET[digit] + digits
    return digits
