"""Which fields of Splunk's Common Information Model name what.

https://docs.splunk.com/Documentation/CIM/latest/User/Overview
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from tocsin import Entity, EntityKind
from tocsin_connectors.siem.records import children, texts
from tocsin_connectors.siem.techniques import filter_techniques
from tocsin_connectors.siem.typed import parse_entities

_CIM_FIELDS: dict[EntityKind, tuple[str, ...]] = {
    EntityKind.IP: (*("src_ip", "dest_ip", "dvc_ip", "src_translated_ip", "dest_translated_ip"),),
    EntityKind.HOST: (
        *("src", "src_host", "src_dns", "src_nt_host", "dest", "dest_host", "dest_dns"),
        *("dest_nt_host", "dvc", "dvc_host", "orig_host"),
    ),
    EntityKind.USER: ("user", "src_user", "user_name", "src_user_name"),
    EntityKind.DOMAIN: ("query", "answer", "domain", "url_domain"),
    EntityKind.URL: ("url", "http_url", "http_referrer"),
    EntityKind.FILE_HASH: ("file_hash", "process_hash", "parent_process_hash"),
    EntityKind.FILE: ("file_name", "file_path"),
    EntityKind.PROCESS: ("process_name", "parent_process_name"),
    EntityKind.EMAIL: ("recipient", "src_user", "return_addr", "orig_src", "sender"),
    EntityKind.CVE: ("cve",),
}
"""By kind, the fields that name one; where a host or a domain turns out to be an address, it is."""
ENTITY_FIELDS: dict[EntityKind, tuple[str, ...]] = {
    **_CIM_FIELDS,
    EntityKind.IP: (
        *_CIM_FIELDS[EntityKind.IP],
        *_CIM_FIELDS[EntityKind.HOST],
        "answer",
        "risk_object",
    ),
    EntityKind.HOST: (*_CIM_FIELDS[EntityKind.HOST], "risk_object"),
    EntityKind.USER: (*_CIM_FIELDS[EntityKind.USER], "risk_object"),
}
"""By kind, the fields to look in for one."""
_KNOWN_FIELDS = frozenset(name for names in _CIM_FIELDS.values() for name in names)
_RISK_OBJECTS = {"system": EntityKind.HOST, "user": EntityKind.USER}
_ARTIFACTS = {"asset": EntityKind.HOST, "identity": EntityKind.USER}
_ACCOUNT_PROPERTY = re.compile(r"(id|role|category|priority)$")  # what `identity` names as well
_DOTTED_NAME = re.compile(
    r"[^\s/]+\.[^\s/]+"
)  # `query` also holds searches, and names without a dot
_TECHNIQUE_FIELDS = (
    "annotations.mitre_attack",
    "annotations.mitre_attack.mitre_technique_id",
    "mitre_technique_id",
)


def find_entities(record: dict[str, Any]) -> Iterator[Entity]:
    """Yield what a record of events or findings names."""
    for kind, names in _CIM_FIELDS.items():
        for name in names:
            yield from _parse_field(record, name, kind)
    risks = zip(texts(record, "risk_object_type"), texts(record, "risk_object"), strict=False)
    for risk, value in risks:
        if kind_of_risk := _RISK_OBJECTS.get(risk.casefold()):
            yield from parse_entities(kind_of_risk, value)


def find_artifacts(record: dict[str, Any]) -> Iterator[Entity]:
    """Yield what a finding has in the fields that its detection says hold assets and identities.

    `extract_artifacts` is JSON in a text: `{"asset": ["src"], "identity": ["user", "user_role"]}`.
    """
    for key, kind in _ARTIFACTS.items():
        for name in _list_encoded(record, "extract_artifacts", key):
            if name not in _KNOWN_FIELDS and not _ACCOUNT_PROPERTY.search(name):
                yield from _parse_field(record, name, kind)


def find_techniques(record: dict[str, Any]) -> Iterator[str]:
    """Yield the ATT&CK ids that a finding is annotated with."""
    named = [it for name in _TECHNIQUE_FIELDS for it in texts(record, name)]
    named += _list_encoded(record, "annotations", "mitre_attack")
    yield from filter_techniques(named)


def _parse_field(record: dict[str, Any], name: str, kind: EntityKind) -> Iterator[Entity]:
    for value in texts(record, name):
        if kind is not EntityKind.DOMAIN or _DOTTED_NAME.fullmatch(value):
            yield from parse_entities(kind, value)


def _list_encoded(record: dict[str, Any], name: str, key: str) -> list[str]:
    """Return the texts at a key of an object that stands as JSON in a field, or in several."""
    found = []
    for encoded in texts(record, name):
        with suppress(ValueError, RecursionError):
            content = json.loads(encoded)
            found += [it for holder in children({"": content}, "") for it in texts(holder, key)]
    return found
