"""Secrets in request bodies, and their removal from stored responses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from urllib.parse import SplitResult

import orjson
from pydantic import SecretStr

from tocsin import HttpResponse, Misconfigured

_HIDDEN = b"[secret]"
MIN_SECRET_LENGTH = 8
"""Minimum length of a secret; a shorter one is not distinct from other text in a response."""


def insert_secrets(body: bytes, secrets: Mapping[str, SecretStr]) -> bytes:
    """Return `body` with these members, replacing those of the same names.

    Raises `Misconfigured` if there are secrets and the body is not a JSON object.
    """
    if not secrets:
        return body
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        document = None
    if not isinstance(document, dict):
        raise Misconfigured("body_secrets needs a template whose output is a JSON object")
    return orjson.dumps(document | {it: text.get_secret_value() for it, text in secrets.items()})


def list_secret_parts(parts: SplitResult) -> list[str]:
    """Return the parts of a URL that may be secret: its path, and its query values."""
    values = (pair.partition("=")[2] for pair in parts.query.split("&"))
    return [value for value in (parts.path, *values) if len(value) >= MIN_SECRET_LENGTH]


def redact_secrets(response: HttpResponse, secrets: Iterable[str]) -> HttpResponse:
    """Return the response, which is stored and shown, without these secrets."""
    body = response.body
    for secret in secrets:
        body = body.replace(secret.encode(), _HIDDEN)
    return replace(response, body=body)
