"""Typed access to the values of records, of which any field may have any type."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from ipaddress import ip_address
from itertools import chain
from typing import Any, TypeVar

from tocsin import Broken, Entity, EntityKind

MAX_TEXT_LENGTH = 4096

T = TypeVar("T", bound=Hashable)


def text(record: dict[str, Any], key: str) -> str | None:
    """Return the text at `key`, truncated to 4,096 characters, or None."""
    value = record.get(key)
    # Not every database can store NUL characters.
    return (
        value.replace("\0", "").strip()[:MAX_TEXT_LENGTH] or None
        if isinstance(value, str)
        else None
    )


def texts(record: dict[str, Any], key: str) -> list[str]:
    """Return the texts at `key`, which holds one or a list of them."""
    value = record.get(key)
    values = value if isinstance(value, list) else [value]
    return [found for item in values if (found := text({"": item}, ""))]


def number(record: dict[str, Any], key: str) -> int | None:
    """Return the whole number at `key`, or None."""
    value = record.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def child(record: dict[str, Any], key: str) -> dict[str, Any]:
    """Return the object at `key`, or an empty one."""
    value = record.get(key)
    return value if isinstance(value, dict) else {}


def children(record: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """Return the objects at `key`, which holds one or a list of them."""
    value = record.get(key)
    return [
        item for item in (value if isinstance(value, list) else [value]) if isinstance(item, dict)
    ]


def select_fields(record: dict[str, Any], places: Iterable[str]) -> dict[str, str | int]:
    """Return the texts and whole numbers at paths such as `tls.sni`, by path."""
    found = ((place, _get_scalar(record, place)) for place in places)
    return {place: value for place, value in found if value is not None}


def _get_scalar(record: dict[str, Any], place: str) -> str | int | None:
    *way, last = place.split(".")
    for key in way:
        record = child(record, key)
    return text(record, last) or number(record, last)


def describe_value(value: object) -> str:
    """Describe an unexpected value: missing, or what it is."""
    return "missing" if value is None else f"of the wrong type: {value!r:.60}"


def parse_utc(value: str) -> datetime:
    """Parse an ISO 8601 time, and return it in UTC. Raises ValueError without a time zone."""
    try:
        moment = _parse_iso(value)
        if moment.tzinfo is None:
            raise ValueError(f"the time {value!r} has no time zone")
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError(f"the time {value!r} is out of range") from error


def _parse_iso(value: str) -> datetime:
    try:
        return datetime.fromisoformat(value.upper())  # RFC 3339 has t and z as well
    except ValueError:
        raise ValueError(f"the time {value!r:.60} is not in ISO 8601 format") from None


def union(groups: Iterable[Iterable[T]]) -> tuple[T, ...]:
    """Return the distinct items of all groups, in order."""
    return tuple(dict.fromkeys(chain.from_iterable(groups)))


@lru_cache(maxsize=65_536)
def normalize_address(value: str) -> str | None:
    """Return an IP address in canonical form, or None if the value is not an address."""
    try:
        return str(ip_address(value))
    except ValueError:
        return None


def parse_host(value: str, kind: EntityKind) -> Iterator[Entity]:
    """Yield the entity that a host name stands for: an address, or else a `kind`.

    An empty name yields nothing.
    """
    name = value.removeprefix("[").removesuffix("]")
    if found := normalize_address(name):
        yield Entity(EntityKind.IP, found)
    elif name and kind is not EntityKind.IP and not any(character.isspace() for character in name):
        yield Entity(kind, name)


def texts_at(record: dict[str, Any], place: str) -> list[str]:
    """Return the texts at a path such as `network.dns.questions.name`, including in lists."""
    first, _, rest = place.partition(".")
    if not rest:
        return texts(record, first)
    return [value for item in children(record, first) for value in texts_at(item, rest)]


def get_page_token(record: Mapping[str, Any], member: str) -> str | None:
    """Return the page token at a member, unchanged, or None.

    Raises `Broken` for an invalid token, which would otherwise end the pages too early.
    """
    token = record.get(member)
    if token is None or isinstance(token, str):
        return token or None
    raise Broken(f"invalid page token in `{member}`: {token!r:.60}")
