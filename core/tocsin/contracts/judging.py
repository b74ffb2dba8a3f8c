"""Holding a rendered body against the contract of its receiver."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from tocsin.model import Contract

if TYPE_CHECKING:
    from jsonschema import ValidationError

_MOST = 20
_SHOWN = 200


def find_breaches(contract: Contract, body: bytes) -> list[str]:
    """Return in what a body is not what the receiver takes, each with its place; nothing if it is.

    So many at most. A body that is no JSON is one of them.
    """
    from jsonschema import Draft202012Validator  # which takes its time to be imported

    breaches = []
    if len(body) > contract.largest:
        breaches.append(f"it has {len(body):,} bytes; {contract.name} takes {contract.largest:,}")
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        return [*breaches, f"it is not JSON: {error}"]
    found = Draft202012Validator(contract.body).iter_errors(document)
    errors = sorted(found, key=lambda it: list(map(str, it.absolute_path)))
    return [*breaches, *map(_words, errors[:_MOST])]


def _words(error: ValidationError) -> str:
    place = "/".join(map(str, error.absolute_path)) or "the body"
    return f"{place}: {error.message[:_SHOWN]}"
