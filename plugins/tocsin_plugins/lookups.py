"""HTTP API lookups: not-found answers, and typed access to fields."""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any

from tocsin import Api, Broken, Refused

_NOT_FOUND = 404
_LONGEST = 500
_DOMAIN = re.compile(r"(?=.{1,253}$)([\w-]{1,63}\.)+[\w-]{1,63}")


def is_address(value: str) -> bool:
    """Return whether a value is an IP address, because an entity's kind does not guarantee it."""
    try:
        ip_address(value)
    except ValueError:
        return False
    return True


def is_domain(value: str) -> bool:
    """Return whether a value is a domain name of at least two labels."""
    return bool(_DOMAIN.fullmatch(value))


async def look_up(
    api: Api, path: str, headers: Mapping[str, str], **query: Any
) -> dict[str, Any] | None:
    """Return the JSON object at a path; None if the response is 404, because nothing is known.

    Raises what `Api.request` raises, and Broken if the response is not an object.
    """
    try:
        answer = await api.request("GET", path, headers=headers, query=query)
    except Refused as error:
        if error.status == _NOT_FOUND:
            return None
        raise
    if not isinstance(answer.json, dict):
        raise Broken(f"GET {path}: the response is not an object")
    return answer.json


def text_field(record: Mapping[str, Any], key: str) -> str | None:
    """Return the text at `key`, cut at 500 characters; None if there is none."""
    value = record.get(key)
    return value.strip()[:_LONGEST] or None if isinstance(value, str) else None


def text_list(record: Mapping[str, Any], key: str, most: int = 20) -> list[str]:
    """Return the first texts of the list at `key`."""
    value = record.get(key)
    several = value if isinstance(value, list) else []
    return [item.strip()[:_LONGEST] for item in several if isinstance(item, str)][:most]


def number_field(record: Mapping[str, Any], key: str) -> int | None:
    """Return the integer at `key`, None if there is none."""
    value = record.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def object_field(record: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return the object at `key`, an empty one if there is none."""
    value = record.get(key)
    return value if isinstance(value, dict) else {}


def object_list(record: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    """Return the objects of the list at `key`."""
    value = record.get(key)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
