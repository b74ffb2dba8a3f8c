"""Values, entities, roles, network flows and techniques in records; any field may have any type."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from ipaddress import ip_address
from itertools import chain
from typing import Any, NamedTuple, TypeVar

from tocsin import (
    Entity,
    EntityKind,
    NetworkFlow,
    Relation,
    RelationType,
    parse_tactics,
    values_at,
)

MAX_TEXT_LENGTH = 4096
_PORT_DIGITS = 5

_PLACEHOLDERS = frozenset(
    {"-", "?", "unknown", "n/a", "na", "nil", "none", "null", "(null)", "undefined", "unassigned"}
)
"""Placeholders that SIEMs write for missing values."""
_OWN_NAMES = frozenset(
    {
        *("localhost", "localhost.localdomain", "localhost.local"),
        *("localhost4", "localhost4.localdomain4", "localhost6", "localhost6.localdomain6"),
        *("ip6-localhost", "ip6-loopback"),
    }
)
"""Names by which every machine calls itself, which would link unrelated incidents."""
_FORMS = {
    EntityKind.CVE: re.compile(r"CVE[-_]\d{4}[-_]\d{4,}", re.IGNORECASE),
    EntityKind.EMAIL: re.compile(r"[^\s<>\",;:@]{1,64}@[\w.-]{1,255}"),
    EntityKind.MAILBOX: re.compile(r"[^\s<>\",;:@]{1,64}@[\w.-]{1,255}"),
    EntityKind.FILE_HASH: re.compile(
        r"(?<![0-9a-z])(?<!IMPHASH=)(?!0+(?![0-9a-z]))"
        r"(?:[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64}|[0-9a-f]{96}|[0-9a-f]{128})(?![0-9a-z])",
        re.IGNORECASE,
    ),
}
"""Patterns of values. All matches count: `MD5=...,SHA256=...` is two hashes.

The hash of a program's imports (`IMPHASH`) names no file, and zeros stand for a missing hash."""
_HOST_KINDS = frozenset({EntityKind.IP, EntityKind.HOST, EntityKind.DOMAIN})
_TECHNIQUE_ID = re.compile(r"T\d{4}(?:\.\d{3})?")

_DOCUMENT_SOURCES: Mapping[EntityKind, Sequence[str]] = {
    EntityKind.IP: (
        *("source.ip", "client.ip", "src_ip", "srcip", "SourceIp", "sourceIPAddress", "src_addr"),
        *("client_ip", "clientip", "remote_ip", "id.orig_h"),
    ),
    EntityKind.EMAIL: ("email.from.address", "email.sender.address"),
}
_DOCUMENT_TARGETS: Mapping[EntityKind, Sequence[str]] = {
    EntityKind.IP: (
        *("destination.ip", "server.ip", "dest_ip", "dstip", "dst_ip", "DestinationIp"),
        *("dst_addr", "id.resp_h"),
    ),
    EntityKind.USER: ("user.target.name", "TargetUserName"),
    EntityKind.EMAIL: ("email.to.address", "email.cc.address"),
}
_MACHINE: Mapping[EntityKind, Sequence[str]] = {
    EntityKind.HOST: ("host.name", "host.hostname", "Computer")
}
_PROGRAMS = ("process.name", "process.executable", "process.pid", "process.entity_id", "Image")

T = TypeVar("T", bound=Hashable)


def text(record: dict[str, Any], key: str) -> str | None:
    """Return the text at `key`, truncated to 4,096 characters, or None."""
    return _clean(record.get(key))


def _clean(value: Any) -> str | None:
    # Not every database can store NUL characters.
    return (
        value.replace("\0", "").strip()[:MAX_TEXT_LENGTH] or None
        if isinstance(value, str)
        else None
    )


def texts(record: dict[str, Any], key: str) -> list[str]:
    """Return the texts at `key`, which holds one or a list of them."""
    value = record.get(key)
    if value is None:
        return []
    values = value if isinstance(value, list) else [value]
    return [found for item in values if (found := _clean(item))]


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


def select_fields(record: dict[str, Any], paths: Iterable[str]) -> dict[str, str | int]:
    """Return the texts and whole numbers at paths such as `tls.sni`, by path."""
    holders = ((path, {"": value_at(record, path)}) for path in paths)
    found = ((path, text(holder, "") or number(holder, "")) for path, holder in holders)
    return {path: value for path, value in found if value is not None}


def describe_value(value: object) -> str:
    """Describe an unexpected value: missing, or what it is."""
    return "missing" if value is None else f"of the wrong type: {value!r:.60}"


