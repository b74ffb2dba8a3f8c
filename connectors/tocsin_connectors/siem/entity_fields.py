"""Tables of the fields that hold entities in records of a known layout, with their roles.

Only the fields in a table are read, because names and values of unknown fields can mislead: a
detector's ID looks like a file hash, and a data set's name looks like a domain.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum, auto
from functools import lru_cache
from typing import Any

from tocsin import Entity, EntityKind, find_observables, refang
from tocsin_connectors.siem.records import EntityRoles, normalize_address, parse_entities, union

_MAX_DEPTH = 32
_MAX_VALUES = 20_000
_MAX_NAME_LENGTH = 256
_MAX_VALUE_LENGTH = 4_096
_MAX_TEXT_LENGTH = 100_000


class FieldContent(StrEnum):
    """Content of a field, which decides what its values must look like."""

    ADDRESS = auto()
    """IP address, perhaps with a port."""
    HOST = auto()
    """Name or address of a machine."""
    SHORT_HOST = auto()
    """Name of a machine without a dot; with one, it may be any domain."""
    DOMAIN = auto()
    """Name in the network, with a dot; or an address."""
    NAME = auto()
    """Domain, or without a dot a host."""
    USER = auto()
    PRINCIPAL = auto()
    """User in the form of an email address; other values are IDs."""
    PROGRAM = auto()
    """Process, with its file if the value is a path."""
    FILE = auto()
    FILE_HASH = auto()
    URL = auto()
    EMAIL = auto()
    MAILBOX = auto()
    CVE = auto()
    CLOUD_RESOURCE = auto()
    TEXT = auto()
    """Text by an analyst or the author of a rule: only its defanged indicators are read."""


class FieldRole(StrEnum):
    """Role of the entities in a field."""

    NONE = auto()
    SOURCE = auto()
    TARGET = auto()


FieldsByContent = Mapping[FieldContent, Sequence[str]]


@dataclass(frozen=True, slots=True)
class TableFinds:
    """Entities in the fields of a record, and which of them are sources and targets."""

    entities: tuple[Entity, ...]
    roles: EntityRoles


class FieldTable:
    """Fields that hold entities, by full path, with content and role."""

    def __init__(
        self,
        *,
        prefix: str = "",
        sources: FieldsByContent | None = None,
        targets: FieldsByContent | None = None,
        others: FieldsByContent | None = None,
    ) -> None:
        """Declare the fields of one layout. All paths begin with `prefix`."""
        self.fields: dict[str, tuple[FieldContent, FieldRole]] = {
            f"{prefix}{path}": (content, role)
            for role, declared in (
                (FieldRole.NONE, others),
                (FieldRole.TARGET, targets),
                (FieldRole.SOURCE, sources),
            )
            for content, paths in (declared or {}).items()
            for path in paths
        }

    def __or__(self, other: FieldTable) -> FieldTable:
        """Return the fields of both tables. Where both name a field, the other has precedence."""
        table = FieldTable()
        table.fields = self.fields | other.fields
        return table

    def without(self, paths: Sequence[str]) -> FieldTable:
        """Return the table without some fields."""
        table = FieldTable()
        table.fields = {path: field for path, field in self.fields.items() if path not in paths}
        return table

    def find(self, record: Any, limit: int) -> TableFinds:
        """Return the entities in a record's fields, in the record's order, at most `limit`."""
        found: dict[FieldRole, list[tuple[Entity, ...]]] = {role: [] for role in FieldRole}
        every: list[tuple[Entity, ...]] = []
        for path, value in flatten_record(record):
            if (field := self.fields.get(path)) is not None:
                content, role = field
                parsed = parse_field(content, value)
                every.append(parsed)
                found[role].append(parsed)
        return TableFinds(
            union(every)[:limit],
            EntityRoles(union(found[FieldRole.SOURCE]), union(found[FieldRole.TARGET])),
        )


def flatten_record(record: Any) -> Iterator[tuple[str, str]]:
    """Yield the texts of a record by dotted path, in order. Lists count as their items.

    Objects may be nested, have dotted names, or both. The first 20,000 values are read.
    """
    stack: list[tuple[str, Any, int]] = [("", record, 0)]
    left = _MAX_VALUES
    while stack and left:
        path, value, depth = stack.pop()
        left -= 1
        if isinstance(value, str):
            yield path, value
        elif depth < _MAX_DEPTH and isinstance(value, dict):
            stack.extend(
                (f"{path}.{name}" if path else name, item, depth + 1)
                for name, item in reversed(value.items())
                if isinstance(name, str) and len(path) + len(name) < _MAX_NAME_LENGTH
            )
        elif depth < _MAX_DEPTH and isinstance(value, list):
            stack.extend((path, item, depth + 1) for item in reversed(value))


def parse_field(content: FieldContent, value: str) -> tuple[Entity, ...]:
    """Return the entities in the value of a field; none if it does not have the form."""
    if content is FieldContent.TEXT:
        return tuple(find_defanged(value[:_MAX_TEXT_LENGTH]))
    if len(value) > _MAX_VALUE_LENGTH:
        return ()
    return _parse_value(content, value.replace("\0", "").strip())


@lru_cache(maxsize=16_384)
def _parse_value(content: FieldContent, value: str) -> tuple[Entity, ...]:
    return tuple(_PARSERS[content](value))


def find_defanged(text: str) -> Iterator[Entity]:
    """Yield the entities that a text names defanged, such as `evil[.]example`.

    Somebody wrote these as indicators. Other names in a text may be anything, such as products,
    files of the rule, or references.
    """
    for word in text.split():
        if refang(word) != word:
            yield from find_observables(word).entities


_PORT = re.compile(r"\[?(?P<address>[0-9a-f.:%]+?)\]?:\d{1,5}", re.IGNORECASE)
_HOST = re.compile(r"[^\W_](?:[\w-]{0,61}[\w])?(?:\.[\w-]{1,63}){0,20}")
_DOMAIN = re.compile(r"(?:[\w-]{1,63}\.){1,20}(?:xn--[a-z0-9-]{2,59}|[^\W\d_]{2,63})")
_USER = re.compile(r"[^\x00-\x1f/:*?\"<>|;,=%]{1,128}")
_LOGIN_ID = re.compile(r"\(uid=\d{1,10}\)$")  # of PAM: root(uid=0)
_IDENTIFIER = re.compile(r"\{?[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\}?", re.IGNORECASE)
_PROGRAM = re.compile(r"[\w(+.-][\w.+()@ -]{0,127}")
_REGISTRY = re.compile(r"(?:\[x(?:32|64)\] ?)?(?:HKEY_|\\REGISTRY\\|HK(?:LM|CU|U|CR|CC)\\)")
_URL = re.compile(r"[a-z][a-z0-9+.-]{1,20}://[^\s/]\S*", re.IGNORECASE)


def _parse_address(value: str) -> Iterator[Entity]:
    if (found := normalize_address(value.strip("[]"))) or (
        (match := _PORT.fullmatch(value)) and (found := normalize_address(match["address"]))
    ):
        yield Entity(EntityKind.IP, found)


def _parse_host(value: str) -> Iterator[Entity]:
    found = list(_parse_address(value))
    name = value.rstrip(".").removeprefix("\\\\")
    if not found and _HOST.fullmatch(name) and not name.isdecimal():
        found = list(parse_entities(EntityKind.HOST, name))
    yield from found


def _parse_short_host(value: str) -> Iterator[Entity]:
    return iter(()) if "." in value else _parse_host(value)


def _parse_domain(value: str) -> Iterator[Entity]:
    found = list(_parse_address(value))
    name = value.rstrip(".")
    if not found and _DOMAIN.fullmatch(name):
        found = list(parse_entities(EntityKind.DOMAIN, name))
    yield from found


def _parse_name(value: str) -> Iterator[Entity]:
    return _parse_domain(value) if "." in value.rstrip(".") else _parse_host(value)


def _parse_user(value: str) -> Iterator[Entity]:
    name = _LOGIN_ID.sub("", value)
    if _USER.fullmatch(name) and not name.isdecimal() and not _IDENTIFIER.fullmatch(name):
        yield from parse_entities(EntityKind.USER, name)


def _parse_principal(value: str) -> Iterator[Entity]:
    return (
        Entity(EntityKind.USER, found.value) for found in parse_entities(EntityKind.EMAIL, value)
    )


def _parse_program(value: str) -> Iterator[Entity]:
    name = re.split(r"[\\/]", value)[-1]
    if name != value:
        yield from _parse_file(value)
    if _PROGRAM.fullmatch(name) and not name.isdecimal():
        yield from parse_entities(EntityKind.PROCESS, name)


def _parse_file(value: str) -> Iterator[Entity]:
    if not _REGISTRY.match(value) and not _URL.fullmatch(value):
        yield from parse_entities(EntityKind.FILE, value)


def _parse_url(value: str) -> Iterator[Entity]:
    if _URL.fullmatch(value):
        yield Entity(EntityKind.URL, value)


def _parser(kind: EntityKind) -> Callable[[str], Iterator[Entity]]:
    return lambda value: parse_entities(kind, value)


_PARSERS: Mapping[FieldContent, Callable[[str], Iterator[Entity]]] = {
    FieldContent.ADDRESS: _parse_address,
    FieldContent.HOST: _parse_host,
    FieldContent.SHORT_HOST: _parse_short_host,
    FieldContent.DOMAIN: _parse_domain,
    FieldContent.NAME: _parse_name,
    FieldContent.USER: _parse_user,
    FieldContent.PRINCIPAL: _parse_principal,
    FieldContent.PROGRAM: _parse_program,
    FieldContent.FILE: _parse_file,
    FieldContent.FILE_HASH: _parser(EntityKind.FILE_HASH),
    FieldContent.URL: _parse_url,
    FieldContent.EMAIL: _parser(EntityKind.EMAIL),
    FieldContent.MAILBOX: _parser(EntityKind.MAILBOX),
    FieldContent.CVE: _parser(EntityKind.CVE),
    FieldContent.CLOUD_RESOURCE: _parser(EntityKind.CLOUD_RESOURCE),
}
