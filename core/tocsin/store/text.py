"""Text and JSON in the form that both databases store."""

from __future__ import annotations

import hashlib
from typing import Any, overload

import orjson

_DIGEST = 64


@overload
def clean_text(text: str, limit: int) -> str: ...
@overload
def clean_text(text: None, limit: int) -> None: ...
def clean_text(text: str | None, limit: int) -> str | None:
    """Return the text truncated to `limit` characters, without NUL and lone surrogates."""
    if text is None:
        return None
    if len(text) <= limit and text.isascii() and "\0" not in text:
        return text
    text = text if len(text) <= limit else text[: limit - 1] + "…"
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode()


def clean_identifier(text: str, limit: int) -> str:
    """Clean an identifier so that different long identifiers stay different."""
    if len(text) <= limit:
        return clean_text(text, limit)
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return clean_text(text[: limit - _DIGEST - 1], limit) + "…" + digest


def dump_json(value: Any) -> str:
    """Return `value` as JSON text."""
    return orjson.dumps(value).decode()


def load_json(text: str | bytes) -> Any:
    """Parse JSON text."""
    return orjson.loads(text)
