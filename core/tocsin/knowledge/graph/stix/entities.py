"""Entities and techniques as STIX objects: observables where STIX has one, else domain objects."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tocsin.knowledge.graph.stix.objects import (
    StixIdentifiers,
    StixObject,
    domain_object,
    observable_id,
)
from tocsin.model import EntityKind, Node, NodeKind
from tocsin.store.tables import EPOCH

_HASHES = {32: "MD5", 40: "SHA-1", 64: "SHA-256", 128: "SHA-512"}
_HASH = re.compile(r"[0-9a-f]+", re.IGNORECASE)
_TECHNIQUE = re.compile(r"T\d{4}(?:\.\d{3})?")
_ATTACK = "https://attack.mitre.org/techniques/"


def entity_object(node: Node, names: StixIdentifiers) -> StixObject | None:
    """Return the STIX object of an entity or technique; None for any other kind of node."""
    make = _MAKERS.get(node.kind)
    return None if make is None else make(node.value, names)


def _observable(type_: str, **properties: Any) -> StixObject:
    name = observable_id(type_, properties)
    return {"type": type_, "spec_version": "2.1", "id": name, **properties}


def _named_object(type_: str, names: StixIdentifiers, value: str, **properties: Any) -> StixObject:
    """Return a domain object that has only a name, and so never changes."""
    common = domain_object(type_, names.of(type_, value), EPOCH, EPOCH)
    return {**common, "name": value, **properties}


def _address(value: str, _names: StixIdentifiers) -> StixObject:
    return _observable("ipv6-addr" if ":" in value else "ipv4-addr", value=value)


def _plain(type_: str) -> Callable[[str, StixIdentifiers], StixObject]:
    return lambda value, _names: _observable(type_, value=value)


def _file_hash(value: str, _names: StixIdentifiers) -> StixObject:
    algorithm = _HASHES.get(len(value))
    if algorithm is None or not _HASH.fullmatch(value):
        return _observable("file", name=value)
    return _observable("file", hashes={algorithm: value})


def _process(value: str, names: StixIdentifiers) -> StixObject:
    """Return a process, which has no identifying properties (section 6.13.1)."""
    name = names.of("process", value)
    return {"type": "process", "spec_version": "2.1", "id": name, "command_line": value}


def _vulnerability(value: str, names: StixIdentifiers) -> StixObject:
    reference = {"source_name": "cve", "external_id": value}
    return _named_object("vulnerability", names, value, external_references=[reference])


def _technique(value: str, names: StixIdentifiers) -> StixObject:
    if not _TECHNIQUE.fullmatch(value):
        return _named_object("attack-pattern", names, value)
    reference = {
        "source_name": "mitre-attack",
        "external_id": value,
        "url": _ATTACK + value.replace(".", "/"),
    }
    return _named_object("attack-pattern", names, value, external_references=[reference])


_MAKERS: dict[str, Callable[[str, StixIdentifiers], StixObject]] = {
    EntityKind.IP: _address,
    EntityKind.DOMAIN: _plain("domain-name"),
    EntityKind.URL: _plain("url"),
    EntityKind.EMAIL: _plain("email-addr"),
    EntityKind.MAILBOX: _plain("email-addr"),
    EntityKind.FILE_HASH: _file_hash,
    EntityKind.FILE: lambda value, _names: _observable("file", name=value),
    EntityKind.USER: lambda value, _names: _observable("user-account", account_login=value),
    EntityKind.PROCESS: _process,
    EntityKind.HOST: lambda value, names: _named_object(
        "identity", names, value, identity_class="system"
    ),
    EntityKind.CVE: _vulnerability,
    EntityKind.CLOUD_RESOURCE: lambda value, names: _named_object("infrastructure", names, value),
    NodeKind.TECHNIQUE: _technique,
}
