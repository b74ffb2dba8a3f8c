"""Where an alert names what it is about.

The products write alerts of different shapes: endpoints, identities, clouds, mobile devices and
what others send to Next-Gen SIEM. A place is looked at wherever it is there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tocsin import Entity, EntityKind
from tocsin_connectors.siem.places import texts_at
from tocsin_connectors.siem.records import children, text, texts
from tocsin_connectors.siem.typed import parse_entities

ENTITY_FIELDS: Mapping[EntityKind, tuple[str, ...]] = {
    EntityKind.HOST: (
        *("device.hostname", "hostname", "host_names", "computer_name"),
        *("source_endpoint_host_name", "target_endpoint_host_name"),
    ),
    EntityKind.IP: (
        *("device.external_ip", "device.local_ip", "source_ips", "source_ip_address"),
        *("source_endpoint_address_ip4", "source_endpoint_address_ip6", "destination_ips"),
        *("target_endpoint_address_ip4", "network_accesses.remote_address"),
    ),
    EntityKind.USER: (
        *("user_name", "user_names", "user_principal", "source_account_upn"),
        *("source_account_sam_account_name", "target_account_upn", "target_account_name"),
    ),
    EntityKind.DOMAIN: ("domain_names", "dns_requests.domain_name"),
    EntityKind.FILE_HASH: (
        *("sha256", "md5", "parent_details.sha256", "parent_details.md5"),
        *("grandparent_details.sha256", "grandparent_details.md5", "quarantined_files.sha256"),
    ),
    EntityKind.FILE: ("filepath", "files_written.filename"),
    EntityKind.PROCESS: ("filename", "parent_details.filename", "grandparent_details.filename"),
    EntityKind.CLOUD_RESOURCE: ("resource_id",),
}
_INDICATOR_TYPES: Mapping[str, EntityKind] = {
    "domain": EntityKind.DOMAIN,
    "ip_address": EntityKind.IP,
    "ipv4": EntityKind.IP,
    "ipv6": EntityKind.IP,
    "hash_md5": EntityKind.FILE_HASH,
    "hash_sha256": EntityKind.FILE_HASH,
    "url": EntityKind.URL,
}


def find_entities(record: dict[str, Any]) -> Iterator[Entity]:
    """Yield what an alert names."""
    for kind, places in ENTITY_FIELDS.items():
        for place in places:
            yield from _parse_values(kind, texts_at(record, place))
    for indicator in (record, *children(record, "ioc_context")):
        kind_of_it = _INDICATOR_TYPES.get((text(indicator, "ioc_type") or "").casefold())
        if kind_of_it is not None:
            yield from _parse_values(kind_of_it, texts(indicator, "ioc_value"))


def _parse_values(kind: EntityKind, found: list[str]) -> Iterator[Entity]:
    for value in found:
        if value.strip("0"):  # what has no hash is written as so many zeros
            yield from parse_entities(kind, value)
