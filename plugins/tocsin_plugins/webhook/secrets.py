"""Secrets on their way: into the body that is sent, and out of what is kept of the answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from urllib.parse import SplitResult

import orjson
from pydantic import SecretStr

from tocsin import HttpResponse, Misconfigured

_HIDDEN = b"[secret]"
MIN_SECRET_LENGTH = 8
"""Characters of a secret at least: a shorter one could not be told from other text of an answer."""


def insert_secrets(body: bytes, secrets: Mapping[str, SecretStr]) -> bytes:
    """Return `body` with these members in it, in place of those that it has by these names.

    Raises `Misconfigured` where there are some, and the body is no JSON object.
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
    """Return what may be secret of a URL: its path, and the values of its query."""
    values = (pair.partition("=")[2] for pair in parts.query.split("&"))
    return [value for value in (parts.path, *values) if len(value) >= MIN_SECRET_LENGTH]


def redact_secrets(response: HttpResponse, secrets: Iterable[str]) -> HttpResponse:
    """Return the answer, which is kept and shown, without any of these that it repeats."""
    body = response.body
    for secret in secrets:
        body = body.replace(secret.encode(), _HIDDEN)
    return replace(response, body=body)