def require_text(record: dict[str, Any], key: str) -> str:
    """Return the text at `key`; raises ValueError, with what is there, without one."""
    found = text(record, key)
    if found is None:
        raise ValueError(f"{key} is {describe_value(record.get(key))}")
    return found


def parse_utc(value: str) -> datetime:
    """Parse an ISO 8601 time, and return it in UTC. Raises ValueError without a time zone."""
    try:
        moment = _parse_iso(value)
        if moment.tzinfo is None:
            raise ValueError(f"the time {value!r} has no time zone")
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError(f"the time {value!r} is out of range") from error


def parse_optional_time(record: dict[str, Any], key: str) -> datetime | None:
    """Return the ISO 8601 time at `key` in UTC; None if it is missing or invalid."""
    with suppress(ValueError):
        if value := text(record, key):
            return parse_utc(value)
    return None


def _parse_iso(value: str) -> datetime:
    try:
        return datetime.fromisoformat(value.upper())  # RFC 3339 has t and z as well
    except ValueError:
        raise ValueError(f"the time {value!r:.60} is not in ISO 8601 format") from None


def union(groups: Iterable[Iterable[T]]) -> tuple[T, ...]:
    """Return the distinct items of all groups, in order."""
    return tuple(dict.fromkeys(chain.from_iterable(groups)))


def value_at(record: Any, path: str) -> Any:
    """Return the value at a path such as `source.ip`, or None. Lists are not entered."""
    return next(values_at(record, path, enter_lists=False), None)


def text_at(record: Any, *paths: str) -> str | None:
    """Return the first text or number, as text, at one of several paths."""
    for path in paths:
        for value in scalars(value_at(record, path)):
            if found := str(value).replace("\0", "").strip():
                return found[:MAX_TEXT_LENGTH]
    return None


def texts_at(record: Any, path: str) -> list[str]:
    """Return the texts at a path such as `network.dns.questions.name`, including in lists."""
    return [found for value in values_at(record, path) if (found := _clean(value))]


def scalars(value: Any) -> Iterator[str | int]:
    """Yield the texts and numbers in a value or a list."""
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, str | int) and not isinstance(item, bool):
            yield item


def format_milliseconds(moment: datetime) -> str:
    """Format a time for searches (RFC 3339): in UTC, truncated to milliseconds."""
    return f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"


def quote_phrase(value: str) -> str:
    """Return a value as a phrase of a query, in which nothing but its end has a meaning."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


@lru_cache(maxsize=65_536)
def normalize_address(value: str) -> str | None:
    """Return an IP address in canonical form, or None if the value is not an address."""
    try:
        return str(ip_address(value))
    except ValueError:
        return None


def parse_host(value: str, kind: EntityKind) -> Iterator[Entity]:
    """Yield the entity that a host name stands for: an address, or else a `kind`.

    An empty name yields nothing, nor does one that every machine has, such as `localhost`.
    """
    name = value.removeprefix("[").removesuffix("]")
    if name.casefold().rstrip(".") in _OWN_NAMES:
        return
    if found := normalize_address(name):
        yield Entity(EntityKind.IP, found)
    elif name and kind is not EntityKind.IP and not any(character.isspace() for character in name):
        yield Entity(kind, name)


def parse_entities(kind: EntityKind, value: str) -> Iterator[Entity]:
    """Yield the entities in a value. A host or a domain may turn out to be an address.

    Values that do not fit the kind, and placeholders such as `unknown` or `-`, yield nothing.
    """
    value = value.strip()
    if value.casefold() in _PLACEHOLDERS:
        return
    if kind in _HOST_KINDS:
        yield from parse_host(value, kind)
    elif form := _FORMS.get(kind):
        yield from (Entity(kind, match[0]) for match in form.finditer(value))
    elif value:
        yield Entity(kind, value)


def contains_entity(entity: Entity, entities: Iterable[Entity]) -> bool:
    """Return whether entities contain an entity, ignoring case, as searches do."""
    value = entity.value.casefold()
    return any(other.kind is entity.kind and other.value.casefold() == value for other in entities)


def relate(
    sources: Iterable[Entity], kind: RelationType, targets: Iterable[Entity], at: datetime
) -> Iterator[Relation]:
    """Yield a relation from each source to each target."""
    others = tuple(targets)
    for source in sources:
        for target in others:
            if source != target:
                yield Relation(source=source, type=kind, target=target, at=at)


class EntityRoles(NamedTuple):
    """The entities that a record names as source and as target of its activity."""

    sources: tuple[Entity, ...] = ()
    targets: tuple[Entity, ...] = ()

    @classmethod
    def merge(cls, roles: Iterable[EntityRoles]) -> EntityRoles:
        """Return the roles of several records together."""
        every = list(roles)
        return cls(union(one.sources for one in every), union(one.targets for one in every))


def find_field_roles(
    record: Any,
    sources: Mapping[EntityKind, Sequence[str]],
    targets: Mapping[EntityKind, Sequence[str]],
) -> EntityRoles:
    """Return the entities in fields of the source and of the target, given as paths by kind."""
    return EntityRoles(*(union(_parse_paths(record, fields)) for fields in (sources, targets)))


def _parse_paths(
    record: Any, fields: Mapping[EntityKind, Sequence[str]]
) -> Iterator[Iterator[Entity]]:
    for kind, paths in fields.items():
        for path in paths:
            for value in texts_at(record, path):
                yield parse_entities(kind, value)


class FlowPaths(NamedTuple):
    """Dotted paths of the ends of a connection in a record, for each the most specific first."""

    source: Sequence[str]
    source_port: Sequence[str]
    target: Sequence[str]
    target_port: Sequence[str]
    protocol: Sequence[str] = ()
    direction: Sequence[str] = ()


ECS_FLOW = FlowPaths(
    source=("source.ip", "client.ip"),
    source_port=("source.port", "client.port"),
    target=("destination.ip", "server.ip"),
    target_port=("destination.port", "server.port"),
    protocol=("network.transport",),
    direction=("network.direction",),
)
"""Fields of the Elastic Common Schema: https://www.elastic.co/docs/reference/ecs/ecs-network"""


