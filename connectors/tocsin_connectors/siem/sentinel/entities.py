"""Entities of Sentinel incidents and alerts.

The API returns each entity with `kind` and `properties`, and refers to other entities by ID. In
logs, entities are flat JSON strings with a `Type`, in which `$ref` refers to the object with the
same `$id`. Property names are the same except for case:
https://learn.microsoft.com/azure/sentinel/entities-reference
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tocsin import Entity, EntityKind, parse_json
from tocsin_connectors.siem.microsoft.mapping import (
    parse_entity,
    parse_file,
    parse_machine,
    parse_user,
)
from tocsin_connectors.siem.records import EntityRoles, text, texts, union

SentinelObject = dict[str, Any]
"""One entity, flattened, with its members in lower case."""
EntityFinder = Callable[[SentinelObject, Mapping[str, SentinelObject]], Iterator[Entity]]
"""Yields the entities in one object; the others are available by ID."""
_MAX_DEPTH = 12
_NO_LETTER = re.compile(r"[^a-z]")
_JSON_MEMBERS = frozenset({"entities", "additionaldata"})
"""Members that may be JSON strings; others may be controlled by attackers."""


def find_entities(content: Any) -> Iterator[Entity]:
    """Yield the entities in any form of content. Invalid values are skipped."""
    things = list(_iterate_objects(content, _MAX_DEPTH))
    index = {name: thing for thing in things for name in _iterate_names(thing)}
    for thing in things:
        if named := _FINDERS.get(_get_kind(thing)):
            yield from named(thing, index)


def _iterate_objects(content: Any, deepest: int) -> Iterator[SentinelObject]:
    """Yield every nested object, outer ones first."""
    if isinstance(content, str):
        content = _decode_json(content)
    if isinstance(content, list):
        for item in content if deepest else ():
            yield from _iterate_objects(item, deepest - 1)
    elif isinstance(content, dict):
        thing = _flatten(content)
        yield thing
        for name, value in thing.items() if deepest else ():
            if name in _JSON_MEMBERS or isinstance(value, dict | list):
                yield from _iterate_objects(value, deepest - 1)


def _decode_json(content: str) -> Any:
    try:
        return parse_json(content.encode())
    except ValueError:
        return None


def _flatten(content: dict[str, Any]) -> SentinelObject:
    """Return the members of an object, with those of its properties."""
    properties = content.get("properties")
    if isinstance(properties, dict):
        content = {name: content.get(name) for name in ("id", "kind")} | properties
    return {name.lower(): value for name, value in content.items()}


def _get_kind(thing: SentinelObject) -> str:
    word = text(thing, "kind") or text(thing, "type") or ""
    return _NO_LETTER.sub("", word.lower())


def _iterate_names(thing: SentinelObject) -> Iterator[str]:
    """Yield the IDs of an object; references use the resource ID, or its last part alone."""
    for key in ("$id", "id"):
        if name := text(thing, key):
            yield name.lower()
            yield name.lower().rpartition("/")[2]


def _resolve_reference(
    thing: SentinelObject, name: str, index: Mapping[str, SentinelObject]
) -> SentinelObject:
    """Return the referenced entity, nested, by `$ref` or by ID; else an empty one."""
    inner = thing.get(name)
    if not isinstance(inner, dict):
        return index.get((text(thing, f"{name}entityid") or "").lower(), {})
    reference = text(inner, "$ref")
    return _flatten(inner) if reference is None else index.get(reference.lower(), {})


def _find_account(thing: SentinelObject, _: Mapping[str, SentinelObject]) -> Iterator[Entity]:
    name = text(thing, "accountname") or text(thing, "name")
    suffix = text(thing, "upnsuffix")
    upn = f"{name}@{suffix}" if name and suffix and "@" not in name else name
    yield from parse_user(name, text(thing, "ntdomain"), upn)


def _find_host(thing: SentinelObject, _: Mapping[str, SentinelObject]) -> Iterator[Entity]:
    yield from parse_machine(
        text(thing, "hostname") or text(thing, "netbiosname"), text(thing, "dnsdomain")
    )
    for resource in texts(thing, "azureid"):
        yield Entity(EntityKind.CLOUD_RESOURCE, resource)


def _find_file(thing: SentinelObject, _: Mapping[str, SentinelObject]) -> Iterator[Entity]:
    yield from parse_file(text(thing, "directory"), text(thing, "filename") or text(thing, "name"))


def _find_process(thing: SentinelObject, index: Mapping[str, SentinelObject]) -> Iterator[Entity]:
    """Yield a process by its program, or else by its command line."""
    image = _resolve_reference(thing, "imagefile", index)
    name = text(image, "filename") or text(image, "name") or text(thing, "commandline")
    if name:
        yield Entity(EntityKind.PROCESS, name)


def _build_finder(kinds: Mapping[str, EntityKind]) -> EntityFinder:
    """Return a finder for members that hold entities of a kind."""

    def named(thing: SentinelObject, _: Mapping[str, SentinelObject]) -> Iterator[Entity]:
        for member, kind in kinds.items():
            for value in texts(thing, member):
                yield from parse_entity(kind, value)

    return named


_MAIL_FIELDS = {
    "recipient": EntityKind.MAILBOX,
    "sender": EntityKind.EMAIL,
    "p1sender": EntityKind.EMAIL,
    "p2sender": EntityKind.EMAIL,
    "senderip": EntityKind.IP,
    "urls": EntityKind.URL,
}
_SENDER_FIELDS = {
    name: _MAIL_FIELDS[name] for name in ("sender", "p1sender", "p2sender", "senderip")
}
_RECIPIENT_FIELDS = {"recipient": EntityKind.MAILBOX}
_MAILS = frozenset({"mailmessage", "submissionmail"})


def find_roles(content: Any) -> EntityRoles:
    """Return senders and recipients of mails: other entities do not tell their role."""
    mails = [thing for thing in _iterate_objects(content, _MAX_DEPTH) if _get_kind(thing) in _MAILS]
    sides = (
        union(_build_finder(fields)(mail, {}) for mail in mails)
        for fields in (_SENDER_FIELDS, _RECIPIENT_FIELDS)
    )
    return EntityRoles(*sides)


_FINDERS: Mapping[str, EntityFinder] = {
    "account": _find_account,
    "azureresource": _build_finder({"resourceid": EntityKind.CLOUD_RESOURCE}),
    "dns": _build_finder({"domainname": EntityKind.DOMAIN}),
    "dnsresolution": _build_finder({"domainname": EntityKind.DOMAIN}),
    "file": _find_file,
    "filehash": _build_finder({"hashvalue": EntityKind.FILE_HASH, "value": EntityKind.FILE_HASH}),
    "host": _find_host,
    "iotdevice": _build_finder({"devicename": EntityKind.HOST, "ipaddress": EntityKind.IP}),
    "ip": _build_finder({"address": EntityKind.IP}),
    "mailbox": _build_finder({"mailboxprimaryaddress": EntityKind.MAILBOX}),
    "mailmessage": _build_finder(_MAIL_FIELDS),
    "process": _find_process,
    "submissionmail": _build_finder(_MAIL_FIELDS),
    "url": _build_finder({"url": EntityKind.URL}),
}
"""Finders by kind of entity, in lowercase letters only."""
