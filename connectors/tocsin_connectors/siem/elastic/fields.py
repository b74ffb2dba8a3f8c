"""Which fields of the Elastic Common Schema name what.

https://www.elastic.co/docs/reference/ecs/ecs-field-reference
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address

from tocsin import Entity, EntityKind
from tocsin_connectors.siem.elastic.flattening import FlatDocument
from tocsin_connectors.siem.records import texts
from tocsin_connectors.siem.techniques import filter_techniques
from tocsin_connectors.siem.typed import parse_entities

_HASH_OWNERS = ("file", "process", "process.parent", "dll")
_ADDRESS_OWNERS = ("source", "destination", "client", "server")
ENTITY_FIELDS: dict[EntityKind, tuple[str, ...]] = {
    EntityKind.IP: (
        *(f"{end}.ip" for end in _ADDRESS_OWNERS),
        *("host.ip", "dns.resolved_ip", "related.ip", "threat.indicator.ip"),
    ),
    EntityKind.HOST: ("host.name", "host.hostname", "related.hosts"),
    EntityKind.USER: ("user.name", "user.target.name", "user.effective.name", "related.user"),
    EntityKind.DOMAIN: (
        *("dns.question.name", "url.domain", "tls.client.server_name"),
        *(f"{end}.domain" for end in _ADDRESS_OWNERS),
    ),
    EntityKind.URL: ("url.full", "threat.indicator.url.full"),
    EntityKind.FILE_HASH: (
        *(f"{it}.hash.{kind}" for it in _HASH_OWNERS for kind in ("sha256", "sha1", "md5")),
        "related.hash",
    ),
    EntityKind.FILE: ("file.path",),
    EntityKind.PROCESS: (
        *("process.executable", "process.parent.executable"),
        *("process.name", "process.parent.name"),
    ),
    EntityKind.EMAIL: (
        *("email.from.address", "email.to.address", "email.cc.address", "email.sender.address"),
        "user.email",
    ),
    EntityKind.CVE: ("vulnerability.id",),
    EntityKind.CLOUD_RESOURCE: ("cloud.instance.id", "orchestrator.resource.id"),
}
_THREAT_FIELDS = ("kibana.alert.rule.threat", "kibana.alert.rule.parameters.threat", "threat")


def find_entities(flat: FlatDocument) -> Iterator[Entity]:
    """Yield what a document names; of a host's own addresses, not those that every host has."""
    for kind, names in ENTITY_FIELDS.items():
        for name in names:
            for value in texts(flat, name):
                found = parse_entities(kind, value)
                yield from (it for it in found if name != "host.ip" or _is_own_address(it.value))


def find_techniques(flat: FlatDocument) -> Iterator[str]:
    """Yield the ATT&CK ids that a rule or an event names, of sub-techniques where it has them."""
    places = (f"{it}.technique{sub}.id" for it in _THREAT_FIELDS for sub in (".subtechnique", ""))
    found = list(filter_techniques(it for place in places for it in texts(flat, place)))
    parents = {it.partition(".")[0] for it in found if "." in it}
    yield from (it for it in found if it not in parents)


def _is_own_address(value: str) -> bool:
    try:
        address = ip_address(value)
    except ValueError:
        return False
    return not (address.is_loopback or address.is_link_local)
