"""Where an event of the Unified Data Model names what.

https://cloud.google.com/chronicle/docs/reference/udm-field-list
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tocsin import Entity, EntityKind
from tocsin_connectors.siem.places import texts_at
from tocsin_connectors.siem.typed import parse_entities

_NOUNS = ("principal", "target", "src", "observer", "intermediary", "about")
_NOUN_FIELDS: Mapping[EntityKind, tuple[str, ...]] = {
    EntityKind.IP: ("ip", "asset.ip"),
    EntityKind.HOST: ("hostname", "asset.hostname"),
    EntityKind.USER: ("user.userid", "user.windowsSid"),
    EntityKind.EMAIL: ("user.emailAddresses", "email"),
    EntityKind.DOMAIN: ("domain.name",),
    EntityKind.URL: ("url",),
    EntityKind.FILE_HASH: (
        *("file.sha256", "file.sha1", "file.md5"),
        *("process.file.sha256", "process.file.sha1", "process.file.md5"),
    ),
    EntityKind.FILE: ("file.fullPath",),
    EntityKind.PROCESS: ("process.file.fullPath",),
    EntityKind.CLOUD_RESOURCE: ("resource.name",),
}
_EVENT_FIELDS: Mapping[EntityKind, tuple[str, ...]] = {
    EntityKind.DOMAIN: ("network.dns.questions.name",),
    EntityKind.EMAIL: ("network.email.from", "network.email.to"),
    EntityKind.URL: ("network.http.referralUrl",),
    EntityKind.CVE: ("extensions.vulns.vulnerabilities.cveId",),
}
ENTITY_FIELDS: Mapping[EntityKind, tuple[str, ...]] = {
    kind: (
        *(f"{noun}.{place}" for noun in _NOUNS for place in _NOUN_FIELDS.get(kind, ())),
        *_EVENT_FIELDS.get(kind, ()),
    )
    for kind in (*_NOUN_FIELDS, EntityKind.CVE)
}
"""By kind, all the places that name one, as answers spell them."""


def find_entities(event: dict[str, Any], within: str = "") -> Iterator[Entity]:
    """Yield what an event names, in all of it or in a noun such as `principal`."""
    for kind, places in ENTITY_FIELDS.items():
        for place in places:
            if place.startswith(within):
                for value in texts_at(event, place):
                    yield from parse_entities(kind, value)
