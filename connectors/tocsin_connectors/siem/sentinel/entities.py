"""What an incident or alert of Sentinel is about.

The API gives each entity with its `kind` and `properties`, and names others by their ids; the logs
give them flat, as JSON in a text, with `Type`, and with `$ref` for what stands elsewhere under
`$id`. What a property is called is the same but for its case:
https://learn.microsoft.com/azure/sentinel/entities-reference
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tocsin import Entity, EntityKind, parse_json
from tocsin_connectors.siem.microsoft.naming import entity_of, file, host, users
from tocsin_connectors.siem.records import text, texts

Thing = dict[str, Any]
"""One entity, with its members in lower case and all of them in one place."""
Named = Callable[[Thing, Mapping[str, Thing]], Iterator[Entity]]
"""Yields what one entity names; the others are there by their ids."""
_DEEPEST = 12
_NO_LETTER = re.compile(r"[^a-z]")
_ENCODED = frozenset({"entities", "additionaldata"})
"""Members that may be JSON in a text; others hold what attackers write."""


def entities_in(content: Any) -> Iterator[Entity]:
    """Yield what is named by entities, in any of their forms; what cannot be one is left out."""
    things = list(_things(content, _DEEPEST))
    index = {name: thing for thing in things for name in _names(thing)}
    for thing in things:
        if named := _KINDS.get(_kind(thing)):
            yield from named(thing, index)


def _things(content: Any, deepest: int) -> Iterator[Thing]:
    """Yield every object within, the outer ones first."""
    if isinstance(content, str):
        content = _decoded(content)
    if isinstance(content, list):
        for item in content if deepest else ():
            yield from _things(item, deepest - 1)
    elif isinstance(content, dict):
        thing = _flat(content)
        yield thing
        for name, value in thing.items() if deepest else ():
            if name in _ENCODED or isinstance(value, dict | list):
                yield from _things(value, deepest - 1)


def _decoded(content: str) -> Any:
    try:
        return parse_json(content.encode())
    except ValueError:
        return None


def _flat(content: dict[str, Any]) -> Thing:
    """Return the members of an object, of the API's those of its properties and what it is."""
    properties = content.get("properties")
    if isinstance(properties, dict):
        content = {name: content.get(name) for name in ("id", "kind")} | properties
    return {name.lower(): value for name, value in content.items()}


def _kind(thing: Thing) -> str:
    word = text(thing, "kind") or text(thing, "type") or ""
    return _NO_LETTER.sub("", word.lower())


def _names(thing: Thing) -> Iterator[str]:
    yield from (name.lower() for key in ("$id", "id") if (name := text(thing, key)))


def _other(thing: Thing, name: str, index: Mapping[str, Thing]) -> Thing:
    """Return another entity that one names, be it inside, by `$ref` or by id; else an empty one."""
    inner = thing.get(name)
    if not isinstance(inner, dict):
        return index.get((text(thing, f"{name}entityid") or "").lower(), {})
    reference = text(inner, "$ref")
    return _flat(inner) if reference is None else index.get(reference.lower(), {})


def _account(thing: Thing, _: Mapping[str, Thing]) -> Iterator[Entity]:
    name = text(thing, "accountname") or text(thing, "name")
    suffix = text(thing, "upnsuffix")
    upn = f"{name}@{suffix}" if name and suffix and "@" not in name else name
    yield from users(name, text(thing, "ntdomain"), upn)


def _host(thing: Thing, _: Mapping[str, Thing]) -> Iterator[Entity]:
    yield from host(text(thing, "hostname") or text(thing, "netbiosname"), text(thing, "dnsdomain"))
    for resource in texts(thing, "azureid"):
        yield Entity(EntityKind.CLOUD_RESOURCE, resource)


def _file(thing: Thing, _: Mapping[str, Thing]) -> Iterator[Entity]:
    yield from file(text(thing, "directory"), text(thing, "filename") or text(thing, "name"))


def _process(thing: Thing, index: Mapping[str, Thing]) -> Iterator[Entity]:
    """Yield a process by its program or, where that is not told, by how it was called."""
    image = _other(thing, "imagefile", index)
    name = text(image, "filename") or text(image, "name") or text(thing, "commandline")
    if name:
        yield Entity(EntityKind.PROCESS, name)


def _by(kinds: Mapping[str, EntityKind]) -> Named:
    """Return what yields the entities that members name, each of its kind."""

    def named(thing: Thing, _: Mapping[str, Thing]) -> Iterator[Entity]:
        for member, kind in kinds.items():
            for value in texts(thing, member):
                yield from entity_of(kind, value)

    return named


_MAIL = {
    "recipient": EntityKind.MAILBOX,
    "sender": EntityKind.EMAIL,
    "p1sender": EntityKind.EMAIL,
    "p2sender": EntityKind.EMAIL,
    "senderip": EntityKind.IP,
    "urls": EntityKind.URL,
}
_KINDS: Mapping[str, Named] = {
    "account": _account,
    "azureresource": _by({"resourceid": EntityKind.CLOUD_RESOURCE}),
    "dns": _by({"domainname": EntityKind.DOMAIN}),
    "dnsresolution": _by({"domainname": EntityKind.DOMAIN}),
    "file": _file,
    "filehash": _by({"hashvalue": EntityKind.FILE_HASH, "value": EntityKind.FILE_HASH}),
    "host": _host,
    "iotdevice": _by({"devicename": EntityKind.HOST, "ipaddress": EntityKind.IP}),
    "ip": _by({"address": EntityKind.IP}),
    "mailbox": _by({"mailboxprimaryaddress": EntityKind.MAILBOX}),
    "mailmessage": _by(_MAIL),
    "process": _process,
    "submissionmail": _by(_MAIL),
    "url": _by({"url": EntityKind.URL}),
}
"""By the kind of an entity, in lower case and letters alone, what of it names something."""
