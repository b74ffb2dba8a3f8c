"""Paths and alterations in vendor records of any shape."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from datetime import datetime, timedelta, timezone
from typing import Any

from tocsin.model import Json

Path = tuple[str | int, ...]
Alteration = Callable[[dict[str, Any]], dict[str, Any]]

_LONGEST_FRACTION = 6  # fractional digits that a datetime supports


def unchanged(record: dict[str, Any]) -> dict[str, Any]:
    """Return the record unchanged."""
    return record


def differences(one: Json, other: Json, place: Path = ()) -> list[Path]:
    """Return the paths at which two records differ; lists of unequal length differ as a whole."""
    match one, other:
        case dict(), dict():
            keys: Iterable[str | int] = dict.fromkeys((*one, *other))
        case list(), list() if len(one) == len(other):
            keys = range(len(one))
        case _:
            return [] if one == other else [place]
    return [
        path
        for key in keys
        for path in differences(_get_member(one, key), _get_member(other, key), (*place, key))
    ]


def _get_member(content: Json, key: str | int) -> Json:
    return content.get(key) if isinstance(content, dict) else content[key]


def value_at(record: Json, path: Path) -> Json:
    """Return the value at a path, None if the record lacks it."""
    for key in path:
        try:
            record = record[key]
        except (KeyError, IndexError, TypeError):
            return None
    return record


def put_at(paths: Iterable[Path], change: Callable[[Json], Json]) -> Alteration:
    """Return a function that changes the values at some paths, if a record has them."""

    def alter(record: dict[str, Any]) -> dict[str, Any]:
        altered = deepcopy(record)
        for *way, last in paths:
            holder = value_at(altered, tuple(way))
            if _has(holder, last):
                holder[last] = change(holder[last])
        return altered

    return alter


def _has(holder: Json, key: str | int) -> bool:
    return isinstance(holder, list) or (isinstance(holder, dict) and key in holder)


def leave_out(paths: Iterable[Path]) -> Alteration:
    """Return a function that removes the values at some paths."""

    def alter(record: dict[str, Any]) -> dict[str, Any]:
        altered = deepcopy(record)
        for *way, last in paths:
            holder = value_at(altered, tuple(way))
            if isinstance(holder, dict):
                holder.pop(last, None)
        return altered

    return alter


def without_field(record: Json, path: str) -> Json:
    """Return the record without a field, by its path in a record contract."""
    if isinstance(record, list):
        return [without_field(item, path) for item in record]
    if not isinstance(record, dict):
        return record
    return {
        name: without_field(value, path[len(name) + 1 :]) if path.startswith(f"{name}.") else value
        for name, value in record.items()
        if name != path
    }


def change_texts(change: Callable[[str], str]) -> Alteration:
    """Return a function that changes every text of a record."""

    def altered(content: Json) -> Json:
        match content:
            case str():
                return change(content)
            case dict():
                return {key: altered(value) for key, value in content.items()}
            case list():
                return [altered(value) for value in content]
        return content

    return altered


def with_strangers(record: dict[str, Any]) -> dict[str, Any]:
    """Return the record with unknown members in every object."""

    def altered(content: Json) -> Json:
        match content:
            case dict():
                inner = {key: altered(value) for key, value in content.items()}
                return {**inner, "x_unheard_of": {"since": [1, None, "v2"]}}
            case list():
                return [altered(value) for value in content]
        return content

    result: dict[str, Any] = altered(record)
    return result


def iter_paths(content: Json, place: Path = ()) -> Iterator[Path]:
    """Yield the path of every member of a record's objects."""
    match content:
        case dict():
            members: Iterable[tuple[str | int, Json]] = content.items()
        case list():
            members = enumerate(content)
        case _:
            return
    for key, value in members:
        if isinstance(key, str):
            yield (*place, key)
        yield from iter_paths(value, (*place, key))


def iter_texts(content: Json) -> Iterator[str]:
    """Yield every text of a record."""
    match content:
        case str():
            yield content
        case dict():
            for value in content.values():
                yield from iter_texts(value)
        case list():
            for value in content:
                yield from iter_texts(value)


def parse_moment(text: str) -> datetime | None:
    """Return the ISO 8601 time of a text, None if it is none."""
    if len(text) < len("2026-01-01T00:00") or "T" not in text:
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def parse_number(value: Json) -> float | None:
    """Return a number, or the number that a text spells; None for any other value."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        return float(value)
    except ValueError:
        return None


def with_digits(digits: int) -> Callable[[str], str]:
    """Return a function that writes times with this many fractional digits."""

    def change(text: str) -> str:
        moment = parse_moment(text)
        if moment is None:
            return text
        exact = moment.isoformat(timespec="microseconds")
        place = exact.index(".") + 1 + _LONGEST_FRACTION
        return exact[:place] + "9" * (digits - _LONGEST_FRACTION) + exact[place:]

    return change


def with_offset(offset: timedelta) -> Callable[[str], str]:
    """Return a function that writes times with this UTC offset."""

    def change(text: str) -> str:
        moment = parse_moment(text)
        return text if moment is None else moment.astimezone(timezone(offset)).isoformat()

    return change


def without_zone(text: str) -> str:
    """Return a time without its time zone."""
    moment = parse_moment(text)
    return text if moment is None else moment.replace(tzinfo=None).isoformat()
