"""Entities of OCSF findings: observables, evidence, resources and devices."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tocsin import Entity, EntityKind
from tocsin_connectors.siem.records import (
    EntityRoles,
    child,
    children,
    normalize_address,
    number,
    parse_host,
    text,
    texts,
    union,
)

_MAX_DEPTH = 12  # lists count, too

_OBSERVABLES = {
    1: EntityKind.HOST,
    2: EntityKind.IP,
    4: EntityKind.USER,
    5: EntityKind.EMAIL,
    6: EntityKind.URL,
    7: EntityKind.FILE,  # the name of one
    8: EntityKind.FILE_HASH,
    9: EntityKind.PROCESS,
    10: EntityKind.CLOUD_RESOURCE,
    18: EntityKind.CVE,
    20: EntityKind.HOST,
    21: EntityKind.USER,
    22: EntityKind.EMAIL,
    23: EntityKind.URL,
    24: EntityKind.FILE,
    25: EntityKind.PROCESS,
    45: EntityKind.FILE,  # the path of one
}
"""Kinds of observables by `type_id`, as the schema's dictionary and objects number them.

The numbers 20 to 30 stand for objects, which should have no value; some products give one.
"""

_ENDPOINT = {"ip": EntityKind.IP, "hostname": EntityKind.HOST}
_FILE = {"path": EntityKind.FILE, "name": EntityKind.FILE}
_PROCESS = {"name": EntityKind.PROCESS}
_USER = {"name": EntityKind.USER, "email_addr": EntityKind.EMAIL}
_URL = {"url_string": EntityKind.URL, "hostname": EntityKind.DOMAIN}
_OBJECTS: dict[str, dict[str, EntityKind]] = {
    "src_endpoint": _ENDPOINT,
    "dst_endpoint": _ENDPOINT,
    "device": _ENDPOINT,
    "file": _FILE,
    "files": _FILE,
    "hashes": {"value": EntityKind.FILE_HASH},
    "process": _PROCESS,
    "parent_process": _PROCESS,
    "user": _USER,
    "owner": _USER,
    "url": _URL,
    "urls": _URL,
    "query": {"hostname": EntityKind.DOMAIN},
    "tls": {"sni": EntityKind.DOMAIN},
    "email": dict.fromkeys(
        ("from", "to", "cc", "reply_to", "smtp_from", "smtp_to"), EntityKind.EMAIL
    ),
    "resources": {"uid": EntityKind.CLOUD_RESOURCE, **_ENDPOINT},
    "cve": {"uid": EntityKind.CVE},
}
"""Fields that hold entities, with their kinds, by the name of an object."""

_SKIPPED_MEMBERS = frozenset({"observables", "metadata", "enrichments", "unmapped", "raw_data"})
"""Members about the record instead of the event."""

_FORMS = {
    EntityKind.CVE: re.compile(r"CVE[-_]\d{4}[-_]\d{4,}", re.IGNORECASE),
    EntityKind.EMAIL: re.compile(r"[^\s<>\",;:@]{1,64}@[\w.-]{1,255}"),
    EntityKind.FILE_HASH: re.compile(r"[0-9a-fA-F]{32,128}$"),  # after a prefix such as MD5:
}
_TECHNIQUE = re.compile(r"T\d{4}(\.\d{3})?")


def find_entities(record: dict[str, Any]) -> Iterator[Entity]:
    """Yield the entities of a record. Invalid values are skipped."""
    for observable in children(record, "observables"):
        kind = _OBSERVABLES.get(number(observable, "type_id") or 0)
        if kind and (value := text(observable, "value")):
            yield from _parse_entity(kind, value)
    for key in ("evidences", "resources", "device", "actor", "vulnerabilities"):
        yield from _find_nested(key, record.get(key), _MAX_DEPTH)


def find_all_entities(record: dict[str, Any]) -> Iterator[Entity]:
    """Yield the entities of a record of any class, in any known object."""
    yield from find_entities(record)
    for key, value in record.items():
        if key not in _SKIPPED_MEMBERS:
            yield from _find_nested(key, value, _MAX_DEPTH)


def find_roles(record: dict[str, Any]) -> EntityRoles:
    """Return the source and the target of the evidence of a finding, or of an event.

    Without a source, the device is where the activity happened; without a target, it is the target.
    """
    holders = [record, *children(record, "evidences")]
    sources, targets = (
        union(_find_nested(key, holder.get(key), 1) for holder in holders)
        for key in ("src_endpoint", "dst_endpoint")
    )
    mails = [child(holder, "email") for holder in holders]
    senders, recipients = (
        union(
            _parse_entity(EntityKind.EMAIL, value) for mail in mails for value in texts(mail, key)
        )
        for key in ("from", "to")
    )
    device = union(_find_nested("device", holder.get("device"), 1) for holder in holders)
    if not sources and not senders:
        sources = device
    elif not targets and not recipients:
        targets = device
    return EntityRoles(union([sources, senders]), union([targets, recipients]))


def find_techniques(record: dict[str, Any], details: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the ATT&CK IDs of a finding, of sub-techniques if it has them."""
    for holder in [*details, record]:
        for attack in children(holder, "attacks"):
            uid = text(child(attack, "sub_technique"), "uid")
            uid = uid or text(child(attack, "technique"), "uid")
            if uid and _TECHNIQUE.fullmatch(uid):
                yield uid


def _find_nested(key: str, value: object, deepest: int) -> Iterator[Entity]:
    if not deepest:
        return
    if isinstance(value, list):
        for item in value:
            yield from _find_nested(key, item, deepest - 1)
    elif isinstance(value, dict):
        for field, kind in _OBJECTS.get(key, {}).items():
            for name in texts(value, field):
                yield from _parse_entity(kind, name)
        for field, inner in value.items():
            yield from _find_nested(field, inner, deepest - 1)


def _parse_entity(kind: EntityKind, value: str) -> Iterator[Entity]:
    if kind in {EntityKind.HOST, EntityKind.DOMAIN, EntityKind.IP}:
        yield from parse_host(value, kind)
    elif kind is EntityKind.CLOUD_RESOURCE and normalize_address(value):
        yield from parse_host(value, EntityKind.IP)
    elif kind not in _FORMS:
        yield Entity(kind, value)
    elif match := _FORMS[kind].search(value):
        yield Entity(kind, match[0])
