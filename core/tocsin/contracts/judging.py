"""Holding what was rendered against the contract of its receiver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import orjson

from tocsin.model import Contract

if TYPE_CHECKING:
    from jsonschema import ValidationError

BODY = "body"
"""The part that is JSON."""
_MOST = 20
_SHOWN = 200


def find_breaches(contract: Contract, content: bytes, part: str = BODY) -> list[str]:
    """Return in what a part is not what the receiver takes, each with its place; nothing if it is.

    So many at most. A body that is no JSON is one of them; any other part has to say something.
    """
    breaches = []
    if len(content) > contract.largest:
        size = f"{len(content):,} bytes"
        breaches.append(f"it has {size}; {contract.name} takes {contract.largest:,}")
    if part == BODY:
        return breaches + _find_schema_breaches(contract, content)
    return breaches if content.strip() else ["it is empty"]


def find_all_breaches(contract: Contract, parts: Mapping[str, bytes]) -> list[str]:
    """Return in what any of the parts is not what the receiver takes, with the part's name."""
    return [
        breach if part == BODY else f"{part}: {breach}"
        for part, content in parts.items()
        for breach in find_breaches(contract, content, part)
    ]


def _find_schema_breaches(contract: Contract, body: bytes) -> list[str]:
    from jsonschema import Draft202012Validator  # which takes its time to be imported

    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        return [f"it is not JSON: {error}"]
    found = Draft202012Validator(contract.body).iter_errors(document)
    errors = sorted(found, key=lambda it: list(map(str, it.absolute_path)))
    return list(map(_format_breach, errors[:_MOST]))


def _format_breach(error: ValidationError) -> str:
    place = "/".join(map(str, error.absolute_path)) or "the body"
    return f"{place}: {_shorten_message(error.message)}"


def _shorten_message(message: str) -> str:
    """Return a message with the middle left out: what was found comes first, what is wrong last."""
    if len(message) <= _SHOWN:
        return message
    return f"{message[: _SHOWN // 2]} … {message[-_SHOWN // 2 :]}"