def find_flow(record: Any, paths: FlowPaths) -> NetworkFlow | None:
    """Return the connection of a record, None if it has no port and not both addresses."""
    source, target = (
        normalize_address(text_at(record, *names) or "") for names in (paths.source, paths.target)
    )
    ports = [_find_port(record, names) for names in (paths.source_port, paths.target_port)]
    if ports == [None, None] and not (source and target):
        return None
    protocol, direction = (
        word.casefold() if (word := text_at(record, *names)) else None
        for names in (paths.protocol, paths.direction)
    )
    return NetworkFlow(
        source=source,
        source_port=ports[0],
        target=target,
        target_port=ports[1],
        protocol=protocol,
        direction=direction,
    )


def _find_port(record: Any, paths: Sequence[str]) -> int | None:
    """Return the first value that is a port (RFC 6335, section 6), None if there is none."""
    for path in paths:
        word = str(value_at(record, path))
        if word.isascii() and word.isdigit() and len(word) <= _PORT_DIGITS and int(word) < 1 << 16:
            return int(word)
    return None


def find_document_roles(document: Any) -> EntityRoles:
    """Return the source and the target of a document in ECS, or with the usual flat names.

    The machine that logged has the role of its own address. Otherwise it is the target if only a
    source is named, and the source if it names no address and a process. Between two other
    addresses, it may be a sensor, and has no role.
    """
    roles = find_field_roles(document, _DOCUMENT_SOURCES, _DOCUMENT_TARGETS)
    machine = find_field_roles(document, _MACHINE, {}).sources
    own = set(find_field_roles(document, {EntityKind.IP: ("host.ip",)}, {}).sources)
    if own & set(roles.sources):
        return EntityRoles(union([roles.sources, machine]), roles.targets)
    if own & set(roles.targets):
        return EntityRoles(roles.sources, union([roles.targets, machine]))
    is_flow = any(entity.kind is EntityKind.IP for entity in roles.targets)
    if any(entity.kind is EntityKind.IP for entity in roles.sources):
        return roles if is_flow else EntityRoles(roles.sources, union([roles.targets, machine]))
    if is_flow or any(value_at(document, path) is not None for path in _PROGRAMS):
        return EntityRoles(union([roles.sources, machine]), roles.targets)
    return roles


def find_tactics(record: Any, *paths: str) -> Iterator[str]:
    """Yield the IDs of the ATT&CK tactics in fields, by ID or by name."""
    yield from parse_tactics(value for path in paths for value in texts_at(record, path))


def filter_techniques(values: Iterable[str]) -> Iterator[str]:
    """Yield the texts that are exactly a technique ID."""
    yield from (value for value in values if _TECHNIQUE_ID.fullmatch(value))


def find_techniques_in_text(value: str) -> list[str]:
    """Return the technique IDs in a text."""
    return _TECHNIQUE_ID.findall(value)
